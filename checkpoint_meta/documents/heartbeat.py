"""Whether the process that has claimed a state directory runs: what it writes, and how others ask.

A claim says which process it is, so that a recycled process id, another container with the
same host name, or a restarted machine cannot be taken for. Where the process cannot be looked at,
because it is on another machine or in another process namespace, its heartbeat says it: an object
that is written three times a minute. The last one of a coordinator that was closed says so. A
copied claim has no heartbeats that continue.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from ..stores.contract import StateStore
from .checksummed_json import with_checksum, without_checksum
from .layout import HEARTBEATS, NumberedObjects

HEARTBEAT_SECONDS: Final = 20.0
ALIVE_SECONDS: Final = 3 * HEARTBEAT_SECONDS
"""A heartbeat that is older is the last one, by the clocks of two hosts."""

_CLOSE_SECONDS: Final = 5.0
"""How long a coordinator that is closed waits for a heartbeat that is being written."""

Life = Literal["running", "gone", "unknown", "nobody"]

open_claims: Final[set[str]] = set()
"""Nonces of the claims of this process whose coordinators are not closed."""


class ParentProcess(TypedDict):
    """The process without which the claimant is of no use: the JVM of Spark's driver."""

    pid: int
    started: str


class Process(TypedDict):
    """The process that makes a claim, as the claim describes it."""

    location: str
    """The state directory, as that process names it."""

    host: str
    pid: int
    boot: str
    """Drawn by the machine when it starts."""

    namespace: str
    """In which `pid` counts; a container has its own."""

    started: str
    """Ticks since the machine was started."""


def this_process(location: str) -> Process:
    """The process that runs this, with the state directory as it has it."""
    return Process(
        location=location,
        host=socket.gethostname(),
        pid=os.getpid(),
        boot=boot_id(),
        namespace=_namespace(),
        started=_started(os.getpid()),
    )


def parent_process() -> ParentProcess:
    """The process that has started this one."""
    return ParentProcess(pid=os.getppid(), started=_started(os.getppid()))


def boot_id() -> str:
    """Drawn by the machine when it starts; empty where it says none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _namespace() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _started(pid: int) -> str:
    """Ticks since the machine was started; empty where the process or the file is not there."""
    with contextlib.suppress(OSError, IndexError):
        # The name of the program, in brackets, may have spaces and brackets of its own.
        # starttime is field 22 of proc(5), and the third, the state, is the first after the name.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # A zombie has ended, and waits for a parent that may never ask.
        return "" if fields[0] in "ZX" else fields[19]
    return ""


class Heartbeat:
    """Written by the coordinator that has claimed `epoch`, for others to see."""

    def __init__(
        self,
        store: StateStore,
        epoch: int,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        nonce: str = "",
    ) -> None:
        """`nonce` is that of the claim: after a restore, an epoch may be claimed again."""
        self._objects = NumberedObjects(store, HEARTBEATS, epoch, kept=1)
        self._epoch, self._nonce = epoch, nonce
        self._clock = clock
        # The thread that closes a coordinator meets the one in the background.
        self._lock = threading.Lock()
        self._has_ended = False
        # Others compare the beat with their clocks. When the next is due, only time that passes
        # says: a wall clock may be set.
        self._monotonic = monotonic
        self._due = monotonic()

    def beat(
        self, figures: Callable[[], Mapping[str, Any]] = dict, *, is_due: bool = False
    ) -> None:
        """Write one if it is time for one, or `is_due`; the one before is deleted.

        `figures` returns JSON values that `sluice status` shows and no checkpoint contains.
        """
        with self._lock:
            now = self._monotonic()
            if self._has_ended or (now < self._due and not is_due):
                return
            self._publish(figures())
            # After the publication: one that failed is due again at once.
            self._due = now + HEARTBEAT_SECONDS

    def end(self, figures: Mapping[str, Any]) -> None:
        """Write the last one: the claim owns nothing any more, on any host.

        A crash before it leaves a claim that looks alive until the heartbeat before is too old.
        """
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            try:
                self._has_ended = True
                self._publish(figures, ended=True)
            finally:
                self._lock.release()

    def _publish(self, figures: Mapping[str, Any], **more: bool) -> None:
        beat = {"format": 1, "epoch": self._epoch, "nonce": self._nonce, "beat": self._clock()}
        self._objects.publish(with_checksum({**beat, "figures": figures, **more}))


def figures_of(store: StateStore, epoch: int) -> Mapping[str, Any]:
    """Return the figures of the last heartbeat of an epoch; empty without one that can be read."""
    figures: Mapping[str, Any] = _last_beat(store, epoch).get("figures", {})
    return figures


def beats_of(store: StateStore, epoch: int) -> list[str]:
    """The names of the heartbeats of an epoch, which differ after each one."""
    return [leaf for leaf in store.list(HEARTBEATS) if leaf.startswith(f"{epoch:010d}-")]


def is_beating(store: StateStore, epoch: int) -> bool:
    """Return whether the last heartbeat of an epoch is recent, and not the end of its query."""
    beat = _last_beat(store, epoch)
    return not beat.get("ended") and time.time() - float(beat.get("beat", 0)) < ALIVE_SECONDS


def _last_beat(store: StateStore, epoch: int, nonce: str | None = None) -> Mapping[str, Any]:
    """The last heartbeat of an epoch, or of one claim to it; empty without one that can be read."""
    for leaf in reversed(beats_of(store, epoch)):
        with contextlib.suppress(FileNotFoundError, ValueError):
            beat = without_checksum(store.read(f"{HEARTBEATS}/{leaf}"))
            # A restore may have lost the claim of one that is newer.
            if nonce is None or beat.get("nonce") in ("", nonce):
                return beat
    return {}


@dataclass(frozen=True)
class Sign:
    """The knowledge that there can be of a claim's process."""

    life: Life
    evidence: str


def look_at(store: StateStore, claim: Mapping[str, Any], now: float | None = None) -> Sign:
    """Return whether the process of `claim` runs.

    Raises:
        LookupError, TypeError, ValueError: the claim is not one.
    """
    own = this_process(store.location)
    pid = int(claim["pid"])
    if claim.get("purpose"):
        return Sign("nobody", "claimed by the command line, for no query")
    beat = _last_beat(store, int(claim["epoch"]), claim.get("nonce"))
    if beat.get("ended") and beat.get("nonce") == claim.get("nonce"):
        return Sign("gone", "it has ended")
    if all(claim[key] == own[key] for key in ("host", "boot", "namespace")):
        seen = _seen(pid, claim["started"])
        parent = claim.get("parent")
        if pid == own["pid"] and seen.life == "running" and claim["nonce"] not in open_claims:
            seen = Sign("gone", "this process has closed it")
        elif parent and _seen(int(parent["pid"]), parent["started"]).life == "gone":
            # What is left of a killed driver may take minutes to notice.
            seen = Sign("gone", "the driver that has started it is no longer running")
        # One that runs may be at work on the directory that this one was copied from.
        if seen.life == "gone" or _is_same_place(claim["location"], own["location"]):
            return seen
    return _heard(store, claim, beat, time.time() if now is None else now)


def _is_same_place(one: str, other: str) -> bool:
    if one == other:
        return True
    # By a link, or a mount in another place.
    with contextlib.suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return False


def _seen(pid: int, started: str) -> Sign:
    runs, gone = Sign("running", "it runs"), Sign("gone", "it is no longer running")
    # A recycled process id has another start time.
    if started:
        return runs if _started(pid) == started else gone
    try:
        # Without /proc (macOS) a recycled id passes as running, which is the harmless mistake.
        os.kill(pid, 0)
    except ProcessLookupError:
        return gone
    except PermissionError:
        return runs
    return runs


def _heard(
    store: StateStore, claim: Mapping[str, Any], beat: Mapping[str, Any], now: float
) -> Sign:
    where = "whose processes are not visible from here"
    if claim["location"] != store.location:
        where = f"of the state at {claim['location']}, and this may be a copy of it"
    # The first heartbeat follows the claim, as soon as the state is restored.
    sign = beat.get("beat", claim.get("claimed"))
    if sign is None:
        return Sign("gone", f"{where}; no heartbeat was found")
    age = now - float(sign)
    what = "its last heartbeat was" if "beat" in beat else "it has claimed the state"
    evidence = f"{where}; {what} {age:.0f} s ago"
    return Sign("unknown" if age < ALIVE_SECONDS else "gone", evidence)

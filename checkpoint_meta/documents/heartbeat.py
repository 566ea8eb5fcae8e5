"""Whether the process that has claimed a state directory runs: what it writes, and how others ask.

A claim says which process it is, so that a recycled process id, another container with the
same host name, or a restarted machine cannot be taken for. Where the process cannot be looked at,
because it is on another machine or in another process namespace, its heartbeat says it: an object
that is written every minute. A copied claim has no heartbeats.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from ..stores.contract import StateStore
from .checksummed_json import with_checksum, without_checksum
from .layout import HEARTBEATS, NumberedObjects

HEARTBEAT_SECONDS: Final = 60.0
ALIVE_SECONDS: Final = 3 * HEARTBEAT_SECONDS
"""A heartbeat that is older is the last one. Clocks of hosts may differ by a minute or so."""

Life = Literal["running", "gone", "unknown", "nobody"]


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
        boot=_boot(),
        namespace=_namespace(),
        started=_started(os.getpid()),
    )


def _boot() -> str:
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
        # starttime is field 22 of proc(5), and the third is the first one after the name.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


class Heartbeat:
    """Written by the coordinator that has claimed `epoch`, for others to see."""

    def __init__(
        self,
        store: StateStore,
        epoch: int,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects = NumberedObjects(store, HEARTBEATS, epoch, kept=1)
        self._epoch = epoch
        self._clock = clock
        # Others compare the beat with their clocks. When the next is due, only time that passes
        # says: a wall clock may be set.
        self._monotonic = monotonic
        # The first one is due at once: until then others cannot tell this claim from a copied one.
        self._due = monotonic()

    def beat(self, figures: Callable[[], Mapping[str, Any]] = dict) -> None:
        """Write one if it is time for one; the one before is deleted.

        `figures` returns JSON values that `sluice status` shows and no checkpoint contains.
        """
        now = self._monotonic()
        if now < self._due:
            return
        beat = {"format": 1, "epoch": self._epoch, "beat": self._clock(), "figures": figures()}
        self._objects.publish(with_checksum(beat))
        # After the publication: one that failed is due again at once.
        self._due = now + HEARTBEAT_SECONDS


def figures_of(store: StateStore, epoch: int) -> Mapping[str, Any]:
    """Return the figures of the last heartbeat of an epoch; empty without one that can be read."""
    figures: Mapping[str, Any] = _last_beat(store, epoch).get("figures", {})
    return figures


def _last_beat(store: StateStore, epoch: int) -> Mapping[str, Any]:
    """The last heartbeat of an epoch; empty without one that can be read."""
    beats = [leaf for leaf in store.list(HEARTBEATS) if leaf.startswith(f"{epoch:010d}-")]
    # `max` of no heartbeats raises ValueError as well.
    with contextlib.suppress(FileNotFoundError, ValueError):
        return without_checksum(store.read(f"{HEARTBEATS}/{max(beats)}"))
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
    if all(claim[key] == own[key] for key in ("host", "boot", "namespace")):
        seen = _seen(pid, claim["started"])
        # One that runs may be at work on the directory that this one was copied from.
        if seen.life == "gone" or claim["location"] == own["location"]:
            return seen
    return _heard(store, claim, time.time() if now is None else now)


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


def _heard(store: StateStore, claim: Mapping[str, Any], now: float) -> Sign:
    where = "whose processes are not visible from here"
    if claim["location"] != store.location:
        where = f"of the state at {claim['location']}, and this may be a copy of it"
    beat = _last_beat(store, int(claim["epoch"])).get("beat")
    if beat is None:
        return Sign("unknown", f"{where}; no heartbeat was found")
    age = now - float(beat)
    evidence = f"{where}; its last heartbeat was {age:.0f} s ago"
    return Sign("unknown" if age < ALIVE_SECONDS else "gone", evidence)

"""A state directory of which each process has a view of its own, and a weather that changes."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.layout import INDEX
from pyspark_sluice.checkpoint_meta.stores.contract import RetryingStateStore, StateStore
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash

from .scheduler import Process, Scheduler
from .simulated_time import sleep

KINDS = {
    "late listings": False,
    "lost answers": False,
    "answers 409": False,
    "answers 503": False,
    "no permission to delete": False,
    "slow": False,
    "outage": True,
    "full disk": True,
    "flipped bits": True,
}
"""What the weather may be -> whether a query may end of it."""

STALE_LISTING, STALE_READ = "stale listings", "stale reads"
CRASHES = {f"crash {kind} an operation": kind for kind in ("before", "after")}

LOST_COMMIT, REFUSED_COMMIT = "lost answers of a table", "batches that a table refuses"

FAULTS = (
    *(kind for kind in KINDS if kind != "late listings"), STALE_LISTING, STALE_READ, *CRASHES,
    LOST_COMMIT, REFUSED_COMMIT,
)  # fmt: skip
"""What may happen to one operation, once."""

REMEMBERED = 60.0
"""Seconds for which a client of a network file system may believe an old listing."""

Names = list[str]

IN_A_ROW, CALM = 3, 4
"""Failures after which so many operations succeed, where a query must not end of them.

A publication that meets an object takes two more to compare it.
"""


@dataclass
class Weather:
    """What every store of the world does at present."""

    until: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    due: set[str] = field(default_factory=set)
    """Faults that the next operation has that can have them."""

    def has(self, kind: str, now: float) -> bool:
        return kind in self.due or self.until.get(kind, -1.0) > now

    def fire(self, kind: str) -> None:
        self.due.discard(kind)
        self.counts[kind] += 1


@dataclass
class Directory:
    """The objects, which outlive all processes."""

    location: str
    objects: dict[str, bytes] = field(default_factory=dict)
    born: dict[str, float] = field(default_factory=dict)
    """When an object was published."""
    owner: Process | None = None
    """Has made the newest claim; None where a backup may have brought an earlier one back."""
    above: Directory | None = None
    """The checkpoint of the host, where that is a directory of its own."""
    under_way: set[str] = field(default_factory=set)
    """Bases that refer to objects that have gone since their requests began."""


@dataclass
class Memory:
    """What a machine remembers of a directory."""

    listings: dict[str, tuple[float, Names]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    """Objects that its processes have created."""
    missing: dict[str, float] = field(default_factory=dict)
    """Objects that were looked for and were not there."""


class Client(StateStore):
    """One process's view of a directory, which it shares with others of its machine."""

    def __init__(
        self, directory: Directory, process: Process, scheduler: Scheduler, weather: Weather
    ) -> None:
        self.location = directory.location
        self._directory = directory
        self._process = process
        self._scheduler = scheduler
        self._weather = weather
        self._memory: Memory = process.machine.setdefault(directory.location, Memory())

    def retrying(self) -> RetryingStateStore:
        """As in production."""
        return RetryingStateStore(self, sleep=sleep)

    # The operations ---------------------------------------------------------------------------

    def publish(self, name: str, data: bytes) -> None:
        def create() -> None:
            if name in self._directory.objects:
                raise FileExistsError(name)
            self._directory.objects[name] = data
            self._directory.born[name] = self._scheduler.now
            self._memory.own.add(name)
            if not needed <= there.keys():
                self._directory.under_way.add(name)
            if name.startswith("epochs/"):
                self._directory.owner = self._process

        # What a base refers to, and is there when the request begins.
        there = self._directory.objects
        needed = referred(data) if name.startswith("bases/") else set()
        needed = needed if needed <= there.keys() else set()
        self._do("publish", name, create)

    def read(self, name: str) -> bytes:
        return self._do("read", name, lambda: self._look(name))

    def read_part(self, name: str, start: int, length: int) -> bytes:
        return self._do("read", name, lambda: self._look(name)[start : start + length])

    def _look(self, name: str) -> bytes:
        now = self._scheduler.now
        data = self._directory.objects.get(name)
        was_missing = now - self._memory.missing.get(name, -REMEMBERED) < REMEMBERED
        if data is not None and was_missing and self._is_late(STALE_READ):
            raise FileNotFoundError(name)
        if data is None:
            self._memory.missing[name] = now
            raise FileNotFoundError(name)
        is_due = "flipped bits" in self._weather.due
        if is_due or (
            self._weather.has("flipped bits", now) and self._scheduler.random.random() < 0.1
        ):
            self._weather.fire("flipped bits")
            self._process.hurt_at = now
            return flipped(data, self._scheduler.random.randrange(8 * max(1, len(data))))
        return data

    def _is_late(self, kind: str) -> bool:
        if not (
            kind in self._weather.due or self._weather.has("late listings", self._scheduler.now)
        ):
            return False
        self._weather.fire(kind)
        self._process.was_stale = True
        return True

    def list(self, directory: str) -> list[str]:
        return self._do("list", directory, lambda: self._listed(directory))

    def _listed(self, directory: str) -> Names:
        now = self._scheduler.now
        start = len(directory) + 1
        inside = [n for n in self._directory.objects if n.startswith(f"{directory}/")]
        fresh = {name[start:].split("/")[0] for name in inside}
        known = self._memory.listings.get(directory)
        # Its own work a client knows.
        own = {leaf for leaf in fresh if f"{directory}/{leaf}" in self._memory.own}
        if known and now - known[0] < REMEMBERED:
            old = {*known[1], *own}
            if old != fresh and self._is_late(STALE_LISTING):
                return sorted(old)
        self._memory.listings[directory] = now, sorted(fresh)
        return sorted(fresh)

    def delete(self, name: str) -> None:
        def remove() -> None:
            if self._weather.has("no permission to delete", self._scheduler.now):
                self._weather.fire("no permission to delete")
                raise PermissionError(errno.EACCES, "AccessDenied", name)
            objects = self._directory.objects
            for found in [n for n in objects if n == name or n.startswith(f"{name}/")]:
                del objects[found]
            self._memory.listings.pop(name.rpartition("/")[0], None)

        self._do("delete", name, remove)

    def neighbour(self, location: str) -> StateStore | None:
        above = self._directory.above
        if above is None or above.location != location:
            return None
        return Client(above, self._process, self._scheduler, self._weather).retrying()

    def refresh(self, directory: str) -> None:
        self._memory.listings.pop(directory, None)
        for name in [n for n in self._memory.missing if n.startswith(f"{directory}/")]:
            del self._memory.missing[name]

    # What goes wrong --------------------------------------------------------------------------

    def _do(self, verb: str, name: str, action: Callable[[], Any]) -> Any:
        scheduler, process = self._scheduler, self._process
        scheduler.point()
        if process.dead:
            raise SimulatedCrash
        self._die(action)
        if self._weather.has("slow", scheduler.now):
            self._weather.fire("slow")
            sleep(scheduler.random.uniform(0.01, 5.0))
        elif scheduler.random.random() < 0.2:
            sleep(scheduler.random.uniform(0.001, 0.05))
        self._fail(verb, name, action)
        try:
            result = action()
        finally:
            if scheduler.current is not None:
                scheduler.current.calm -= 1
            scheduler.point()
        return result

    def _die(self, action: Callable[[], Any]) -> None:
        process = self._process
        for kind in CRASHES.keys() & self._weather.due:
            self._weather.due.discard(kind)
            process.crash_in, process.crash_kind = 1, CRASHES[kind]
        if process.crash_in:
            process.crash_in -= 1
            if not process.crash_in:
                if process.crash_kind == "after":
                    action()
                process.dead = True
                self._weather.counts[f"crash {process.crash_kind} an operation"] += 1
                raise SimulatedCrash

    def _fail(self, verb: str, name: str, action: Callable[[], Any]) -> None:
        if self._is_bad("outage", 1.0):
            raise ConnectionError("no answer")
        if self._is_bad("answers 503"):
            raise OSError(errno.EAGAIN, "503 Slow Down", name)
        if verb != "publish":
            return
        if self._is_bad("full disk", 1.0):
            raise OSError(errno.ENOSPC, "No space left on device", name)
        if self._is_bad("answers 409"):
            raise FileExistsError(name)
        if self._is_bad("lost answers"):
            action()
            raise TimeoutError("the answer was lost")

    def _is_bad(self, kind: str, share: float = 0.5) -> bool:
        scheduler, weather = self._scheduler, self._weather
        thread = scheduler.current
        is_due = kind in weather.due
        if not weather.has(kind, scheduler.now):
            return False
        if not is_due and scheduler.random.random() >= share:
            return False
        if not KINDS[kind] and thread is not None:
            if thread.calm > 0:
                return False
            thread.failures += 1
            if thread.failures % IN_A_ROW == 0:
                thread.calm = CALM
        elif KINDS[kind] and is_due:
            self._process.hurt_at = scheduler.now
        weather.fire(kind)
        return True


def referred(base: bytes) -> set[str]:
    """The objects that a base refers to."""
    header = Checkpoint.from_bytes(base, "a base").header
    return {f"{INDEX}/{of.name}" for of in header.attachments}


def flipped(data: bytes, bit: int) -> bytes:
    """`data` with one bit changed."""
    changed = bytearray(data or b"\0")
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    return bytes(changed)

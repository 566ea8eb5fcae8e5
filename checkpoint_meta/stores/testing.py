"""Stores for tests and rehearsals: one in memory, and one that fails where a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from typing_extensions import override

from .contract import StateStore

T = TypeVar("T")

FaultKind = Literal["crash before", "crash after", "crash half-way", "error before", "error after"]


class SimulatedCrash(BaseException):
    """The process is gone: nothing may catch this but the test that plays the machine."""


class MemoryStateStore(StateStore):
    """The contract of a store in a dictionary, which outlives the processes of a simulation."""

    def __init__(self, location: str = "memory") -> None:
        self.location = location
        self._lock = threading.Lock()
        self.objects: dict[str, bytes] = {}
        self.torn: dict[str, bytes] = {}
        """Temporary files of publications that crashed, which no reader sees."""

    @override
    def publish(self, name: str, data: bytes) -> None:
        with self._lock:
            if name in self.objects:
                raise FileExistsError(name)
            self.objects[name] = data

    @override
    def read(self, name: str) -> bytes:
        try:
            return self.objects[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        return self.read(name)[start : start + length]

    @override
    def list(self, directory: str) -> list[str]:
        start = len(directory) + 1
        below = [name[start:] for name in self._names() if name.startswith(f"{directory}/")]
        return sorted({leaf.split("/")[0] for leaf in below})

    @override
    def delete(self, name: str) -> None:
        for each in self._names():
            if each == name or each.startswith(f"{name}/"):
                del self.objects[each]

    def _names(self) -> Sequence[str]:
        # A copy, since other threads may publish meanwhile. Not a tuple: making one may begin a
        # collection of garbage, which lets them go on in the middle of it.
        return [*self.objects]


@dataclass
class Fault:
    """A fault, and the operation at which it happens."""

    kind: FaultKind
    after: int = 0
    """Operations that still succeed."""
    times: int = 1
    """Operations in a row that fail with an error; a crash is for ever."""
    verb: str = ""
    """Only operations of this name; all where empty."""


class FaultyStateStore(StateStore):
    """One process's handle on a store: it can fail, and it dies with its process.

    An interrupted publication leaves a temporary object, an interrupted deletion of a directory
    leaves the rest of it.
    """

    def __init__(self, inner: MemoryStateStore) -> None:
        self._inner = inner
        self.location = inner.location
        self.fault: Fault | None = None
        self.dead = False
        self.operations = 0

    def _do(self, verb: str, action: Callable[[], T], half: Callable[[], None] | None = None) -> T:
        if self.dead:
            # A process that is gone does nothing more, and its threads are gone with it.
            raise SimulatedCrash
        self.operations += 1
        fault = self.fault
        if fault is None or fault.verb not in ("", verb):
            return action()
        if fault.after > 0:
            fault.after -= 1
            return action()
        if fault.kind.startswith("crash"):
            self.dead = True
        fault.times -= 1
        if fault.times <= 0:
            self.fault = None
        if fault.kind == "crash half-way":
            if half is not None:
                half()
        elif fault.kind.endswith("after"):
            action()
        if self.dead:
            raise SimulatedCrash
        raise OSError("no answer from the store")

    @override
    def publish(self, name: str, data: bytes) -> None:
        def half() -> None:
            self._inner.torn[name] = data[: len(data) // 2]

        self._do("publish", lambda: self._inner.publish(name, data), half)

    @override
    def read(self, name: str) -> bytes:
        return self._do("read", lambda: self._inner.read(name))

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        return self._do("read", lambda: self._inner.read_part(name, start, length))

    @override
    def list(self, directory: str) -> list[str]:
        return self._do("list", lambda: self._inner.list(directory))

    @override
    def delete(self, name: str) -> None:
        def half() -> None:
            for child in self._inner.list(name)[:1]:
                self._inner.delete(f"{name}/{child}")

        self._do("delete", lambda: self._inner.delete(name), half)

    @override
    def refresh(self, directory: str) -> None:
        self._inner.refresh(directory)

"""Processor time and memory of a process and all below it: the JVM and Python's workers.

Not here: what is measured.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import NamedTuple, Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def processor_seconds(root: int | None = None) -> float:
    """Of all processes that are there, and of those below them that have ended."""
    # utime, stime, and the same of children that were waited for.
    return sum(sum(map(int, one.fields[11:15])) for one in _tree(root)) / _TICKS


class PeakMemory:
    """The most resident bytes, looked at ten times a second."""

    def __init__(self, root: int | None = None) -> None:
        """`root`: a process; this one without it."""
        self._root = root
        self.bytes = 0
        """Of all processes together."""
        self.worker_bytes = 0
        """Of any one Python process below this one."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            processes = _tree(self._root)
            self.bytes = max(self.bytes, sum(one.resident for one in processes))
            workers = [p.resident for p in processes if "python" in p.name and p.id != os.getpid()]
            self.worker_bytes = max([self.worker_bytes, *workers])


class _Process(NamedTuple):
    id: int
    name: str
    fields: list[str]
    """Of /proc/PID/stat, from the third on."""

    @property
    def resident(self) -> int:
        return int(self.fields[21]) * _PAGE


def _tree(root: int | None) -> list[_Process]:
    """A process, or this one, and all below it."""
    found: dict[int, _Process] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                name, _, rest = (entry / "stat").read_text().rpartition(")")
                process = int(entry.name)
                found[process] = _Process(process, name.partition("(")[2], rest.split())
    ours = {root or os.getpid()}
    while more := {p.id for p in found.values() if int(p.fields[1]) in ours} - ours:
        ours |= more
    return [found[process] for process in ours if process in found]

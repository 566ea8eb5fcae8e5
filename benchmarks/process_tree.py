"""Processor time and memory of this process and all below it: the JVM and Python's workers.

Not here: what is measured.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def processor_seconds() -> float:
    """Of all processes that are there, and of those below them that have ended."""
    # utime, stime, and the same of children that were waited for.
    return sum(sum(map(int, fields[11:15])) for fields in _tree().values()) / _TICKS


class PeakMemory:
    """The most resident bytes of all processes together, looked at ten times a second."""

    def __init__(self) -> None:
        self.bytes = 0
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
            now = sum(int(fields[21]) for fields in _tree().values()) * _PAGE
            self.bytes = max(self.bytes, now)


def _tree() -> dict[int, list[str]]:
    """Process -> the fields of its /proc/PID/stat from the third on."""
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                found[int(entry.name)] = text.rpartition(")")[2].split()
    ours = {os.getpid()}
    while more := {p for p, fields in found.items() if int(fields[1]) in ours} - ours:
        ours |= more
    return {process: found[process] for process in ours if process in found}

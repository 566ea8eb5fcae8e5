"""Samples the resident memory of the Python processes below this one."""

from __future__ import annotations

import os
import subprocess
import threading
from types import TracebackType
from typing import Self


class PythonMemory:
    """While the block runs, keeps the largest resident size of any one Python worker."""

    def __init__(self) -> None:
        self.largest = 0
        """Bytes."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(10)

    def _sample(self) -> None:
        while not self._stop.wait(0.2):
            self.largest = max([self.largest, *_workers()])


def _workers() -> list[int]:
    """Resident bytes of each Python process that descends from this one."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,rss=,comm="],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    rows = [line.split(None, 3) for line in listed.stdout.splitlines()]
    below = {os.getpid()}
    grown = True
    while grown:
        more = {int(row[0]) for row in rows if int(row[1]) in below} - below
        grown = bool(more)
        below |= more
    return [
        int(row[2]) * 1024
        for row in rows
        if int(row[0]) in below and int(row[0]) != os.getpid() and "python" in row[3]
    ]

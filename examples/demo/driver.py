"""A program in a process group of its own that can be frozen and killed from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO


class Driver:
    """The Spark driver: the Python program, its JVM, and the Python processes the JVM keeps."""

    def __init__(self, command: Sequence[str | Path], say: Callable[[str], None]) -> None:
        self._process = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        )  # fmt: skip
        self.tail: list[str] = []
        """The last lines that the program has printed."""
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout, say), daemon=True
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the Python program; also the id of the process group."""
        return self._process.pid

    def ended(self) -> int | None:
        """Exit status, None while running."""
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        """Exit status; raises `subprocess.TimeoutExpired` after so many seconds."""
        return self._process.wait(seconds)

    def freeze(self) -> None:
        """Let nothing of the driver move, so that one can look at what it has written."""
        self._send(signal.SIGSTOP)
        # A thread that is within a call of the system stops when that returns: it may still write.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(map(_moves, [self.pid, *descendants(self.pid)])):
            time.sleep(0.0005)

    def thaw(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL to everything at once; returns when it is gone."""
        self._send(signal.SIGKILL)
        self._process.wait(30)
        self._reader.join(5)

    def _send(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return
        # Spark's Python workers leave the group, so they are found as descendants: before the
        # signal, because orphans belong to nobody.
        below = descendants(self.pid) if number == signal.SIGKILL else []
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for pid in below or descendants(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _read(self, stream: IO[str] | None, say: Callable[[str], None]) -> None:
        assert stream is not None
        with stream:
            for line in stream:
                self.tail = [*self.tail[-40:], line.rstrip()]
                say(line.rstrip())


def _moves(pid: int) -> bool:
    """True if a thread of a process runs or waits; False where that cannot be seen."""
    for thread in Path("/proc", str(pid), "task").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (thread / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "RSD":
                return True
    return False


def descendants(pid: int) -> list[int]:
    """Children of `pid`, their children and so on."""
    children: dict[int, list[int]] = {}
    for child, parent in _processes():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _processes() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    table = Path("/proc")
    if (table / "self" / "stat").exists():
        # Much faster than asking `ps`, and freezing has to be fast to be of use.
        for entry in table.glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # The name, in brackets, may hold anything.
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield int(entry.name), int(fields[1])
        return
    command = ["ps", "-A", "-o", "pid=,ppid="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    for line in listed.stdout.splitlines():
        pid, parent = map(int, line.split())
        yield pid, parent

"""Processes that run the tasks of batches, and survive between them."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE, Popen
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any, Final, Self

import pyarrow as pa

from ...errors import SluiceError
from .worker import Task, receive, send

log = logging.getLogger(__name__)

_MOST_DEATHS: Final = 4
"""Attempts at one task, as Spark's spark.task.maxFailures."""

_FIRST_LINE: Final = 60.0
_LOOK_SECONDS: Final = 1.0


class _WorkerDied(Exception):
    """The process has ended without an answer."""


class _Worker:
    def __init__(self) -> None:
        # The modules that this program can import, such as the one of writeTransform.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", f"{__package__}.worker"]
        # Not by multiprocessing, which would run the user's main module again.
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, env=environment)
        self._is_late = False

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def run(self, task: Task) -> Any:
        """The answer of the process.

        Raises:
            _WorkerDied: it has none.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            send(self._process.stdin, pickle.dumps(task))
            return pickle.loads(receive(self._process.stdout))  # noqa: S301 - our own process
        except (EOFError, BrokenPipeError) as error:
            self.close()
            code = self._process.returncode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise _WorkerDied("ended after --task-timeout" if self._is_late else how) from error

    def end_late(self) -> None:
        """Kill the process, which has had its task for too long, so that its thread sees it die."""
        self._is_late = True
        self._process.kill()

    def close(self) -> None:
        """End the process, even in the middle of a task."""
        self._process.kill()
        # Closes the pipes and waits for the end. What could not be sent cannot be flushed either.
        with suppress(BrokenPipeError), self._process:
            return


class WorkerPool:
    """At most `size` processes, started when they are first needed; several queries share them."""

    def __init__(self, workers: int | None = None) -> None:
        """`workers`: None for one a core, where small batches do without."""
        self.size, self.is_default = workers or (os.cpu_count() or 1), workers is None
        self.here = Lock()
        """Held while a batch is read in this process, so that one of all queries is."""
        self._idle: deque[_Worker] = deque()
        self._turns = BoundedSemaphore(self.size)
        self._last_use = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """True if processes wait for tasks."""
        return bool(self._idle)

    def run(
        self,
        tasks: Sequence[Task],
        *,
        task_timeout: float | None = None,
        on_death: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Sequence[pa.RecordBatch]]:
        """Run the tasks at the same time; yield their answers in order.

        A process that has had a task for `task_timeout` seconds is ended; without it, it is waited
        for, and a warning says so. `on_death` learns how a process died, such as "signal 9", whose
        task is then repeated.

        Raises:
            SluiceError: a task failed, or its process died each time.
        """
        is_over, busy = Event(), dict[_Worker, _Wait]()
        watch = Thread(
            target=_watch, args=(is_over, busy, task_timeout), name="sluice-watch", daemon=True
        )
        watch.start()
        try:
            with ThreadPoolExecutor(min(self.size, len(tasks))) as threads:
                yield from threads.map(lambda task: self._run(task, busy, on_death), tasks)
        finally:
            is_over.set()

    def close(self) -> None:
        """End all processes that wait. The next task starts others."""
        while worker := self._waiting():
            worker.close()

    def rest(self, seconds: float) -> bool:
        """Close if no task has run for so long; True if none has."""
        is_unused = time.monotonic() - self._last_use >= seconds
        if is_unused:
            self.close()
        return is_unused

    def _waiting(self) -> _Worker | None:
        with suppress(IndexError):
            return self._idle.pop()
        return None

    def _run(
        self, task: Task, busy: dict[_Worker, _Wait], on_death: Callable[[str], None]
    ) -> Sequence[pa.RecordBatch]:
        deaths: list[str] = []
        while len(deaths) < _MOST_DEATHS:
            with self._turns:
                worker = self._waiting() or _Worker()
                busy[worker] = _Wait(task.partition.reader)
                try:
                    answer = worker.run(replace(task, attempt=len(deaths)))
                except _WorkerDied as death:
                    deaths.append(str(death))
                    on_death(str(death))
                    continue
                finally:
                    del busy[worker]
                    self._last_use = time.monotonic()
                self._idle.append(worker)
            if isinstance(answer, BaseException):
                raise answer
            rows: Sequence[pa.RecordBatch] = answer
            return rows
        raise SluiceError(
            "the process of a task died each time it ran",
            f"reader {task.partition.reader}",
            ", ".join(deaths),
            f"one of {_MOST_DEATHS} attempts to finish",
            "Signal 9 often means that the system is out of memory: use fewer --workers, or a "
            "smaller maxSplitBytes. Nothing is lost; start the query again.",
        )


def _watch(is_over: Event, busy: Mapping[_Worker, _Wait], task_timeout: float | None) -> None:
    """Say which processes do not answer, and end those that are late."""
    while not is_over.wait(_LOOK_SECONDS):
        now = time.monotonic()
        for worker, wait in list(busy.items()):
            seconds = now - wait.since
            if task_timeout is not None and seconds > task_timeout:
                worker.end_late()
            elif seconds > wait.next_line:
                # After one minute, two, four ...
                wait.next_line *= 2
                log.warning(
                    "reader %d: process %d has had its task for %.0f s, with %s; a bound for "
                    "that is --task-timeout",
                    wait.reader,
                    worker.pid,
                    seconds,
                    _cpu_time(worker.pid),
                )


@dataclass
class _Wait:
    """A task that a process has."""

    reader: int
    since: float = field(default_factory=time.monotonic)
    next_line: float = field(default_factory=lambda: _FIRST_LINE)
    """Seconds after which a warning says that there is no answer."""


def _cpu_time(pid: int) -> str:
    """The processor time of a process: of one that hangs it stays what it was."""
    with suppress(OSError, IndexError, ValueError):
        # utime and stime are fields 14 and 15 of proc(5), and the third is the first one after the
        # name.
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return f"{sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK'):.1f} s of processor time"
    return "no answer"

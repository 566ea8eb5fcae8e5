"""Processes that run the tasks of batches, and survive between them."""

from __future__ import annotations

import os
import pickle
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from subprocess import PIPE, Popen
from typing import Any, Final

import pyarrow as pa

from ...errors import SluiceError
from .worker import Task

_MOST_DEATHS: Final = 4
"""Attempts at one task, as Spark's spark.task.maxFailures."""


class _WorkerDied(Exception):
    """The process has ended without an answer."""


class _Worker:
    def __init__(self) -> None:
        # The modules that this program can import, such as the one of writeTransform.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", f"{__package__}.worker"]
        # Not by multiprocessing, which would run the user's main module again.
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, env=environment)

    def run(self, task: Task) -> Any:
        """The answer of the process.

        Raises:
            _WorkerDied: it has none.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # noqa: S301 - our own process
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self.close()
            code = self._process.returncode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise _WorkerDied(how) from error

    def close(self) -> None:
        """End the process, even in the middle of a task."""
        self._process.kill()
        # Closes the pipes and waits for the end. What could not be sent cannot be flushed either.
        with suppress(BrokenPipeError), self._process:
            return


class WorkerPool:
    """At most `size` processes, started when they are first needed."""

    def __init__(self, size: int, *, is_default: bool) -> None:
        """`is_default`: the user has not asked for processes, so small batches do without."""
        self.size, self.is_default = size, is_default
        self._idle: deque[_Worker] = deque()

    @property
    def is_running(self) -> bool:
        """True if processes wait for tasks."""
        return bool(self._idle)

    def run(self, tasks: Sequence[Task]) -> Iterator[Sequence[pa.RecordBatch]]:
        """Run the tasks at the same time; yield their answers in order.

        Raises:
            SluiceError: a task failed, or its process died each time.
        """
        with ThreadPoolExecutor(min(self.size, len(tasks))) as threads:
            yield from threads.map(self._run, tasks)

    def close(self) -> None:
        """End all processes. The next task starts others."""
        while self._idle:
            self._idle.pop().close()

    def _run(self, task: Task) -> Sequence[pa.RecordBatch]:
        deaths: list[str] = []
        while len(deaths) < _MOST_DEATHS:
            worker = self._idle.pop() if self._idle else _Worker()
            try:
                answer = worker.run(replace(task, attempt=len(deaths)))
            except _WorkerDied as death:
                deaths.append(str(death))
                continue
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

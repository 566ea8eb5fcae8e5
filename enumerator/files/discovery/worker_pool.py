"""Runs work that finds more work: in the caller, or in a pool of threads.

Listings wait for answers of a store or a network file system, so a pool pays there. On a local disk
the caller alone is fastest.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

_AHEAD = 4
"""Results held in advance, in addition to one in each thread: each may be 10,000 files."""

_PATIENCE = 0.2
"""Seconds after which a thread that waits to hand over looks whether the run was stopped."""


class More(Generic[TaskT]):
    """Among results: a task that has turned up."""

    __slots__ = ("task",)

    def __init__(self, task: TaskT) -> None:
        self.task = task


Work = Callable[[TaskT], Iterator[ResultT | More[TaskT]]]


def in_pool(first: Iterable[TaskT], work: Work[TaskT, ResultT], workers: int) -> Iterator[ResultT]:
    """The results of `first` and of all tasks that turn up, in no order.

    Only a few results are held that were not asked for yet. The first exception of any thread ends
    all of them, and is raised.
    """
    if workers == 1:
        stack = list(first)
        while stack:
            # Depth first: so few directories wait at any time, however many there are.
            for item in work(stack.pop()):
                if isinstance(item, More):
                    stack.append(item.task)
                else:
                    yield item
        return
    pool: _WorkerPool[TaskT, ResultT] = _WorkerPool(first, work, workers)
    try:
        yield from pool.results()
    finally:
        pool.stop()


class _WorkerPool(Generic[TaskT, ResultT]):
    def __init__(self, first: Iterable[TaskT], work: Work[TaskT, ResultT], workers: int) -> None:
        self._tasks = list(first)
        self._work = work
        self._workers = workers
        self._busy = 0
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        # Bounded: while results are not taken the listing rests, and memory does not grow.
        self._out: queue.Queue[ResultT | BaseException | None] = queue.Queue(_AHEAD)

    def results(self) -> Iterator[ResultT]:
        for _ in range(self._workers):
            # Daemons: a request without an answer must not keep the process alive.
            threading.Thread(target=self._work_on, name="sluice-listing", daemon=True).start()
        running = self._workers
        while running:
            item = self._out.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item

    def stop(self) -> None:
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    def _work_on(self) -> None:
        while (task := self._next()) is not None:
            try:
                for item in self._work(task[0]):
                    if isinstance(item, More):
                        self._add(item.task)
                    elif not self._give(item):
                        break
            except BaseException as error:  # noqa: BLE001 - raised where results are taken
                # Among the results: it is raised after those that came before it.
                self._give(error)
            finally:
                self._done()
        self._give(None)

    def _next(self) -> tuple[TaskT] | None:
        with self._changed:
            # While another thread is busy, more tasks may turn up.
            self._changed.wait_for(lambda: self._tasks or not self._busy or self._stopped.is_set())
            if self._stopped.is_set() or not self._tasks:
                return None
            self._busy += 1
            return (self._tasks.pop(),)

    def _add(self, task: TaskT) -> None:
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def _done(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    def _give(self, item: ResultT | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._out.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False

"""Threads of which one runs at a time, and a clock that only the scheduler moves.

At every lock, event, sleep and store operation a seeded generator decides which thread goes on. The
product's code is untouched: `simulated_time.py` gives its modules another `threading` and `time`.
Each thread is a greenlet, since a switch between threads of the machine takes most of a run's time.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from greenlet import getcurrent, greenlet

from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash

EPOCH = 1_700_000_000.0


_HERE = threading.local()


def is_simulated() -> bool:
    """True in the thread of the machine that runs a scheduler."""
    return bool(getattr(_HERE, "is_simulated", False))


@contextlib.contextmanager
def simulated_thread() -> Iterator[None]:
    """Make this thread one that `is_simulated`."""
    _HERE.is_simulated = True
    try:
        yield
    finally:
        _HERE.is_simulated = False


class Process:
    """What is killed, paused, and has a wall clock, as a whole."""

    def __init__(self, name: str, machine: dict[str, Any] | None = None) -> None:
        """`machine` is what its machine remembers of directories; its own by default."""
        self.name = name
        self.machine: dict[str, Any] = {} if machine is None else machine
        self.dead = False
        self.paused_until = 0.0
        self.offset = 0.0
        self.crash_in = 0
        """Store operations until it dies; 0 for never."""
        self.crash_kind = ""
        self.hurt_at = float("-inf")
        """When it was last shown what a query may end of."""
        self.was_stale = False
        """Was shown what was there before."""
        self.threads: list[Thread] = []


class Thread:
    """As `threading.Thread`, for the scheduler."""

    def __init__(
        self, target: Any = None, name: str = "", daemon: bool = True, process: Any = None
    ) -> None:
        self.process: Process = process or WORLD[-1].process
        self.name = name
        self.ready: Callable[[], bool] | None = None
        self.wake_at: float | None = None
        self.ended = False
        self.failures = self.calm = 0
        """Store operations that have failed; operations that will not fail after that."""
        self.go: Callable[[], Any]
        self._target = target

    def start(self) -> None:
        scheduler = WORLD[-1]
        scheduler.threads.append(self)
        self.process.threads.append(self)
        self.go = greenlet(lambda: self._run(scheduler), scheduler.main).switch

    def _run(self, scheduler: Scheduler) -> None:
        try:
            if not self.process.dead:
                self._target()
        except SimulatedCrash:
            pass
        except BaseException as error:  # noqa: BLE001 - a fault of the product or of the model
            scheduler.failure = scheduler.failure or error
        self.ended = True
        scheduler.threads.remove(self)
        self.process.threads.remove(self)
        scheduler.hand_over(None)

    def can_run(self, now: float) -> bool:
        process, wake_at = self.process, self.wake_at
        if process.dead or process.paused_until > now:
            return process.dead
        if self.ready is None:
            return wake_at is None or wake_at <= now
        return self.ready() or (wake_at is not None and wake_at <= now)

    @property
    def next_time(self) -> float:
        wake = float("inf") if self.wake_at is None else self.wake_at
        if (self.ready is None and self.wake_at is None) or (self.ready and self.ready()):
            wake = 0.0
        return max(wake, self.process.paused_until)


class Scheduler:
    """Decides who goes on; nothing else in a run is left to chance."""

    def __init__(self, seed: int, switching: float = 0.3) -> None:
        self.random = random.Random(seed)
        self.switching = switching
        self.now = 0.0
        self.steps = self.switches = 0
        self.digest = 0
        """Of all decisions: two runs of one seed have the same."""
        self.threads: list[Thread] = []
        self.current: Thread | None = None
        self.failure: BaseException | None = None
        self._budget = 0
        self._until = 0.0
        self.main = getcurrent()

    @property
    def process(self) -> Process:
        assert self.current is not None
        return self.current.process

    # The operator's side, outside of all threads ----------------------------------------------

    def run(self, steps: int, seconds: float = float("inf")) -> None:
        """Let the threads go on for some steps, or until some time has passed."""
        self._budget, self._until = steps, self.now + seconds
        following = self._choose(None)
        if following is not None:
            self._resume(following)
        if self.failure is not None:
            raise self.failure

    def _resume(self, thread: Thread) -> None:
        self.current = thread
        while self.current is not None:
            self.current.go()

    def kill(self, process: Process) -> None:
        """The process is gone; what its threads still do reaches nothing."""
        process.dead = True
        budget, self._budget = self._budget, 0
        while process.threads:
            self._resume(process.threads[0])
        self._budget = budget

    # The threads' side -----------------------------------------------------------------------

    def point(self) -> None:
        """A place where another thread may go on."""
        me = self.current
        if me is None:
            return
        self.steps += 1
        self._budget -= 1
        self.hand_over(me)
        if me.process.dead:
            raise SimulatedCrash

    def wait(self, ready: Callable[[], bool] | None, seconds: float | None) -> bool:
        """Until `ready` or the time is over; False for the latter."""
        me = self.current
        if me is None:
            return ready is None or ready()
        me.ready = ready
        me.wake_at = None if seconds is None or seconds < 0 else self.now + seconds
        try:
            self.point()
        finally:
            me.ready = me.wake_at = None
        return ready is None or ready()

    def hand_over(self, me: Thread | None) -> None:
        following = self._choose(me)
        if following is me and me is not None:
            return
        self.switches += 1
        self.current = following
        if me is not None:
            self.main.switch()

    def _choose(self, me: Thread | None) -> Thread | None:
        for thread in self.threads:
            if thread.process.dead:
                return thread
        if self._budget <= 0 or self.failure is not None:
            return None
        able = [t for t in self.threads if t.can_run(self.now)]
        if not able:
            times = [t.next_time for t in self.threads]
            soonest = min(times, default=float("inf"))
            if soonest > self._until:
                self.now = self.now if self._until == float("inf") else max(self.now, self._until)
                return None
            self.now = max(self.now, soonest)
            able = [t for t in self.threads if t.can_run(self.now)]
        if me in able and self.random.random() >= self.switching:
            return me
        chosen = self.random.choice(able)
        self.digest = hash((self.digest, len(able), able.index(chosen), self.steps))
        return chosen


WORLD: list[Scheduler] = []
"""The scheduler of the run that is under way, last."""


class Lock:
    """As `threading.RLock`."""

    def __init__(self) -> None:
        self._owner: Thread | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = WORLD[-1]
        me = scheduler.current
        scheduler.point()
        if self._is_free(me) or me is None:
            self._owner, self._count = me, self._count + 1
            return True
        if not blocking or not scheduler.wait(
            lambda: self._is_free(me), None if timeout < 0 else timeout
        ):
            return False
        self._owner, self._count = me, self._count + 1
        return True

    def _is_free(self, me: Thread | None) -> bool:
        # A thread that is gone holds nothing: its whole process is.
        owner = self._owner
        if owner is not None and owner.ended:
            self._owner, self._count = None, 0
        return self._owner is None or self._owner is me

    def release(self) -> None:
        self._count -= 1
        if self._count <= 0:
            self._owner, self._count = None, 0
            me = WORLD[-1].current
            if me is not None and not me.process.dead:
                WORLD[-1].point()

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def set_free(self) -> int:
        count, self._count, self._owner = self._count, 0, None
        return count

    def take_back(self, count: int) -> None:
        self.acquire()
        self._count = count


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._is_set or WORLD[-1].wait(self.is_set, timeout)

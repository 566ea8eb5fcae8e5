"""Gives the product's modules the threads, locks and clock of the scheduler."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import pool
from typing import Any

from pyspark_sluice.enumerator.coordinator import threads

from .scheduler import EPOCH, WORLD, Event, Lock, Thread, is_simulated, simulated_thread

# Other tests of the process leave threads behind, which use the product's modules all the while.
_REAL_WAIT_FOR, _REAL_NOTIFY_ALL = threads.BoundedLock.wait_for, threads.BoundedLock.notify_all


def _wait_for(self: Any, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
    if not is_simulated():
        return _REAL_WAIT_FOR(self, predicate, timeout)
    scheduler = WORLD[-1]
    end = None if timeout is None else scheduler.now + timeout
    while not (result := predicate()):
        left = None if end is None else end - scheduler.now
        if left is not None and left <= 0:
            break
        number = vars(self).setdefault("notified", 0)
        count = self._lock.set_free()
        scheduler.wait(partial(_was_notified, self, number), left)
        self._lock.take_back(count)
    return result


def _was_notified(condition: Any, number: int) -> bool:
    return bool(condition.notified != number)


def _notify_all(self: Any) -> None:
    if not is_simulated():
        _REAL_NOTIFY_ALL(self)
        return
    vars(self)["notified"] = vars(self).get("notified", 0) + 1


def now() -> float:
    """Seconds that have passed, as `time.monotonic`."""
    return WORLD[-1].now if is_simulated() else time.monotonic()


def wall_clock() -> float:
    """What the clock on the wall of this process shows, as `time.time`."""
    if not is_simulated():
        return time.time()
    scheduler = WORLD[-1]
    me = scheduler.current
    return EPOCH + scheduler.now + (me.process.offset if me is not None else 0.0)


def sleep(seconds: float) -> None:
    """As `time.sleep`."""
    if is_simulated():
        WORLD[-1].wait(None, seconds)
    else:
        time.sleep(seconds)


class _Pool:
    """As a pool of threads, whose calls come one after the other."""

    def __init__(self, *_: object, **__: object) -> None:
        self.map: Any = lambda call, items, chunksize=1: [call(item) for item in items]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def shutdown(self, *_: object, **__: object) -> None:
        return


class _Words:
    """Random words, out of the seed."""

    @property
    def _random(self) -> Any:
        return WORLD[-1].random if is_simulated() else random

    def token_hex(self, count: int) -> str:
        return f"{self._random.getrandbits(8 * count):0{2 * count}x}"

    def uuid4(self) -> Any:
        return types.SimpleNamespace(hex=self.token_hex(16))

    def uniform(self, low: float, high: float) -> float:
        return float(self._random.uniform(low, high))


_TIME = types.SimpleNamespace(
    time=wall_clock, monotonic=now, perf_counter=now, sleep=sleep,
    time_ns=lambda: int(wall_clock() * 1e9),
)  # fmt: skip
_FUNCTIONS = {time.time: wall_clock, time.monotonic: now, time.sleep: sleep}


def _either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **named: Any) -> Any:
        kind = simulated if is_simulated() else real
        return kind(*args, **named)

    return create


_THREADING = types.SimpleNamespace(
    Thread=_either(Thread, threading.Thread), RLock=_either(Lock, threading.RLock),
    Lock=_either(Lock, threading.Lock), Event=_either(Event, threading.Event),
    Condition=threading.Condition,
)  # fmt: skip
_PARTS = (
    "enumerator", "checkpoint_meta", "reader", "connector.spark", "connector.source", "tables",
    "connector.host.batch_log", "connector.host.embedded_query", "connector.views.state_view",
)  # fmt: skip


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    words = _Words()
    by_name = {
        "time": (time, _TIME), "threading": (threading, _THREADING),
        "uuid": (sys.modules["uuid"], words), "secrets": (sys.modules["secrets"], words),
    }  # fmt: skip
    for name, module in list(sys.modules.items()):
        if not name.startswith(tuple(f"pyspark_sluice.{part}" for part in _PARTS)):
            continue
        for attribute, (real, simulated) in by_name.items():
            if vars(module).get(attribute) is real:
                yield module, attribute, simulated
        for attribute, simulated in (
            ("ThreadPool", _Pool), ("ThreadPoolExecutor", _Pool), ("_JITTER", words),
            ("_COUNTING", contextlib.nullcontext()),
        ):  # fmt: skip
            if attribute in vars(module):
                yield module, attribute, simulated
    # It is imported where it is needed.
    yield pool, "ThreadPool", _either(_Pool, pool.ThreadPool)
    for function in _functions():
        # Clocks and sleeps that are defaults of parameters.
        defaults = function.__defaults__ or ()
        if any(_is_real(value) for value in defaults):
            new = tuple(_FUNCTIONS[v] if _is_real(v) else v for v in defaults)
            yield function, "__defaults__", new
    yield threads.BoundedLock, "wait_for", _wait_for
    yield threads.BoundedLock, "notify_all", _notify_all


def _functions() -> Iterator[types.FunctionType]:
    """Those of all modules and their classes: gc does not list what the tests have frozen."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("pyspark_sluice."):
            continue
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for value in [v for owner in (module, *classes) for v in list(vars(owner).values())]:
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if isinstance(function, types.FunctionType) and function.__module__ == name:
                yield function


def _is_real(value: Any) -> bool:
    return isinstance(value, types.BuiltinFunctionType) and value in _FUNCTIONS


@contextlib.contextmanager
def in_simulated_time() -> Iterator[None]:
    """The product's modules, as they are loaded by now, have the scheduler's threads and clock."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in list(_replacements()):
            is_own = name in vars(owner) or name == "__defaults__"
            old = getattr(owner, name)
            setattr(owner, name, value)
            if is_own:
                stack.callback(setattr, owner, name, old)
            else:
                stack.callback(delattr, owner, name)
        stack.enter_context(simulated_thread())
        yield

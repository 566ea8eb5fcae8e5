"""The way in: prepares the process before anything heavy is imported."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress


def run() -> int:
    """Run the command that the process was given; the exit code."""
    from ..session.processes import import_late, leave_pandas_out

    _open_streams()
    # Imports make many objects and no garbage: a fifth of the time to start was spent looking.
    gc.set_threshold(150_000, 20, 20)
    # At its end the interpreter would look through all of them for a fifth of a second.
    atexit.register(gc.freeze)
    # pydantic would read the metadata of every installed package to look for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    waits = any(argument.startswith(("--every", "--config")) for argument in sys.argv)
    if waits or (sys.argv[1:2] == ["run"] and os.path.exists("sluice.toml")):
        # A run that waits returns memory; Arrow's own allocator keeps what its threads have freed.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        _share_arenas()
    # numpy's linear algebra, which nothing here uses, starts a thread for each core, and they spin.
    is_free = {_THREADS, "OMP_NUM_THREADS"}.isdisjoint(os.environ)
    if is_free:
        os.environ[_THREADS] = "1"
    # Before the commands are imported: they make arrays, and with the first one pyarrow looks.
    leave_pandas_out()
    if is_free:
        # Code of the user's runs in processes of tasks.
        del os.environ[_THREADS]
    import_late("pyarrow.compute", "pyarrow.parquet")
    from .app import main

    return main()


def _open_streams() -> None:
    """Open the standard streams that the caller has closed: else files would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _share_arenas() -> None:
    """Have the C library (glibc) keep free memory for all threads, of which each feed has some."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


_M_ARENA_MAX = -8
_THREADS = "OPENBLAS_NUM_THREADS"

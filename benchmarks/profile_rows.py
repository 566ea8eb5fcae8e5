"""Where the time of decoding goes: each shape in this process, on one core, without Spark.

Processor time, so that a busy machine changes little. What the parsers of pyarrow and msgspec take
is counted to the function that calls them.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from pyspark.sql.types import StructType

from .bench import Bench, Result
from .decoding import decoded
from .shapes import SHAPES, Shape

_RUNS = 3
_SHOWN = 4


def profile(bench: Bench) -> Iterator[Result]:
    """What decoding a row of each shape costs, and which functions take most of it."""
    for shape in SHAPES:
        yield _profiled(shape, min(bench.data.shape(shape).iterdir()))


def _profiled(shape: Shape, path: Path) -> Result:
    schema = cast(StructType, StructType.fromDDL(shape.schema))

    def run() -> int:
        batches = decoded(path, shape.file_format, schema, shape.options)
        return sum(batch.num_rows for batch in batches)

    rows = run()
    seconds = min(_seconds(run) for _ in range(_RUNS))
    note = f"{path.stat().st_size / seconds / 1e6:.0f} MB/s; {_most(run)}"
    work = f"{shape.file_format}, {shape.name}, a row"
    return Result(work, seconds / rows * 1e9, None, "ns", "", note)


def _seconds(run: Callable[[], int]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def _most(run: Callable[[], int]) -> str:
    """The functions that take most of the time by themselves, with their share of it."""
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(run)
    # Place and name of a function -> calls, calls, time of its own, time with what it calls.
    found = cast(Any, pstats.Stats(profiler)).stats
    most = sorted(found.items(), key=lambda item: -item[1][2])[:_SHOWN]
    whole = max(sum(times[2] for times in found.values()), 1e-9)
    return ", ".join(f"`{_name(file, name)}` {of[2] / whole:.0%}" for (file, _, name), of in most)


def _name(file: str, function: str) -> str:
    place = Path(file)
    if place.suffix != ".py":
        return function.strip("{}").removeprefix("built-in method ").replace("|", "/")
    return f"{place.parent.name}/{place.stem}.{function}"

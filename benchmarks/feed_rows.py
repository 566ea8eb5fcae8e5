"""Ten feeds in one process of `sluice run --config` against one feed: their start, and a daemon."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .bench import Bench, Result, median
from .process_tree import PeakMemory, processor_seconds
from .streams import PATIENCE

_FEEDS, _KNOWN = 10, 10_000
_LARGE = 20_000_000
"""Bytes of a new file: more than is read in the process itself."""

_SETTLED = 12.0
"""Seconds after the last batch, in which the processes end and give memory back."""


def feeds(bench: Bench) -> Iterator[Result]:
    """`sluice run --config`: ten feeds of 10,000 known files each against one."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        home = Path(name)
        for feed in range(_FEEDS):
            _land(home / f"in/{feed}", _KNOWN)
        all_feeds, one = _file(home, _FEEDS), _file(home, 1)
        _run(all_feeds)
        seconds: dict[Path, list[tuple[float, float]]] = {all_feeds: [], one: []}
        for _ in range(bench.runs):
            # Turn by turn: the machine has other things to do.
            for file, measured in seconds.items():
                measured.append(_run(file))
        for part, what in enumerate(("time", "processor time")):
            ten, alone = (median([each[part] for each in s]) for s in seconds.values())
            work = f"`sluice run`, nothing new, ten feeds of {_KNOWN:,} known files: {what}"
            yield Result(work, ten, alone, "s", "one feed")
        peaks = []
        for number, file in enumerate((all_feeds, one)):
            for feed in range(_FEEDS):
                text = '{"id": 1, "name": "a name of some length", "value": 1.5}\n'
                path = home / f"in/{feed}/large-{number}.json"
                path.write_text(text * (_LARGE // len(text)))
            peaks.append(_daemon(file))
        work = (
            f"`sluice run --every`, ten feeds, each with a new file of {_LARGE // 10**6} MB: memory"
        )
        yield Result(
            work, peaks[0] / 1e6, peaks[1] / 1e6, "MB", "one feed", "all processes, start included"
        )


def _land(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number}.json").write_text(f'{{"id": {number}, "name": "n", "value": 0.5}}\n')


def _file(home: Path, count: int) -> Path:
    lines = ["[defaults]", 'format = "json"', 'schema = "id long, name string, value double"']
    for feed in range(count):
        lines += [f"[feed.f{feed}]", f'path = "in/{feed}"', f'to = "delta:table/{feed}"']
        lines += [f'checkpoint = "checkpoint/{feed}"']
    file = home / f"{count}.toml"
    file.write_text("\n".join(lines))
    return file


def _call(file: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "pyspark_sluice", "run", "--config", str(file), "--json", *more]


def _run(file: Path) -> tuple[float, float]:
    """Seconds, and seconds of processors, of a run to its end."""
    began, before = time.perf_counter(), processor_seconds()
    subprocess.run(_call(file), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began, processor_seconds() - before


def _daemon(file: Path) -> int:
    """The most bytes of a process that stays, and of its workers."""
    call = _call(file, "--every", "1s")
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    with PeakMemory(process.pid) as peak:
        assert process.stdout is not None
        for _ in range(int(file.stem)):
            process.stdout.readline()  # Each feed has one batch.
        time.sleep(_SETTLED)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    return peak.bytes

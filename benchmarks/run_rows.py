"""`sluice run` in a process of its own: the same call under Spark is the peer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .bench import Bench, Result, median
from .data import SMALL_SCHEMA, write_small
from .process_tree import PeakMemory, processor_seconds
from .streams import PATIENCE, Input

_KNOWN, _NEW, _ROWS = 10_000, 100, 100
_ENDS = ("Delta version", "end of the process")
_BATCHES = 62
"""Files for new columns, every other one of which has one."""
_QUIET = 60.0
"""Seconds for which a run without new files is watched."""


def command(read: Input, to: str, checkpoint: Path, *more: str) -> list[str]:
    """Return the call of `sluice run` for these files."""
    options = [f"--option={name}={value}" for name, value in read.options.items()]
    call = [sys.executable, "-m", "pyspark_sluice", "run", str(read.path), "--to", to]
    call += ["--checkpoint", str(checkpoint), "--format", read.file_format]
    schema = ["--schema", read.schema] if read.schema else []
    return [*call, *schema, "--json", *options, *more]


def ran(call: Sequence[str]) -> tuple[float, PeakMemory]:
    """Run the call to its end; the seconds of its batches, and its memory."""
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    with PeakMemory(process.pid) as peak:
        output, _ = process.communicate(timeout=PATIENCE)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, call)
    return sum(_batch_seconds(output)), peak


def _batch_seconds(output: str | bytes) -> list[float]:
    # The last line is about the run.
    documents = map(json.loads, output.splitlines())
    return [document["seconds"] for document in documents if "run" not in document]


def new_columns(bench: Bench) -> Iterator[Result]:
    """`sluice run`: a batch of one file with a new column, and one without."""
    with_it, without = list[float](), list[float]()
    options = {"maxFilesPerTrigger": "1", "inferSampleFiles": "1"}
    for _ in range(bench.runs):
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
            home = Path(name)
            (home / "in").mkdir()
            for number in range(_BATCHES):
                path = home / "in" / f"{number:03}.json"
                new = {f"c{number}": number} if number % 2 else {}
                rows = ({"id": i, "name": f"name-{i}", **new} for i in range(_ROWS))
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
                os.utime(path, (number, number))
            call = _call(Input(home / "in", "", "json", options), home)
            output = subprocess.run(call, stdout=subprocess.PIPE, check=True).stdout
            seconds = _batch_seconds(output)
            if len(seconds) != _BATCHES:
                msg = f"{len(seconds)} batches instead of {_BATCHES}"
                raise RuntimeError(msg)
            # The first two start processes and create the table.
            without += seconds[2::2]
            with_it += seconds[3::2]
    yield Result(
        f"a batch of {_ROWS} rows with a new column", median(with_it), median(without), "s",
        "a batch without one", f"medians of {len(with_it)} and {len(without)}",
    )  # fmt: skip


def starts(bench: Bench) -> Iterator[Result]:
    """`sluice run`: from its start to the Delta version, and what it takes while it waits."""
    home = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    try:
        (home / "in").mkdir()
        for number in range(_KNOWN):
            write_small(home / "in" / f"{number}.json", number)
        read = Input(home / "in", SMALL_SCHEMA, "json")
        own = _seconds(read, home / "own", 2 * bench.runs)
        peer = _seconds(read, home / "peer", bench.runs, "--spark", "local[2]")
        runs = f"medians of {2 * bench.runs} and {bench.runs}"
        for end, seconds, of_peer in zip(_ENDS, own, peer, strict=True):
            yield Result(
                f"{_NEW} files of {_ROWS} rows among {_KNOWN:,}", seconds, of_peer, "s",
                "--spark local[2]", f"start of the process to the {end}, {runs}",
            )  # fmt: skip
        yield from _waiting(read, home / "own")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _call(read: Input, home: Path, *more: str) -> list[str]:
    return command(read, f"delta:{home / 'table'}", home / "checkpoint", *more)


def _seconds(read: Input, home: Path, runs: int, *more: str) -> tuple[float, float]:
    """Seconds from the start of the process to the Delta version, and to its end."""
    call = _call(read, home, *more)
    subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
    to_version, to_end = [], []
    for _ in range(runs):
        _land(read.path)
        began = time.time()
        subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
        to_end.append(time.time() - began)
        newest = max((home / "table" / "_delta_log").glob("*.json"))
        to_version.append(newest.stat().st_mtime - began)
    return median(to_version), median(to_end)


def _land(folder: Path) -> None:
    first = len(list(folder.iterdir()))
    for number in range(first, first + _NEW):
        rows = ({"id": i, "name": f"name-{i}", "value": i / 8} for i in range(_ROWS))
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _waiting(read: Input, home: Path) -> Iterator[Result]:
    _land(read.path)
    process = subprocess.Popen(_call(read, home, "--every", "60s"), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        # After ten seconds it returns memory to the system.
        time.sleep(15)
        began, before = time.perf_counter(), processor_seconds(process.pid)
        with PeakMemory(process.pid) as peak:
            time.sleep(_QUIET)
        share = (processor_seconds(process.pid) - before) / (time.perf_counter() - began)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    work = "waiting for files, `--every 60s`"
    yield Result(f"{work}: memory", peak.bytes / 1e6, None, "MB", "", "resident")
    yield Result(f"{work}: share of a core", 100 * share, None, "%")

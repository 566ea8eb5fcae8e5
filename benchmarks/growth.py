"""How the cost of `sluice run` and of the commands grows with the work: `make bench BENCH=growth`.

Each figure is the processor time, or the memory, of a whole process at n, 10 n and, where it is
quick, 100 n. The exponent is that of the cost above a run with one piece of work: 1 is linear, 2 a
square. Above `MOST` the row fails.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from .bench import Bench
from .process_tree import PeakMemory

MOST: Final = 1.1
"""The greatest exponent of a healthy axis."""

_LEAST: Final = 0.15
"""Seconds, or shares of the memory at the start: less than this is noise, and has no exponent."""

_BATCHES: Final = 50
"""Batches into which a limit on rows divides a file."""

_ROW = "id long, name string"


@dataclass(frozen=True)
class Axis:
    """One kind of work, in sizes that are ten times one another."""

    name: str
    sizes: Sequence[int]
    make: Callable[[Path, int], object]
    """Makes the files of a size in a folder."""

    options: Callable[[int], Mapping[str, object]] = lambda _: {}
    """Options of the run over the files of a size."""

    file_format: str = "json"
    schema: Callable[[int], str] = lambda _: _ROW
    command: Sequence[str] = field(default=())
    """What is measured after the run; the run itself if empty. STATE and FILE are replaced."""


def growth(bench: Bench) -> Iterator[str]:
    """How processor time and memory grow with files, rows, batches, columns, members ..."""
    failed = []
    yield f"\n| work | sizes | CPU, s | exponent | memory, MiB | exponent |\n{6 * '|---'}|"
    for axis in AXES:
        line, exponents = _measured(axis, min(bench.runs, 3))
        yield line
        if max(exponents, default=0.0) > MOST:
            failed.append(axis.name)
    if failed:
        msg = f"cost grows faster than the work: {', '.join(failed)}"
        raise RuntimeError(msg)


def _measured(axis: Axis, runs: int) -> tuple[str, list[float]]:
    costs = [_cost(axis, size, runs) for size in (1, *axis.sizes)]
    seconds, memory = zip(*costs, strict=True)
    of_seconds = _exponents(seconds, _LEAST)
    of_memory = _exponents(memory, _LEAST * memory[0])
    cells = [
        axis.name,
        " / ".join(f"{size:,}" for size in axis.sizes),
        " / ".join(f"{each:.2f}" for each in seconds[1:]),
        " / ".join(f"{each:.2f}" for each in of_seconds) or "-",
        " / ".join(f"{each:.0f}" for each in memory[1:]),
        " / ".join(f"{each:.2f}" for each in of_memory) or "-",
    ]
    return f"| {' | '.join(cells)} |", [*of_seconds, *of_memory]


def _exponents(costs: Sequence[float], least: float) -> list[float]:
    """Return the exponent of each tenfold step; `costs` begin with that of one piece of work."""
    above = [max(cost - costs[0], 0.0) for cost in costs[1:]]
    pairs = itertools.pairwise(above)
    return [math.log10(large / max(small, least)) for small, large in pairs if large > least]


def _cost(axis: Axis, size: int, runs: int) -> tuple[float, float]:
    """Return the least seconds and MiB of some runs."""
    with tempfile.TemporaryDirectory(prefix="sluice-growth-") as name:
        home = Path(name)
        (home / "in").mkdir()
        axis.make(home / "in", size)
        costs = []
        for _ in range(runs):
            if not axis.command:
                shutil.rmtree(home / "out", ignore_errors=True)
                costs.append(_process(_run(axis, size, home)))
                continue
            if not (home / "out").exists():
                _process(_run(axis, size, home))
            names = {"STATE": str(home / "out" / "checkpoint"), "FILE": "*/0000000.json"}
            costs.append(_process([names.get(word, word) for word in axis.command]))
        return min(cost[0] for cost in costs), min(cost[1] for cost in costs)


def _run(axis: Axis, size: int, home: Path) -> list[str]:
    to, checkpoint = home / "out" / "table", home / "out" / "checkpoint"
    options = [f"--option={name}={value}" for name, value in axis.options(size).items()]
    words = ["run", str(home / "in"), "--to", f"delta:{to}", "--checkpoint", str(checkpoint)]
    return [*words, "--format", axis.file_format, "--schema", axis.schema(size), *options]


def _process(words: Sequence[str]) -> tuple[float, float]:
    """Run `sluice`; the processor seconds and the peak MiB of it and its workers together."""
    call = [sys.executable, "-m", "pyspark_sluice", *words]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(call, stdout=output, stderr=subprocess.STDOUT)
        with PeakMemory(process.pid) as peak:
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise subprocess.CalledProcessError(process.returncode, call, output.read()[-2000:])
    return usage.ru_utime + usage.ru_stime, peak.bytes / 2**20


# The files ------------------------------------------------------------------------------------


def _small_files(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"{number:07}.json").write_text(_line(number))


def _dated_files(folder: Path, count: int) -> None:
    for number in range(count):
        day = folder / f"date=2026-01-{1 + number * 28 // count:02}"
        day.mkdir(exist_ok=True)
        (day / f"{number:07}.json").write_text(_line(number))


def _line(number: int) -> str:
    return f'{{"id": {number}, "name": "name-{number}"}}\n'


def _members(folder: Path, count: int) -> None:
    with zipfile.ZipFile(folder / "members.zip", "w") as archive:
        for number in range(count):
            archive.writestr(f"{number:07}.json", _line(number))


def _records(suffix: str, folder: Path, count: int) -> None:
    path = folder / f"records.{suffix}"
    rows = {"id": range(count), "name": [f"name-{number} " + 40 * "x" for number in range(count)]}
    table = pa.table({"id": pa.array(rows["id"], pa.int64()), "name": rows["name"]})
    match suffix:
        case "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=max(1, count // 10))
        case "orc":
            pyarrow.orc.write_table(table, path)
        case "avro":
            fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
            schema = {"type": "record", "name": "row", "fields": fields}
            with path.open("wb") as out:
                fastavro.writer(out, schema, table.to_pylist())
        case _:
            write = _WRITERS[suffix]
            with path.open("w") as out:
                out.writelines(write(row) for row in table.to_pylist())


_WRITERS: Mapping[str, Callable[[Mapping[str, object]], str]] = {
    "json": lambda row: json.dumps(row) + "\n",
    "csv": lambda row: f"{row['id']},{row['name']}\n",
    "txt": lambda row: f"{row['name']}\n",
    "xml": lambda row: f"<row><id>{row['id']}</id><name>{row['name']}</name></row>\n",
}


def _wide(folder: Path, columns: int) -> None:
    line = json.dumps({f"c{at}": at for at in range(columns)}) + "\n"
    (folder / "wide.json").write_text(200 * line)


def _deep(folder: Path, levels: int) -> None:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    (folder / "deep.json").write_text(2_000 * (json.dumps(value) + "\n"))


def _row_groups(folder: Path, count: int) -> None:
    table = pa.table({"id": pa.array(range(10 * count), pa.int64()), "name": ["x"] * (10 * count)})
    pyarrow.parquet.write_table(table, folder / "groups.parquet", row_group_size=10)


def _values(folder: Path, count: int) -> None:
    (folder / "values.json").write_text("".join(map(_line, range(count))))


# The axes -------------------------------------------------------------------------------------

Options = Callable[[int], Mapping[str, object]]

_LIMITS_AND_ORDERS: Mapping[str, Options] = {
    "maxFilesPerTrigger": lambda n: {"maxFilesPerTrigger": -(-n // 5)},
    "maxBytesPerTrigger": lambda n: {"maxBytesPerTrigger": 8 * n},
    "maxRowsPerTrigger": lambda n: {"maxRowsPerTrigger": -(-n // 5)},
    "maxBatchDuration": lambda _: {"maxBatchDuration": "60s"},
    "freshShare": lambda _: {"freshShare": 0.2},
    "fileOrder=name": lambda _: {"fileOrder": "name"},
    "fileOrder=newestFirst": lambda _: {"fileOrder": "newestFirst"},
}
_COMMANDS = (
    ("status", "STATE"),
    ("files", "STATE", "--matching", "FILE"),
    ("checkpoints", "STATE"),
    ("verify", "STATE"),
    ("requeue", "STATE", "--matching", "FILE"),
    ("requeue", "STATE", "--in-state", "read"),
)
_FORMATS: Mapping[str, tuple[str, int]] = {
    "json": ("json", 20_000), "csv": ("csv", 20_000), "txt": ("text", 20_000),
    "xml": ("xml", 5_000), "avro": ("avro", 20_000), "parquet": ("parquet", 20_000),
    "orc": ("orc", 20_000),
}  # fmt: skip
"""Ending of a name -> format, and the smaller number of records."""


def _limited(file_format: str, count: int) -> Mapping[str, object]:
    tag = {"rowTag": "row"} if file_format == "xml" else {}
    return {"maxRowsPerTrigger": -(-count // _BATCHES), **tag}


def _schema_of(file_format: str, _: int) -> str:
    return "value string" if file_format == "text" else _ROW


def _deep_schema(levels: int) -> str:
    return "a " + (levels - 1) * "struct<a: " + "long" + (levels - 1) * ">"


def _axes() -> Iterator[Axis]:
    yield Axis("files in a batch", (3_000, 30_000, 300_000), _small_files)
    for name, options in _LIMITS_AND_ORDERS.items():
        yield Axis(f"files, {name}", (3_000, 30_000), _small_files, options)
    dated = {"fileOrder": "eventTime", "maxEventTimeSkew": "60d"}
    yield Axis("files, fileOrder=eventTime", (3_000, 30_000), _dated_files, lambda _: dated)
    yield Axis("batches", (30, 300), _small_files, lambda _: {"maxFilesPerTrigger": 1})
    for words in _COMMANDS:
        name = f"files in a state, `{' '.join(words)}`"
        yield Axis(name, (10_000, 100_000), _small_files, command=words)
    for suffix, (file_format, count) in _FORMATS.items():
        yield Axis(
            f"rows below a limit, {file_format}", (count, 10 * count), partial(_records, suffix),
            partial(_limited, file_format), file_format, partial(_schema_of, file_format),
        )  # fmt: skip
    yield Axis("members of an archive", (1_000, 10_000), _members)
    yield Axis(
        "columns", (100, 1_000), _wide,
        schema=lambda n: ", ".join(f"c{at} long" for at in range(n)),
    )  # fmt: skip
    yield Axis("nesting", (4, 40), _deep, schema=_deep_schema)
    yield Axis("row groups", (100, 1_000), _row_groups, file_format="parquet")
    yield Axis("partitions", (100, 1_000), _values, lambda _: {"writePartitionBy": "id"})


AXES = tuple(_axes())

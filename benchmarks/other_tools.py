"""`sluice run` next to dlt, polars and DuckDB: the same files, the same run, the rows compared.

Not here: the tools, which have an environment of their own (`tool_program.py`), so that Sluice
depends on none of them. It is made where there is a package index; a tool that cannot be installed
is named and left out.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from .bench import Bench, Result, median
from .run_rows import command
from .streams import PATIENCE, Input

_PACKAGES = {
    "polars": ("polars[deltalake]==2.1.0",),
    "duckdb": ("duckdb==2.0.1",),
    # It reads CSV with pandas.
    "dlt": ("dlt[filesystem,deltalake]==1.31.0", "pandas==3.1.1"),
}
_LARGE, _FILES = 1_000_000, 8
_SMALL, _KNOWN, _NEW, _ROWS = 20_000, 10_000, 20, 5


@dataclass(frozen=True)
class _Work:
    """Files that are read; with `more`, a second time after some were added."""

    name: str
    file_format: str
    make: Callable[[Path], None]
    more: Callable[[Path], None] | None = None


def tools(bench: Bench) -> Iterator[Result | str]:
    """dlt, polars and DuckDB: CPU seconds of whole processes."""
    home = bench.data.home / "peers"
    calls = {name: call for name in _PACKAGES if (call := _call(home, name))}
    yield from (f"{name}: cannot be installed, left out" for name in _PACKAGES.keys() - calls)
    for work in _works():
        name = "".join(c if c.isalnum() else "_" for c in work.name)
        folder = bench.data.made(f"peers_{name}", work.make)
        runs: dict[str, list[float]] = {name: [] for name in ("sluice", *calls)}
        # In turn, so that a busy minute does not count for one of them alone.
        for _ in range(bench.runs):
            counted = dict[str, tuple[int, int]]()
            for name, seconds in list(runs.items()):
                try:
                    counted[name] = _run(name, work, folder, home, calls.get(name, ()), seconds)
                except subprocess.CalledProcessError:
                    if name == "sluice":
                        raise
                    yield f"{work.name}: {name} fails, left out"
                    del runs[name]
            if len(set(counted.values())) > 1:
                msg = f"{work.name}: (rows, sum of id) differ: {counted}"
                raise RuntimeError(msg)
        own = median(runs.pop("sluice"))
        note = f"CPU seconds, median of {bench.runs}"
        for name, seconds in runs.items():
            yield Result(work.name, own, median(seconds), "s", name, note)


def _call(home: Path, name: str) -> tuple[str, ...]:
    """Return the call of a tool, in an environment that has it; nothing if it cannot be had."""
    place = home / "environment"
    if not place.exists():
        venv.create(place, with_pip=True)
    install = [str(place / "bin/pip"), "install", "--quiet", *_PACKAGES[name]]
    if subprocess.run(install, check=False).returncode:
        return ()
    return str(place / "bin/python"), str(Path(__file__).with_name("tool_program.py")), name


def _run(
    name: str,
    work: _Work,
    folder: Path,
    home: Path,
    program: tuple[str, ...],
    seconds: list[float],
) -> tuple[int, int]:
    """Append the CPU seconds of one run, the second one if files are added; return its rows."""
    place = home / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    table = place / "table"
    call = [*program, work.file_format, str(folder), str(table)]
    if not program:
        options = {"header": "true"} if work.file_format == "csv" else {}
        options |= {} if work.file_format == "parquet" else {"inferColumnTypes": "true"}
        read = Input(folder, "", work.file_format, options)
        call = command(read, f"delta:{table}", place / "checkpoint")
    if work.more:
        shutil.copytree(folder, place / "in")
        call = [str(place / "in") if part == str(folder) else part for part in call]
        _processor_seconds(call)
        work.more(place / "in")
        if name in ("polars", "duckdb"):
            # They do not know what they have read.
            shutil.rmtree(table)
    seconds.append(_processor_seconds(call))
    files = _data_files(table)
    rows = ds.dataset(files, format="parquet").to_table(columns=["id"])["id"]
    return len(rows), pc.sum(rows).as_py()


def _processor_seconds(call: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "RUNTIME__DLTHUB_TELEMETRY": "false"}
    subprocess.run(call, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _data_files(table: Path) -> list[str]:
    """Return the data files of what a tool has written: a Delta table, or one file."""
    # dlt has more tables of its own there, and one for each list in the records.
    names = (table.name, "rows")
    logs = [log.parent for log in table.rglob("_delta_log") if log.parent.name in names]
    if not logs:
        return [str(path) for path in table.glob("*.parquet")]
    from deltalake import DeltaTable

    return [path.removeprefix("file://") for log in logs for path in DeltaTable(log).file_uris()]


def _works() -> list[_Work]:
    small = partial(_small_files, range(_SMALL))
    known, new = range(_KNOWN), range(_KNOWN, _KNOWN + _NEW)
    return [
        *(_Work(f"{_LARGE:,} rows of {f}", f, partial(_large_files, f)) for f in _FORMATS),
        _Work(f"{_SMALL:,} files of {_ROWS} records", "json", small),
        _Work(
            f"{_NEW} new files among {_KNOWN:,}", "json", partial(_small_files, known),
            partial(_small_files, new),
        ),
    ]  # fmt: skip


_FORMATS = ("json", "csv", "parquet")


def _large_files(file_format: str, folder: Path) -> None:
    """Flat rows; in JSON with a struct and a list of structs as well."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    share = _LARGE // _FILES
    for number in range(_FILES):
        ids = range(number * share, (number + 1) * share)
        path = folder / f"{number}.{file_format}"
        if file_format == "json":
            path.write_text("".join(json.dumps(_nested(id_)) + "\n" for id_ in ids))
            continue
        table = pa.table(
            {
                "id": list(ids),
                "name": [f"user {id_ % 10_007}" for id_ in ids],
                "amount": [id_ % 9_973 / 8 for id_ in ids],
                "active": [id_ % 3 == 0 for id_ in ids],
            }
        )
        if file_format == "csv":
            pa.csv.write_csv(table, path)
        else:
            pa.parquet.write_table(table, path)


def _nested(number: int) -> dict[str, object]:
    items = [{"sku": f"s-{number % 97}", "count": n + 1} for n in range(number % 3)]
    user = {"id": number % 10_007, "name": f"user {number % 10_007}"}
    return {"id": number, "user": user, "amount": number % 9_973 / 8, "items": items}


def _small_files(numbers: range, folder: Path) -> None:
    for number in numbers:
        rows = (
            {"id": number * _ROWS + n, "name": f"name {n}", "value": n / 8} for n in range(_ROWS)
        )
        (folder / f"{number:06}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    from .data import Data

    # Without a session of Spark: python -m pyspark_sluice.benchmarks.other_tools FOLDER RUNS
    bench = Bench(None, Data(Path(sys.argv[1])), int(sys.argv[2]), peers=True)  # type: ignore[arg-type]
    for line in tools(bench):
        print(line, flush=True)

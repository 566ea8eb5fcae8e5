"""`sluice audit` of a million files, against a scan of the table's column of files by DuckDB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .bench import Bench, Result, median

_DIRECTORIES, _EACH = 1000, 1000
_ROWS = (5, 50, 200)
"""Rows of each file: the scan of the table takes longer with them, the listing does not."""

_SCAN = """
import duckdb, sys
sql = f"SELECT file, count(*) FROM read_parquet('{sys.argv[1]}/*.parquet') GROUP BY file"
assert len(duckdb.sql(sql).fetchall()) == int(sys.argv[2])
"""


def audit(bench: Bench) -> Iterator[Result]:
    """`sluice audit` of a million files in a Delta table; makes them first."""
    for rows in _ROWS:
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
            yield _audit(bench, Path(name), rows)


def _audit(bench: Bench, home: Path, rows: int) -> Result:
    files, text = _DIRECTORIES * _EACH, "".join(f'{{"id": {number}}}\n' for number in range(rows))
    for number in range(_DIRECTORIES):
        folder = home / f"in/{number:04}"
        folder.mkdir(parents=True)
        for each in range(_EACH):
            (folder / f"{each:04}.json").write_text(text)
    options = ["--option=keepFileRows=true", "--option=writeFileColumn=file"]
    place = ["--to", f"delta:{home}/table", "--checkpoint", f"{home}/ck"]
    sluice = [sys.executable, "-m", "pyspark_sluice"]
    run = [*sluice, "run", f"{home}/in", *place, "--schema", "id long", *options]
    subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
    ours, theirs, most = [], [], 0
    scan = [sys.executable, "-c", _SCAN, f"{home}/table", str(files)]
    for _ in range(bench.runs):
        began = time.perf_counter()
        call = [*sluice, "audit", f"{home}/ck", "--table", f"delta:{home}/table", "--json"]
        process = subprocess.Popen(call, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["equal"]
        _, _, usage = os.wait4(process.pid, 0)
        ours.append(time.perf_counter() - began)
        most = max(most, usage.ru_maxrss * 1024)
        began = time.perf_counter()
        subprocess.run(scan, check=True)
        theirs.append(time.perf_counter() - began)
    note = f"the listing included; peak memory {most / 1e6:,.0f} MB"
    work = f"audit of {files:,} files of {rows} rows"
    return Result(work, median(ours), median(theirs), "s", "DuckDB, one column", note)

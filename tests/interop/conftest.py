"""Spark with Delta's and Iceberg's connectors, and a feed that Sluice brings into their tables."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import pyspark_sluice
from pyspark_sluice import tables
from pyspark_sluice.tests import maven
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.interop.stream import session_with

RELEASE = "4.1"
"""The newest Spark for which both connectors exist."""

ARTIFACTS = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
AVRO = ("org.apache.spark:spark-avro_2.13:4.1.1",)
GROUPS = ("io.delta", "io.unitycatalog", "org.apache.iceberg", "org.xerial")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def jars() -> str:
    """The paths of both connectors, and of the reader of Avro, as Spark takes them."""
    if not pyspark.__version__.startswith(RELEASE + "."):
        pytest.skip(f"needs Spark {RELEASE}, as `make interop` brings it: this is another Spark")
    found = [*maven.jars(ARTIFACTS, groups=GROUPS), *maven.jars(AVRO)]
    return ",".join(map(str, found))


@pytest.fixture(scope="session")
def lake(home: Path, jars: str) -> Iterator[Any]:
    """A session that has both connectors."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = session_with(jars, home)
    session.sql("create namespace lake.db")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def catalog(lake: Any, home: Path) -> Iterator[SqlCatalog]:
    """The catalog `lake` as pyiceberg opens it."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}")
    yield catalog
    catalog.close()


class Feed:
    """Files that land in one directory, and one query that brings them into one table."""

    def __init__(self, root: Path, **options: str) -> None:
        self.root = root
        self.landing = root / "landing"
        self.landing.mkdir()
        self.options = {"fileFormat": "json", **options}

    def land(self, *rows: dict[str, Any]) -> None:
        name = f"{len(list(self.landing.iterdir()))}.json"
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (self.landing / name).write_text(lines, encoding="utf-8")

    def run(self, to: Any, **options: str) -> int:
        """Read what is new; the number of its rows."""
        own = {"path": str(self.landing), "checkpointLocation": str(self.root / "checkpoint")}
        return pyspark_sluice.run(**keywords({**own, **self.options, **options}), to=to).rows

    def run_into(self, table: Any, **options: str) -> int:
        """The same into a table of Iceberg."""
        table.refresh()
        return self.run(tables.iceberg(table), writeTo=str(self.root / "files"), **options)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path, writeSchema="id long, name string, day date")


DAY = "2024-03-01"


def row(number: int, name: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name, "day": DAY}


def rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a data frame by `id`."""
    records = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(records, key=lambda row: row["id"])


def newest_state(checkpoint: str) -> str:
    """Where a query that has ended got to, as `startingState` names it."""
    state = Path(checkpoint, "sluice", "source")
    newest = max(path.name for path in (state / "checkpoints").glob("*.arrow"))
    return f"{state}@{int(newest.partition('-')[0])}"


_AT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.UTC)
# Spark's Python cannot collect the year 1.
_FIRST = dt.datetime(1583, 1, 1, tzinfo=dt.UTC)
_LAST = dt.datetime(9998, 12, 31, 23, 59, 59, 999999, dt.UTC)
_TIMES = [_FIRST, _LAST, None, _AT]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), [0, 1, 2, 3]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "whole": (pa.int32(), [2**31 - 1, -(2**31), None, 0]),
    "large": (pa.int64(), [2**63 - 1, -(2**63), None, 0]),
    "single": (pa.float32(), [1.5, float("inf"), None, float("nan")]),
    "real": (pa.float64(), [5e-324, float("-inf"), None, float("nan")]),
    "price": (pa.decimal128(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), None, 0]),
    "wide": (pa.decimal128(38, 10), [Decimal(10) ** 27, -(Decimal(10) ** 27), None, 0]),
    "text": (pa.string(), ["", "ä😀\u0001", None, "a" * 100]),
    "octets": (pa.binary(), [b"", b"\x00\xff", None, b"a"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1)]),
    "at": (pa.timestamp("us", "UTC"), _TIMES),
    "local": (pa.timestamp("us"), [t and t.replace(tzinfo=None) for t in _TIMES]),
    "list": (pa.list_(pa.string()), [["a", None], [], None, ["b"]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [], None, [("n", None)]]),
    "inner": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float64()))]),
        [{"x": 1, "y": [1.0, None]}, {"x": None, "y": None}, None, {"x": 2, "y": []}],
    ),
}  # fmt: skip
SMALL = {"byte": (pa.int8(), [127, -128, None, 0]), "short": (pa.int16(), [32767, -32768, None, 0])}
"""Types that Delta has and Iceberg has not."""


def write_every_type(path: Path, *, small: bool) -> pa.Table:
    """Write a Parquet file that has a row of ordinary values, of limits and of nulls."""
    columns = {**COLUMNS, **(SMALL if small else {})}
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, path)
    return table

"""Files of many writers, a column of each type: what was written is read, or refused by name."""

from __future__ import annotations

import datetime as dt
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import arro3.core
import arro3.io
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, orc

from pyspark_sluice.errors import MalformedDataError, SchemaMismatchError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows, version
from pyspark_sluice.tests.reader.files.formats.table_files import avro_file
from pyspark_sluice.tests.repository import ROOT, tool

pytestmark = pytest.mark.thorough("the writers are compared once for all changes")

_AT = dt.datetime.fromisoformat("2020-02-29T12:00:00.123456")
_ROWS = [_AT, None, dt.datetime.fromisoformat("1969-12-31T23:59:59")]
_POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
COLUMNS: dict[str, pa.Array] = {
    "boolean": pa.array([True, None, False]),
    **{
        f"int{bits}": pa.array([-(2 ** (bits - 1)), None, 2 ** (bits - 1) - 1], f"int{bits}")
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": pa.array([0, None, 2**bits - 1], f"uint{bits}") for bits in (8, 16, 32, 64)},
    "float": pa.array([1.5, None, float("-inf")], pa.float32()),
    "double": pa.array([5e-324, None, float("inf")]),
    "decimal(9,2)": pa.array([Decimal("-1.25"), None, Decimal("9999999.99")], pa.decimal128(9, 2)),
    "decimal(18,3)": pa.array([Decimal("-1.125"), None, Decimal(10**14)], pa.decimal128(18, 3)),
    "decimal(38,10)": pa.array([Decimal("-1.25"), None, Decimal(10**27)], pa.decimal128(38, 10)),
    "text": pa.array(["", None, "é" * 40]),
    "large text": pa.array(["", None, "é" * 40], pa.large_string()),
    "bytes": pa.array([b"", None, b"\xff\0"]),
    "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "timestamp": pa.array(_ROWS, pa.timestamp("us", "UTC")),
    "timestamp in ms": pa.array(
        [dt.datetime.fromisoformat("2020-01-01")], pa.timestamp("ms", "UTC")
    ),
    "wall clock": pa.array(_ROWS, pa.timestamp("us")),
    "nanoseconds": pa.array([dt.datetime.fromisoformat("2020-01-01")], pa.timestamp("ns")),
    "time": pa.array([dt.time(1, 2, 3, 456), None], pa.time64("us")),
    "duration": pa.array([dt.timedelta(days=1, microseconds=5), None], pa.duration("us")),
    "categories": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
    "list of lists": pa.array([[[1], []], None, []], pa.list_(pa.list_(pa.int64()))),
    "struct": pa.array([{"x": 1, "y": None}, None, {"x": None, "y": "a"}], _POINT),
    "list of structs": pa.array([[{"x": 1, "y": "a"}], None, []], pa.list_(_POINT)),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(2),
}


def _by_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", table)
        connection.execute(f"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet)")


def _arro3(table: pa.Table) -> Any:
    return arro3.core.Table.from_arrow(table)


WRITERS: dict[str, tuple[str, Callable[[pa.Table, Path], Any]]] = {
    "pyarrow": ("parquet", pq.write_table),
    "pyarrow, v1": ("parquet", lambda t, p: pq.write_table(t, p, version="1.0")),
    "pyarrow, v2 pages": ("parquet", lambda t, p: pq.write_table(t, p, data_page_version="2.0")),
    "polars": ("parquet", lambda t, p: pl.from_arrow(t).write_parquet(p)),
    "duckdb": ("parquet", _by_duckdb),
    "arro3": ("parquet", lambda t, p: arro3.io.write_parquet(_arro3(t), str(p))),
    "pyarrow, ORC": ("orc", orc.write_table),
    "pyarrow, Arrow": ("arrow", lambda t, p: feather.write_feather(t, str(p))),
    "polars, Arrow": ("arrow", lambda t, p: pl.from_arrow(t).write_ipc(p)),
    "arro3, Arrow": ("arrow", lambda t, p: arro3.io.write_ipc(_arro3(t), str(p), compression=None)),
    "polars, Avro": ("avro", lambda t, p: pl.from_arrow(t).write_avro(p)),
    "fastavro": ("avro", lambda t, p: p.write_bytes(avro_file(t))),
}
_REFUSED = {"duration": "refused", "null": "left out"}
_OTHERS: dict[str, dict[str, str]] = {
    "parquet": _REFUSED,
    "orc": {
        # Spark takes files without its note for those of the Julian calendar.
        "date": "0001-01-03",
        # ORC has one type of time, which is an instant in Spark.
        "wall clock": "+00:00",
        "nanoseconds": "+00:00",
    },
    "arrow": {"null": "left out"},
    "avro": {},
}
"""By format and column: what else happens than the same values, or a part of the first of them."""

_LEAST = {"parquet": 29, "orc": 20, "arrow": 30, "avro": 17}
"""Columns that come back the same; the rest of ORC's and Avro's the writers refuse."""


_NO_NULL_LISTS = {"list": "[]", "list of lists": "[]", "list of structs": "[]", "map": "[]"}
_OF_CLICKHOUSE = {
    # Its only type of text is that of bytes.
    "bytes": "refused",
    "wall clock": "+00:00",
    "nanoseconds": "+00:00",
    **_NO_NULL_LISTS,
}
FOREIGN: dict[str, tuple[str, str, int, dict[str, str]]] = {
    "fastparquet": (
        "parquet",
        "fastparquet==2026.9.0",
        19,
        {
            # As pandas holds them: numbers next to nulls, and objects.
            "int64": "e+18",
            "uint64": "e+19",
            "decimal(9,2)": "9999999.99",
            "decimal(38,10)": "1e+27",
            "struct": '"y":null}',
            "map": '[["k",1]]',
            # A time of more than a day.
            "duration": "refused",
        },
    ),
    "datafusion": ("parquet", "datafusion==55.0.0", 29, _REFUSED),
    "pyorc": ("orc", "pyorc==0.12.0", 18, {"date": "0001-01-03", "wall clock": "+00:00"}),
    "chdb": ("parquet", "chdb==4.4.0", 20, {**_OF_CLICKHOUSE, "struct": "None}"}),
    "chdb, ORC": (
        "orc",
        "chdb==4.4.0",
        16,
        {
            **_OF_CLICKHOUSE,
            **{f"uint{bits}": "-1" for bits in (8, 16, 32, 64)},
            "date": "0001-01-03",
        },
    ),
    "chdb, Arrow": ("arrow", "chdb==4.4.0", 23, {**_OF_CLICKHOUSE, "bytes": "UTF8"}),
    "chdb, Avro": (
        "avro",
        "chdb==4.4.0",
        19,
        # A decimal of more digits than it says.
        {
            **_OF_CLICKHOUSE,
            "bytes": "utf-8",
            "nanoseconds": "refused",
            "uint32": "-1",
            "uint64": "-1",
        },
    ),
}
"""Format, package, columns that come back the same, and what else happens, as above."""


def _table_of(column: str) -> pa.Table:
    return pa.table({"v": COLUMNS[column], "id": range(len(COLUMNS[column]))})


def _outcome(column: str, kind: str, path: Path) -> str:
    if not path.exists():
        return "not written"
    try:
        schema = inferred_schema([version(path)], ReaderOptions(file_format=kind))
        rows = read_rows([path], schema, file_format=kind)
    except SchemaMismatchError as error:
        return "refused" if "column 'v'" in str(error) else str(error)
    except MalformedDataError as error:
        return next(word for word in ("UTF8", "utf-8", str(error)) if word in str(error))
    if "v" not in schema.names:
        return "left out"
    pairs = zip([row["v"] for row in rows], COLUMNS[column].to_pylist(), strict=True)
    return next((str(found) for found, expected in pairs if found != expected), "same")


def _check(outcomes: dict[str, str], expected: dict[str, str], least: int) -> None:
    others = {c: o for c, o in outcomes.items() if o not in ("same", "not written")}
    assert others.keys() == expected.keys(), others
    for column, outcome in others.items():
        assert outcome.endswith(expected[column]), (column, outcome)
    assert list(outcomes.values()).count("same") >= least


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_writer_wrote_is_read_or_refused_by_name(writer, tmp_path):
    kind, write = WRITERS[writer]
    outcomes = {}
    for number, column in enumerate(COLUMNS):
        path = tmp_path / f"{number}.{kind}"
        try:
            write(_table_of(column), path)
        except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - each has its own
            path.unlink(missing_ok=True)
        outcomes[column] = _outcome(column, kind, path)
    _check(outcomes, _OTHERS[kind], _LEAST[kind])


def _python_with(package: str) -> Path:
    """Return the Python of an environment for packages that only these tests use."""
    venv, prepare = ROOT / ".versions" / "writers", tool("prepare")
    python: Path = venv / "bin" / "python"
    try:
        prepare._make(venv)
        prepare.install(venv, [f"pyarrow=={pa.__version__}", package])
    except (subprocess.CalledProcessError, RuntimeError) as error:
        pytest.skip(f"{package} cannot be installed: {error}")
    return python


@pytest.mark.parametrize("writer", FOREIGN)
def test_what_a_writer_that_the_project_does_not_use_wrote_is_read_or_refused(writer, tmp_path):
    kind, package, least, expected = FOREIGN[writer]
    python = _python_with(package)
    for number, column in enumerate(COLUMNS):
        feather.write_feather(_table_of(column), str(tmp_path / f"{number}.arrow"))
    script = Path(__file__).parent / "foreign_writers.py"
    subprocess.run([python, script, writer, tmp_path], check=True, timeout=300)
    outcomes = {}
    for number, column in enumerate(COLUMNS):
        path = tmp_path / f"{number}.written"
        outcomes[column] = _outcome(column, kind, path)
    _check(outcomes, expected, least)

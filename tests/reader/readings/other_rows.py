"""Rows of the table of differences that are about paths, options, clocks and whole files.

Each function reads with both, and asserts what the row says of either.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.errors import MalformedDataError, SchemaMismatchError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.reading import read_rows

Row = Callable[[Any, Path], None]
ROWS: dict[str, Row] = {}
INT, TEXT = pa.schema([("a", pa.int32())]), pa.schema([("value", pa.string())])


def row(name: str) -> Callable[[Row], Row]:
    """Registers the case of the row whose first cell begins like this."""

    def register(case: Row) -> Row:
        ROWS[name] = case
        return case

    return register


def _by_sluice(spark: Any, path: Path, schema: str, **options: str) -> Any:
    return spark.read.format("sluice").schema(schema).options(**options).load(str(path))


def _values(frame: Any) -> list[Any]:
    return sorted(frame.toArrow().column(0).to_pylist())


def _fails(read: Callable[[], object], text: str) -> None:
    with pytest.raises(Exception, match=text):
        read()


@row("default mode")
def _default_mode(spark, folder):
    (folder / "1.json").write_bytes(b'{"a":"x"}\n')
    assert _values(spark.read.schema("a int").json(str(folder))) == [None]
    _fails(lambda: read_rows([folder / "1.json"], INT), "malformed record")


@row("bytes that are not UTF-8 in `text`")
def _bytes(spark, folder):
    path = folder / "1.txt"
    path.write_bytes(b"\xff\n")
    frame = spark.read.text(str(path)).selectExpr("cast(value as binary)")
    assert _values(frame) == [b"\xff"]
    assert read_rows([path], TEXT, file_format="text") == [{"value": "\ufffd"}]


@row("header that names a column twice")
def _names_twice(spark, folder):
    path = folder / "1.csv"
    path.write_bytes(b"n,n\n1,2\n")
    assert spark.read.option("header", "true").csv(str(path)).columns == ["n0", "n1"]
    schema = pa.schema([("n", pa.string())])
    with pytest.raises(SchemaMismatchError, match="twice"):
        read_rows([path], schema, file_format="csv", header=True, enforce_schema=False)


@row("`text` with `encoding`")
def _text_encoding(spark, folder):
    path = folder / "1.txt"
    path.write_bytes("é\n".encode("latin-1"))
    frame = spark.read.option("encoding", "ISO-8859-1").text(str(path))
    assert frame.selectExpr("cast(value as binary)").toArrow()[0].to_pylist() == [b"\xe9"]
    options = {"file_format": "text", "encoding": "ISO-8859-1"}
    assert read_rows([path], TEXT, **options) == [{"value": "é"}]


@row("values in paths out of range for `byte`, `short` or `decimal`")
def _far_values_in_paths(spark, folder):
    for name, kind in (("tinyint", pa.int8()), ("decimal(3,2)", pa.decimal128(3, 2))):
        inside = folder / name / "part=300"
        inside.mkdir(parents=True)
        (inside / "1.json").write_bytes(b'{"a":1}\n')
        frame = spark.read.schema(f"a int, part {name}").json(str(folder / name))
        assert frame.toArrow()["part"].to_pylist() == [44 if name == "tinyint" else None]
        schema = INT.append(pa.field("part", kind))
        with pytest.raises(SchemaMismatchError, match="part=300"):
            read_rows([inside / "1.json"], schema)


@row("options that the format does not have")
def _unknown_options(spark, folder):
    (folder / "1.json").write_bytes(b'{"a":1}\n')
    assert _values(spark.read.schema("a int").option("sep", ";").json(str(folder))) == [1]
    options = {"fileFormat": "json", "sep": ";"}
    _fails(lambda: _by_sluice(spark, folder, "a int", **options).collect(), "does not support it")


@row("a `text` schema with other columns than the text")
def _text_with_columns(spark, folder):
    path = folder / "1.txt"
    path.write_bytes(b"x\n")
    _fails(
        lambda: spark.read.schema("value string, a int").text(str(path)).collect(), "Text|column"
    )
    schema = TEXT.append(pa.field("a", pa.int32()))
    assert read_rows([path], schema, file_format="text") == [{"value": "x", "a": None}]


@row("`unescapedQuoteHandling`")
def _unescaped_quotes(spark, folder):
    (folder / "1.csv").write_bytes(b'a"b,1\n')
    reader = spark.read.schema("a string, b int")
    kept = reader.option("unescapedQuoteHandling", "SKIP_VALUE").csv(str(folder))
    assert kept.toArrow()["b"].to_pylist() == [1]
    with pytest.raises(ValueError, match="STOP_AT_DELIMITER"):
        ReaderOptions(file_format="csv", unescaped_quote_handling="SKIP_VALUE")


@row("ORC timestamps, where the writer's zone is not the JVM's")
def _orc_zones(spark, folder):
    from pyspark_sluice.tests.reader.readings.zones import in_zones

    with in_zones(spark, "UTC", "America/Los_Angeles"):
        spark.sql("SELECT TIMESTAMP'2024-01-02 03:04:05' AS t").write.orc(str(folder / "x"))
    with in_zones(spark, "UTC", "UTC"):
        (theirs,) = spark.read.orc(str(folder / "x")).selectExpr("unix_seconds(t) t").collect()
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    (ours,) = read_rows(sorted((folder / "x").glob("*.orc")), schema, file_format="orc")
    written = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert (theirs.t - written.timestamp(), ours["t"]) == (-8 * 3600, written)


@row("ORC timestamps outside 1677 to 2262")
def _far_orc(spark, folder):
    path = folder / "x.orc"
    far = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    orc.write_table(pa.table({"t": pa.array([far], pa.timestamp("us", "UTC"))}), path)
    assert spark.read.orc(str(path)).count() == 1
    assert spark.read.orc(str(path)).selectExpr("year(t)").toArrow()[0].to_pylist() == [9999]
    with pytest.raises(SchemaMismatchError, match="1677 to 2262"):
        read_rows([path], pa.schema([("t", pa.timestamp("us", "UTC"))]), file_format="orc")


@row("Parquet: `int` columns and unsigned ones in DuckDB's delta encoding")
def _deltas(spark, folder):
    import duckdb

    path, numbers = folder / "x.parquet", [(-1) ** i * (2**31 - 1 - i) for i in range(40)]
    with duckdb.connect() as connection:
        connection.register("data", pa.table({"a": pa.array(numbers, pa.int32())}))
        connection.execute(f"COPY data TO '{path}' (FORMAT parquet, PARQUET_VERSION V2)")
    assert spark.read.parquet(str(path)).toArrow()["a"].to_pylist() == numbers
    with pytest.raises(MalformedDataError, match="column 'a', which does not decode"):
        read_rows([path], INT, file_format="parquet")


@row("CSV: a record of more than 20,480 fields")
def _many_fields(spark, folder):
    path = folder / "1.csv"
    path.write_bytes(b"," * 20_500 + b"\n1\n")
    read = spark.read.schema("a int, c string").option("columnNameOfCorruptRecord", "c").csv
    _fails(lambda: read(str(path)).collect(), "20480|TextParsingException")
    corrupt = {"mode": "PERMISSIVE", "column_name_of_corrupt_record": "c"}
    rows = read_rows([path], INT.append(pa.field("c", pa.string())), file_format="csv", **corrupt)
    assert rows == [{"a": None, "c": "," * 20_500}, {"a": 1, "c": None}]


@row("ORC: names with backticks")
def _backticks(spark, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"`a`": [1]}), path)
    assert _values(spark.read.schema("```a``` bigint").orc(str(path))) == [None]
    schema = pa.schema([("`a`", pa.int64())])
    assert read_rows([path], schema, file_format="orc") == [{"`a`": 1}]


@row("ORC: a `filter` on a column whose name is a number")
def _numbered_filter(spark, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a": [5], "1": [7]}), path)
    schema = pa.schema([("a", pa.int64()), ("1", pa.int64())])
    frame = spark.read.schema("a bigint, `1` bigint").orc(str(path))
    assert frame.where("`1` = 7").collect() == []
    assert read_rows([path], schema, file_format="orc", filter="`1` = 7") == [{"a": 5, "1": 7}]


@row("ORC: the schema of a file with a backtick")
def _schema_with_backticks(spark, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a`b": [1]}), path)
    assert spark.read.orc(str(path)).columns == ["a"]
    reader = spark.read.format("sluice").option("fileFormat", "orc")
    assert reader.load(str(path)).columns == ["a`b"]


@row("Parquet and ORC: a file with the columns `id` and `ID`")
def _names_in_other_case(spark, folder):
    table, schema = pa.table({"id": [1], "ID": [2]}), pa.schema([("id", pa.int64())])
    for name, write in (("parquet", pq.write_table), ("orc", orc.write_table)):
        path = folder / name
        write(table, path)
        frame = spark.read.schema("id bigint").format(name).load(str(path))
        _fails(frame.collect, "FAILED_READ_FILE|duplicate field")
        assert read_rows([path], schema, file_format=name) == [{"id": 1}]


@row("Parquet and ORC: decimals of more digits than the file's own type")
def _beyond_their_own_type(spark, folder):
    kind, path = pa.decimal128(12, 2), folder / "x.parquet"
    beyond = pa.Array.from_buffers(kind, 1, pa.array([10**14], pa.decimal128(20, 0)).buffers())
    pq.write_table(pa.table({"d": beyond}), path, store_decimal_as_integer=True)
    frame = spark.read.parquet(str(path)).selectExpr("cast(d as string) d")
    assert _values(frame) == ["1000000000000.00"]
    with pytest.raises(SchemaMismatchError, match="column 'd'"):
        read_rows([path], pa.schema([("d", kind)]), file_format="parquet")


@row("ORC: timestamps as `timestamp_ntz`")
def _wall_clocks(spark, folder):
    path, written = folder / "x.orc", dt.datetime.fromisoformat("2024-01-02T03:04:05")
    orc.write_table(pa.table({"t": pa.array([written], pa.timestamp("us"))}), path)
    _fails(lambda: spark.read.schema("t timestamp_ntz").orc(str(path)).collect(), "ORC_TYPE_CAST")
    schema = pa.schema([("t", pa.timestamp("us"))])
    assert read_rows([path], schema, file_format="orc") == [{"t": written}]


@row("ORC: timestamps of Arrow's writer")
def _near_1970(spark, folder):
    path, kind = folder / "x.orc", pa.timestamp("us", "UTC")
    orc.write_table(pa.table({"t": pa.array([-1], kind)}), path)
    _fails(lambda: spark.read.orc(str(path)).collect(), "nanos")
    (ours,) = read_rows([path], pa.schema([("t", kind)]), file_format="orc")
    assert ours["t"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)


@row("ORC: decimals and integers that do not fit")
def _rescaled(spark, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a": pa.array(["1.25"]).cast(pa.decimal128(5, 2))}), path)
    theirs = _values(spark.read.schema("a decimal(5,1)").orc(str(path)))
    assert [str(value) for value in theirs] == ["1.3"], theirs
    with pytest.raises(SchemaMismatchError, match="column 'a' does not fit"):
        read_rows([path], pa.schema([("a", pa.decimal128(5, 1))]), file_format="orc")


@row("Parquet: booleans in lists and maps, in data pages of version 2")
def _lists_of_booleans(spark, folder):
    path, kind = folder / "x.parquet", pa.list_(pa.bool_())
    pages = {"data_page_version": "2.0", "data_page_size": 64}
    pq.write_table(pa.table({"a": pa.array([[True]], kind)}), path, **pages)
    assert _values(spark.read.parquet(str(path))) == [[True]]
    with pytest.raises(MalformedDataError, match="0 rows in row group 0"):
        read_rows([path], pa.schema([("a", kind)]), file_format="parquet")


@row("a `filter` on decimals that needs more than 38 digits")
def _rounded_to_compare(spark, folder):
    path, kind = folder / "x.parquet", pa.decimal128(38, 38)
    least = "-0." + "9" * 38
    pq.write_table(pa.table({"d": pa.array([Decimal(least)], kind)}), path)
    assert _values(spark.read.parquet(str(path)).filter("d > -1")) == []
    schema = pa.schema([("d", kind)])
    (ours,) = read_rows([path], schema, file_format="parquet", filter="d > -1")
    assert str(ours["d"]) == least
    schema = pa.schema([("d", pa.decimal128(38, 0))])
    pq.write_table(pa.table({"d": pa.array([Decimal(0)], schema.field(0).type)}), path)
    assert _values(spark.read.parquet(str(path)).filter("d = 0.1")) == [Decimal(0)]
    assert read_rows([path], schema, file_format="parquet", filter="d = 0.1") == []


@row("JSON: the text of a malformed `multiLine` document")
def _document_text(spark, folder):
    path = folder / "x.json"
    path.write_bytes(b"\xa0")
    options = {"mode": "PERMISSIVE", "multiLine": "true", "encoding": "ISO-8859-1"}
    reader = spark.read.schema("a int, _corrupt_record string").options(**options)
    (theirs,) = reader.json(str(path)).collect()
    assert theirs["_corrupt_record"] == "\ufffd"
    schema = pa.schema([("a", pa.int32()), ("_corrupt_record", pa.string())])
    (ours,) = read_rows([path], schema, file_format="json", **options)
    assert ours["_corrupt_record"] == "\xa0"


@row("Parquet: a `filter` on floats")
def _nan_beyond_statistics(spark, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"f": [0.0, math.nan]}), path)
    assert _values(spark.read.parquet(str(path)).filter("f > 1")) == []
    (ours,) = read_rows(
        [path], pa.schema([("f", pa.float64())]), file_format="parquet", filter="f > 1"
    )
    assert math.isnan(ours["f"])


@row("Parquet: a `filter` on a column `s.x`")
def _dotted_name(spark, folder):
    path = folder / "x.parquet"
    columns = {"s.x": pa.array(["A", "B"]), "s": pa.array([{"x": 1}, {"x": 2}])}
    pq.write_table(pa.table(columns), path)
    _fails(lambda: spark.read.parquet(str(path)).filter("`s.x` = 'A'").collect(), "IndexOutOf")
    schema = pa.schema([("s.x", pa.string())])
    ours = read_rows([path], schema, file_format="parquet", filter="`s.x` = 'A'")
    assert ours == [{"s.x": "A"}]
    columns = {"s.x": pa.array([5]), "s": pa.array([{"x": 1}])}
    pq.write_table(pa.table(columns), path)
    schema = pa.schema([("s.x", pa.int64())])
    assert spark.read.schema("`s.x` bigint").parquet(str(path)).where("`s.x` = 5").collect() == []
    assert read_rows([path], schema, file_format="parquet", filter="`s.x` = 5") == [{"s.x": 5}]


@row("Parquet: half floats as `binary`, times, durations and nanoseconds")
def _as_stored(spark, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([1000], pa.time64("us"))}), path)
    frame = spark.read.schema("a bigint").parquet(str(path))
    assert frame.toArrow()["a"].to_pylist() == [1000]
    with pytest.raises(SchemaMismatchError, match="column 'a' does not fit"):
        read_rows([path], pa.schema([("a", pa.int64())]), file_format="parquet")


@row("Parquet: Brotli; half floats")
def _read_here(spark, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([5], pa.int32())}), path, compression="brotli")
    _fails(lambda: spark.read.schema("a int").parquet(str(path)).collect(), "(?i)brotli")
    assert read_rows([path], INT, file_format="parquet") == [{"a": 5}]


@row("`modifiedAfter`, `modifiedBefore` in a zone other than UTC")
def _modified(spark, folder):
    path = folder / "1.json"
    path.write_bytes(b'{"a":1}\n')
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC).timestamp()
    os.utime(path, (noon, noon))
    # In Berlin it is 14:00, which is not after 14:30.
    given = {"modifiedAfter": "2024-07-01T14:30:00", "timeZone": "Europe/Berlin"}
    theirs = spark.read.schema("a int").options(**given).json(str(folder))
    ours = _by_sluice(spark, folder, "a int", fileFormat="json", **given)
    both = _values(theirs), _values(ours)
    assert both == ([1], []), both


@row("directories that are not partitions")
def _directories(spark, folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "1.json").write_bytes(b'{"a":1}\n')
    assert _values(spark.read.schema("a int").json(str(folder))) == []
    assert _values(_by_sluice(spark, folder, "a int", fileFormat="json")) == [1]


@row("hidden directories that a wildcard matches")
def _hidden(spark, folder):
    for number, name in enumerate(("shown", "_hidden")):
        (folder / name).mkdir()
        (folder / name / "1.json").write_bytes(b'{"a":%d}\n' % number)
    theirs = spark.read.schema("a int").json(str(folder / "*"))
    both = _values(theirs), _values(_by_sluice(spark, folder / "*", "a int", fileFormat="json"))
    assert both == ([0, 1], [0]), both


@row("`variant` from CSV; intervals")
def _variants(spark, folder):
    (folder / "1.csv").write_bytes(b"5\n")
    assert spark.read.schema("v variant").csv(str(folder)).count() == 1
    read = _by_sluice(spark, folder, "v variant", fileFormat="csv")
    _fails(read.collect, "cannot be read into columns")

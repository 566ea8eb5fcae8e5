"""Rows of the table of differences that are about paths, options, clocks and whole files.

Each function reads with both, and asserts what the row says of either.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.answers import RefusedBySparkError

Row = Callable[[Any, Path], None]
ROWS: dict[str, Row] = {}
INT, TEXT = pa.schema([("a", pa.int32())]), pa.schema([("value", pa.string())])


def row(name: str, rows: dict[str, Row] = ROWS) -> Callable[[Row], Row]:
    """Registers the case of the row whose first cell begins like this."""

    def register(case: Row) -> Row:
        rows[name] = case
        return case

    return register


def values(frame: Any) -> list[Any]:
    return sorted(frame.toArrow().column(0).to_pylist())


def _fails(ask: Any, question: Any, text: str) -> None:
    with pytest.raises(RefusedBySparkError, match=text):
        ask(question)


@row("default mode")
def _default_mode(ask, folder):
    (folder / "1.json").write_bytes(b'{"a":"x"}\n')
    assert ask(lambda spark: values(spark.read.schema("a int").json(str(folder)))) == [None]
    with pytest.raises(MalformedDataError, match="malformed record"):
        read_rows([folder / "1.json"], INT)


@row("bytes that are not UTF-8 in `text`")
def _bytes(ask, folder):
    path = folder / "1.txt"
    path.write_bytes(b"\xff\n")
    binary = "cast(value as binary)"
    theirs = ask(lambda spark: values(spark.read.text(str(path)).selectExpr(binary)))
    assert theirs == [b"\xff"]
    assert read_rows([path], TEXT, file_format="text") == [{"value": "\ufffd"}]


@row("header that names a column twice")
def _names_twice(ask, folder):
    path = folder / "1.csv"
    path.write_bytes(b"n,n\n1,2\n")
    names = ask(lambda spark: spark.read.option("header", "true").csv(str(path)).columns)
    assert names == ["n0", "n1"]
    schema = pa.schema([("n", pa.string())])
    with pytest.raises(SchemaMismatchError, match="twice"):
        read_rows([path], schema, file_format="csv", header=True, enforce_schema=False)


@row("`text` with `encoding`")
def _text_encoding(ask, folder):
    path = folder / "1.txt"
    path.write_bytes("é\n".encode("latin-1"))
    options = {"encoding": "ISO-8859-1"}
    binary = "cast(value as binary)"
    read = ask(
        lambda spark: values(spark.read.options(**options).text(str(path)).selectExpr(binary))
    )
    assert read == [b"\xe9"]
    assert read_rows([path], TEXT, file_format="text", **options) == [{"value": "é"}]


@row("values in paths out of range for `byte`, `short` or `decimal`")
def _far_values_in_paths(ask, folder):
    for name, kind in (("tinyint", pa.int8()), ("decimal(3,2)", pa.decimal128(3, 2))):
        inside = folder / name / "part=300"
        inside.mkdir(parents=True)
        (inside / "1.json").write_bytes(b'{"a":1}\n')
        read = partial(_json, str(folder / name), f"part {name}")
        assert ask(read) == [44 if name == "tinyint" else None]
        schema = INT.append(pa.field("part", kind))
        with pytest.raises(SchemaMismatchError, match="part=300"):
            read_rows([inside / "1.json"], schema)


def _json(path, ddl, spark):
    return values(spark.read.schema(f"a int, {ddl}").json(path).select(ddl.split()[0]))


@row("a `text` schema with other columns than the text")
def _text_with_columns(ask, folder):
    path = folder / "1.txt"
    path.write_bytes(b"x\n")
    ddl = "value string, a int"
    _fails(ask, lambda spark: spark.read.schema(ddl).text(str(path)).collect(), "Text|column")
    schema = TEXT.append(pa.field("a", pa.int32()))
    assert read_rows([path], schema, file_format="text") == [{"value": "x", "a": None}]


@row("`unescapedQuoteHandling`")
def _unescaped_quotes(ask, folder):
    (folder / "1.csv").write_bytes(b'a"b,1\n')

    def kept(spark):
        reader = spark.read.schema("a string, b int")
        skipping = reader.option("unescapedQuoteHandling", "SKIP_VALUE")
        return values(skipping.csv(str(folder)).select("b"))

    assert ask(kept) == [1]
    with pytest.raises(ValueError, match="STOP_AT_DELIMITER"):
        ReaderOptions(file_format="csv", unescaped_quote_handling="SKIP_VALUE")


@row("ORC timestamps outside 1677 to 2262")
def _far_orc(ask, folder):
    path = folder / "x.orc"
    far = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    orc.write_table(pa.table({"t": pa.array([far], pa.timestamp("us", "UTC"))}), path)
    year = ask(lambda spark: values(spark.read.orc(str(path)).selectExpr("year(t)")))
    assert year == [9999]
    with pytest.raises(SchemaMismatchError, match="1677 to 2262"):
        read_rows([path], pa.schema([("t", pa.timestamp("us", "UTC"))]), file_format="orc")


@row("Parquet: `int` columns and unsigned ones in DuckDB's delta encoding")
def _deltas(ask, folder):
    import duckdb

    path, numbers = folder / "x.parquet", [(-1) ** i * (2**31 - 1 - i) for i in range(40)]
    with duckdb.connect() as connection:
        connection.register("data", pa.table({"a": pa.array(numbers, pa.int32())}))
        connection.execute(f"COPY data TO '{path}' (FORMAT parquet, PARQUET_VERSION V2)")
    assert ask(lambda spark: values(spark.read.parquet(str(path)))) == sorted(numbers)
    with pytest.raises(MalformedDataError, match="column 'a', which does not decode"):
        read_rows([path], INT, file_format="parquet")


@row("CSV: a record of more than 20,480 fields")
def _many_fields(ask, folder):
    path = folder / "1.csv"
    path.write_bytes(b"," * 20_500 + b"\n1\n")

    def read(spark):
        reader = spark.read.schema("a int, c string")
        reader.option("columnNameOfCorruptRecord", "c").csv(str(path)).collect()

    _fails(ask, read, "20480|TextParsingException")
    corrupt = {"mode": "PERMISSIVE", "column_name_of_corrupt_record": "c"}
    rows = read_rows([path], INT.append(pa.field("c", pa.string())), file_format="csv", **corrupt)
    assert rows == [{"a": None, "c": "," * 20_500}, {"a": 1, "c": None}]


@row("ORC: names with backticks")
def _backticks(ask, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"`a`": [1]}), path)
    ddl = "```a``` bigint"
    assert ask(lambda spark: values(spark.read.schema(ddl).orc(str(path)))) == [None]
    schema = pa.schema([("`a`", pa.int64())])
    assert read_rows([path], schema, file_format="orc") == [{"`a`": 1}]


@row("ORC: a `filter` on a column whose name is a number")
def _numbered_filter(ask, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a": [5], "1": [7]}), path)
    schema = pa.schema([("a", pa.int64()), ("1", pa.int64())])
    ddl = "a bigint, `1` bigint"
    read = ask(lambda spark: values(spark.read.schema(ddl).orc(str(path)).where("`1` = 7")))
    assert read == []
    assert read_rows([path], schema, file_format="orc", filter="`1` = 7") == [{"a": 5, "1": 7}]


@row("Parquet and ORC: a file with the columns `id` and `ID`")
def _names_in_other_case(ask, folder):
    table, schema = pa.table({"id": [1], "ID": [2]}), pa.schema([("id", pa.int64())])
    for name, write in (("parquet", pq.write_table), ("orc", orc.write_table)):
        path = folder / name
        write(table, path)
        read = partial(_collected, "id bigint", name, str(path))
        _fails(ask, read, "FAILED_READ_FILE|duplicate field")
        assert read_rows([path], schema, file_format=name) == [{"id": 1}]


def _collected(ddl, file_format, path, spark):
    spark.read.schema(ddl).format(file_format).load(path).collect()


@row("Parquet and ORC: decimals of more digits than the file's own type")
def _beyond_their_own_type(ask, folder):
    kind, path = pa.decimal128(12, 2), folder / "x.parquet"
    beyond = pa.Array.from_buffers(kind, 1, pa.array([10**14], pa.decimal128(20, 0)).buffers())
    pq.write_table(pa.table({"d": beyond}), path, store_decimal_as_integer=True)
    text = "cast(d as string) d"
    read = ask(lambda spark: values(spark.read.parquet(str(path)).selectExpr(text)))
    assert read == ["1000000000000.00"]
    with pytest.raises(SchemaMismatchError, match="column 'd'"):
        read_rows([path], pa.schema([("d", kind)]), file_format="parquet")


@row("ORC: timestamps as `timestamp_ntz`")
def _wall_clocks(ask, folder):
    path, written = folder / "x.orc", dt.datetime.fromisoformat("2024-01-02T03:04:05")
    orc.write_table(pa.table({"t": pa.array([written], pa.timestamp("us"))}), path)
    _fails(ask, partial(_collected, "t timestamp_ntz", "orc", str(path)), "ORC_TYPE_CAST")
    schema = pa.schema([("t", pa.timestamp("us"))])
    assert read_rows([path], schema, file_format="orc") == [{"t": written}]


@row("ORC: timestamps of Arrow's writer")
def _near_1970(ask, folder):
    path, kind = folder / "x.orc", pa.timestamp("us", "UTC")
    orc.write_table(pa.table({"t": pa.array([-1], kind)}), path)
    _fails(ask, lambda spark: spark.read.orc(str(path)).collect(), "nanos")
    (ours,) = read_rows([path], pa.schema([("t", kind)]), file_format="orc")
    assert ours["t"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)


@row("ORC: decimals and integers that do not fit")
def _rescaled(ask, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a": pa.array(["1.25"]).cast(pa.decimal128(5, 2))}), path)
    theirs = ask(lambda spark: values(spark.read.schema("a decimal(5,1)").orc(str(path))))
    assert [str(value) for value in theirs] == ["1.3"], theirs
    with pytest.raises(SchemaMismatchError, match="column 'a' does not fit"):
        read_rows([path], pa.schema([("a", pa.decimal128(5, 1))]), file_format="orc")


@row("Parquet: booleans in lists and maps, in data pages of version 2")
def _lists_of_booleans(ask, folder):
    path, kind = folder / "x.parquet", pa.list_(pa.bool_())
    pages = {"data_page_version": "2.0", "data_page_size": 64}
    pq.write_table(pa.table({"a": pa.array([[True]], kind)}), path, **pages)
    assert ask(lambda spark: values(spark.read.parquet(str(path)))) == [[True]]
    with pytest.raises(MalformedDataError, match="0 rows in row group 0"):
        read_rows([path], pa.schema([("a", kind)]), file_format="parquet")


@row("a `filter` on decimals that needs more than 38 digits")
def _rounded_to_compare(ask, folder):
    path, kind = folder / "x.parquet", pa.decimal128(38, 38)
    least = "-0." + "9" * 38
    pq.write_table(pa.table({"d": pa.array([Decimal(least)], kind)}), path)
    assert ask(lambda spark: values(spark.read.parquet(str(path)).filter("d > -1"))) == []
    schema = pa.schema([("d", kind)])
    (ours,) = read_rows([path], schema, file_format="parquet", filter="d > -1")
    assert str(ours["d"]) == least
    schema = pa.schema([("d", pa.decimal128(38, 0))])
    pq.write_table(pa.table({"d": pa.array([Decimal(0)], schema.field(0).type)}), path)
    rounded = ask(lambda spark: values(spark.read.parquet(str(path)).filter("d = 0.1")))
    assert rounded == [Decimal(0)]
    assert read_rows([path], schema, file_format="parquet", filter="d = 0.1") == []


@row("JSON: the text of a malformed `multiLine` document")
def _document_text(ask, folder):
    path = folder / "x.json"
    path.write_bytes(b"\xa0")
    options = {"mode": "PERMISSIVE", "multiLine": "true", "encoding": "ISO-8859-1"}

    def corrupt(spark):
        reader = spark.read.schema("a int, _corrupt_record string").options(**options)
        return [row["_corrupt_record"] for row in reader.json(str(path)).collect()]

    assert ask(corrupt) == ["\ufffd"]
    schema = pa.schema([("a", pa.int32()), ("_corrupt_record", pa.string())])
    (ours,) = read_rows([path], schema, file_format="json", **options)
    assert ours["_corrupt_record"] == "\xa0"


@row("`allowNumericLeadingZeros`")
def _spellings(ask, folder):
    (folder / "1.json").write_bytes(b'{"a":012}\n')
    name = "allowNumericLeadingZeros"

    def read(spark):
        return values(spark.read.schema("a int").option(name, "true").json(str(folder)))

    assert ask(read) == [12]
    with pytest.raises(OptionError, match=name):
        parse_options({"path": "/in", "fileFormat": "json", name: "true"}, streaming=False)


@row("JSON: numbers of more than 1,000 digits")
def _long_values(_ask, folder):
    path = folder / "x.json"
    path.write_text(
        f'{{"a":1,"n":{"9" * 1001},"{"k" * 50_001}":1}}\n{{"s":"{"x" * 20_000_001}"}}\n'
    )
    schema = pa.schema([("a", pa.int32()), ("s", pa.string())])
    first, second = read_rows([path], schema)
    assert (first["a"], len(second["s"])) == (1, 20_000_001)


@row("Parquet: a `filter` on floats")
def _nan_beyond_statistics(ask, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"f": [0.0, math.nan]}), path)
    assert ask(lambda spark: values(spark.read.parquet(str(path)).filter("f > 1"))) == []
    (ours,) = read_rows(
        [path], pa.schema([("f", pa.float64())]), file_format="parquet", filter="f > 1"
    )
    assert math.isnan(ours["f"])


@row("Parquet: a `filter` on a column `s.x`")
def _dotted_name(ask, folder):
    path = folder / "x.parquet"
    columns = {"s.x": pa.array(["A", "B"]), "s": pa.array([{"x": 1}, {"x": 2}])}
    pq.write_table(pa.table(columns), path)
    _fails(ask, partial(_filtered, str(path), "`s.x` = 'A'", ""), "IndexOutOf")
    schema = pa.schema([("s.x", pa.string())])
    ours = read_rows([path], schema, file_format="parquet", filter="`s.x` = 'A'")
    assert ours == [{"s.x": "A"}]
    columns = {"s.x": pa.array([5]), "s": pa.array([{"x": 1}])}
    pq.write_table(pa.table(columns), path)
    schema = pa.schema([("s.x", pa.int64())])
    assert ask(partial(_filtered, str(path), "`s.x` = 5", "`s.x` bigint")) == []
    assert read_rows([path], schema, file_format="parquet", filter="`s.x` = 5") == [{"s.x": 5}]


def _filtered(path, condition, ddl, spark):
    reader = spark.read.schema(ddl) if ddl else spark.read
    return values(reader.parquet(path).where(condition))


@row("Parquet: half floats as `binary`, times, durations and nanoseconds")
def _as_stored(ask, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([1000], pa.time64("us"))}), path)
    assert ask(lambda spark: values(spark.read.schema("a bigint").parquet(str(path)))) == [1000]
    with pytest.raises(SchemaMismatchError, match="column 'a' does not fit"):
        read_rows([path], pa.schema([("a", pa.int64())]), file_format="parquet")


@row("Parquet: Brotli; half floats")
def _read_here(ask, folder):
    path = folder / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([5], pa.int32())}), path, compression="brotli")
    _fails(ask, partial(_collected, "a int", "parquet", str(path)), "(?i)brotli")
    assert read_rows([path], INT, file_format="parquet") == [{"a": 5}]

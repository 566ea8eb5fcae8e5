"""Avro's types, read without a schema: types and rows are those of Spark's own reader."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import fastavro
import pytest

from pyspark_sluice.connector.spark.types import spark_schema
from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows, version

pytestmark = [
    pytest.mark.drivers,
    pytest.mark.thorough("needs Maven, and a Spark that has its reader of Avro: `make interop`"),
]


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


def _fixed(size: int, logical: str = "", **more: Any) -> dict[str, Any]:
    named = {"type": "fixed", "name": "f", "size": size}
    return named | ({"logicalType": logical, **more} if logical else {})


_RECORD = {
    "type": "record",
    "name": "inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
}
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [2**31 - 1, -(2**31)]),
    "long": ("long", [2**63 - 1, -(2**63)]),
    "float": ("float", [1.5, float("inf")]),
    "double": ("double", [5e-324, float("-inf")]),
    "bytes": ("bytes", [b"", b"\xff"]),
    "string": ("string", ["", "ä😀"]),
    "nullable": (["null", "string"], [None, "a"]),
    "nullable, null last": (["long", "null"], [None, 1]),
    "one branch": (["int"], [1]),
    "int or long": (["int", "long"], [1, 2**40]),
    "float, double or null": (["float", "null", "double"], [1.5, None, 0.1]),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["B", "A"]),
    "fixed": (_fixed(3), [b"abc"]),
    "fixed of words": (_fixed(12), [b"twelve bytes"]),
    "array": ({"type": "array", "items": ["null", "int"]}, [[], [1, None]]),
    "map": ({"type": "map", "values": "long"}, [{}, {"a": 1}]),
    "record": (_RECORD, [{"x": 1, "y": None}, {"x": 2, "y": "b"}]),
    "array of records": ({"type": "array", "items": _RECORD}, [[{"x": 1, "y": "a"}], []]),
    "nullable record": (["null", _RECORD], [None, {"x": 1, "y": "a"}]),
    "date": (_logical("int", "date"), [-719162, 0, 2932896]),
    "timestamp-millis": (_logical("long", "timestamp-millis"), [-1, 1_582_934_399_999]),
    "timestamp-micros": (_logical("long", "timestamp-micros"), [-1, 1_582_934_399_999_999]),
    "local-timestamp-millis": (_logical("long", "local-timestamp-millis"), [-1, 10**12]),
    "local-timestamp-micros": (_logical("long", "local-timestamp-micros"), [-1, 10**15]),
    "timestamp-nanos": (_logical("long", "timestamp-nanos"), [10**18]),
    "time-millis": (_logical("int", "time-millis"), [3_723_000]),
    "time-micros": (_logical("long", "time-micros"), [3_723_000_000]),
    "decimal on bytes": (
        _logical("bytes", "decimal", precision=9, scale=2),
        [b"\x01\x00", b"\xff"],
    ),
    "decimal on fixed": (
        _fixed(5, "decimal", precision=11, scale=3),
        [b"\0\0\0\x01\0", b"\xff" * 5],
    ),
    "decimal of 38 digits": (_fixed(16, "decimal", precision=38), [b"\x01" * 16, b"\xfe" * 16]),
    "decimal of 50 digits": (_logical("bytes", "decimal", precision=50), [b"\x01"]),
    "uuid": (_logical("string", "uuid"), ["00010203-0405-0607-0809-0a0b0c0d0e0f"]),
    "uuid on fixed": (_fixed(16, "uuid"), [bytes(range(16))]),
    "duration": (_fixed(12, "duration"), [b"\1\0\0\0\2\0\0\0\3\0\0\0"]),
    "unknown logical type": (_logical("long", "money"), [5]),
    "date on string": (_logical("string", "date"), ["2020-01-01"]),
    "other union": (["int", "string"], [1]),
}
OURS: dict[str, list[Any] | str] = {
    "timestamp-nanos": [dt.datetime(2001, 9, 9, 1, 46, 40, tzinfo=dt.UTC)],
    # The time that is meant, instead of a number or an error.
    "time-millis": [dt.time(1, 2, 3)],
    "time-micros": [dt.time(1, 2, 3)],
    "decimal of 50 digits": [b"\x01"],
    # Spark makes a struct of the branches.
    "other union": "an Avro union of int, string",
}
"""Cases of docs/differences.md: the values, or a word of the error."""

_SYNC = b"sixteen bytes..."


def _file(schema: Any, values: list[Any]) -> bytes:
    """A file of one column, whose values are written without their logical type."""
    record = {"type": "record", "name": "row", "fields": [{"name": "v", "type": schema}]}
    sink = io.BytesIO()
    rows = [{"v": value} for value in values]
    fastavro.writer(sink, _plain(record), rows, sync_marker=_SYNC)
    _, *blocks = sink.getvalue().split(_SYNC)
    head = io.BytesIO()
    notes = {"avro.schema": json.dumps(record).encode(), "avro.codec": b"null"}
    fastavro.schemaless_writer(head, {"type": "map", "values": "bytes"}, notes)
    return _SYNC.join((b"Obj\x01" + head.getvalue(), *blocks))


def _plain(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
    return [*map(_plain, schema)] if isinstance(schema, list) else schema


@pytest.mark.parametrize("case", TYPES)
def test_types_and_rows_of_avro_are_those_of_spark(lake, case, tmp_path):
    path = tmp_path / "file.avro"
    path.write_bytes(_file(*TYPES[case]))
    ours = OURS.get(case)
    files, options = [version(path)], ReaderOptions(file_format="avro")
    if isinstance(ours, str):
        with pytest.raises(SchemaMismatchError, match=ours):
            inferred_schema(files, options)
        return
    schema = inferred_schema(files, options)
    rows = read_rows([path], schema, file_format="avro")
    if ours is not None:
        assert [row["v"] for row in rows] == ours
        return
    frame = lake.read.format("avro").load(str(path))
    assert spark_schema(schema) == frame.schema
    assert rows == frame.toArrow().to_pylist()

"""Avro: its codecs, and what becomes of its logical types."""

from __future__ import annotations

import datetime as dt
import json
import uuid
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.formats.avro.container import encoded
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import format_of, rows_of
from pyspark_sluice.tests.reader.files.reading import version

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_avro_blocks_of_each_codec_are_read(codec, tmp_path):
    path = tmp_path / "x.avro"
    _write_avro(path, codec, list(range(3000)))
    rows = rows_of(
        format_of("avro", pa.schema([("id", pa.int32())])), version(path), 700, 701, 3000
    )
    assert [row["id"] for row in rows] == list(range(3000))


def _write_avro(path: Path, codec: str, numbers: list[int]) -> None:
    """By hand where fastavro would need another package for the codec."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    if codec not in ("snappy", "zstandard"):
        with path.open("wb") as sink:
            records = ({"id": i} for i in numbers)
            fastavro.writer(sink, schema, records, codec=codec, sync_interval=500)
        return

    def sized(data: bytes) -> bytes:
        return encoded(len(data)) + data

    text = json.dumps(schema).encode()
    sync = bytes(range(16))
    parts = [b"Obj\x01", encoded(2), sized(b"avro.schema"), sized(text)]
    parts += [sized(b"avro.codec"), sized(codec.encode()), encoded(0), sync]
    for start in range(0, len(numbers), 100):
        plain = b"".join(encoded(i) for i in numbers[start : start + 100])
        name = {"zstandard": "zstd"}.get(codec, codec)
        packed = pa.Codec(name).compress(plain, asbytes=True)
        if codec == "snappy":
            packed += zlib.crc32(plain).to_bytes(4, "big")
        parts += [encoded(100), sized(packed), sync]
    path.write_bytes(b"".join(parts))


DATE_IN_AVRO = {"type": "int", "logicalType": "date"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def _decimal(precision: int, scale: int, **stored: Any) -> dict[str, Any]:
    digits = {"logicalType": "decimal", "precision": precision, "scale": scale}
    return {"type": "bytes", **stored, **digits}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    kinds = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": kinds}


LOGICAL = _record(
    "a.b.R",
    price=_decimal(10, 2),
    exact=["null", _decimal(38, 5, type="fixed", name="F", size=16)],
    day=DATE_IN_AVRO,
    millis={"type": "long", "logicalType": "timestamp-millis"},
    local={"type": "long", "logicalType": "local-timestamp-micros"},
    key={"type": "string", "logicalType": "uuid"},
    kind={"type": "enum", "name": "E", "symbols": ["A", "B"]},
    again="E",
    times={"type": "array", "items": ["null", MICROS]},
    prices={"type": "map", "values": _decimal(4, 1)},
    inner=["null", _record("N", day=DATE_IN_AVRO)],
    number=["null", "int", "long"],
    mixed=["int", "string"],
    chain=["null", _record("L", next=["null", "L"])],
)
TARGET = pa.schema(
    [
        ("again", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("exact", pa.decimal128(38, 5)),
        ("day", pa.date32()),
        ("millis", UTC),
        ("local", pa.timestamp("us")),
        ("key", pa.string()),
        ("times", pa.list_(UTC)),
        ("prices", pa.map_(pa.string(), pa.decimal128(4, 1))),
        ("inner", pa.struct([("day", pa.date32())])),
        ("number", pa.int64()),
    ]
)


def _row(i: int) -> dict[str, Any]:
    """What is read of a row; what is written has `key` as a UUID and `prices` as a dictionary."""
    return {
        "again": "B",
        "price": Decimal("-1.25") * i,
        "exact": Decimal("12345678901234567890.12345") if i % 2 else None,
        "day": dt.date(1, 1, 1),
        "millis": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "local": dt.datetime.fromisoformat("0001-01-01"),
        "key": str(uuid.UUID(int=i)),
        "times": [dt.datetime(9999, 1, 1, tzinfo=dt.UTC), None],
        "prices": [("k", Decimal("1.5"))],
        "inner": {"day": dt.date(2026, 1, 1)} if i % 2 else None,
        "number": 2**40 if i else 1,
    }


@pytest.fixture
def logical(tmp_path: Path) -> FileVersion:
    path, more = tmp_path / "logical.avro", {"kind": "A", "mixed": "s", "chain": {"next": None}}
    rows = [
        {**_row(i), **more, "key": uuid.UUID(int=i), "prices": {"k": Decimal("1.5")}}
        for i in range(3)
    ]
    with path.open("wb") as sink:
        fastavro.writer(sink, LOGICAL, rows)
    return version(path)


def test_avro_s_logical_types_become_columns(logical):
    assert rows_of(format_of("avro", TARGET), logical) == [_row(i) for i in range(3)]


def test_few_of_many_avro_columns_are_read_alone(logical):
    # The enum is defined in a column that is left out.
    rows = rows_of(format_of("avro", TARGET.empty_table().select(["again"]).schema), logical)
    assert rows == [{"again": "B"}] * 3


@pytest.mark.parametrize(
    ("column", "found"),
    [("mixed", "an Avro union of int, string"), ("chain", "the recursive Avro type a.b.L")],
)
def test_avro_types_that_spark_has_not_are_refused_if_wanted(column, found, logical):
    told = f"{column}.*{found}.*No type reads it: pass .schema.* without the column"
    with pytest.raises(SchemaMismatchError, match=told):
        rows_of(format_of("avro", pa.schema([(column, pa.string())])), logical)
    options = ReaderOptions(file_format="avro", schema_hints=f"{column} string")
    with pytest.raises(SchemaMismatchError, match="No type reads it"):
        inferred_schema([logical], options)

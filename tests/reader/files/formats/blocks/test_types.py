"""What each block format has of its own: types, codecs, columns that are left out, memory."""

from __future__ import annotations

import datetime as dt
import json
import os
import struct
import uuid
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import (
    MalformedDataError,
    OptionError,
    SchemaMismatchError,
    SplitReadError,
)
from pyspark_sluice.reader.files.formats.api import Splittability
from pyspark_sluice.reader.files.formats.avro.container import encoded
from pyspark_sluice.reader.files.formats.parquet.footer import bound
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    table_of,
)
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

pytestmark = pytest.mark.slow

UTC = pa.timestamp("us", "UTC")
DAY = 86_400_000_000


INT96 = {
    (2_440_588, 0): 0,
    (0, 0): -2_440_588 * DAY,
    (0, 5_999): -2_440_588 * DAY + 5,
    (1, 0): -2_440_587 * DAY,
    (-1, 0): -2_440_589 * DAY,
    (2_440_588, -1_999): -1,
    (2_440_588, -(2**63)): -(2**63) // 1000 + 1,
    (2_440_588, 2**63 - 1): 2**63 // 1000,
    (2_440_589, 86_400_000_005_000): 2 * DAY + 5,
}
"""Microseconds of Julian days and nanoseconds, at and beyond what either should be."""


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("notes", [False, True])
def test_int96_is_read_out_of_its_bytes_where_arrow_would_change_it(dictionary, notes, tmp_path):
    path = tmp_path / "x.parquet"
    first = dt.datetime.fromisoformat("2020-01-01")
    values = [first + dt.timedelta(days=i) for i in range(len(INT96))]
    times = pa.array([None, *values], pa.timestamp("us"))
    nested = pa.array([None, [None], *([{"t": value}] for value in values)][: len(times)])
    table = pa.table({"t": times, "n": nested})
    options = {"use_dictionary": dictionary, "compression": "none", "store_schema": notes}
    pq.write_table(
        table, path, use_deprecated_int96_timestamps=True, write_statistics=False, **options
    )
    data = path.read_bytes()
    for i, (day, nanoseconds) in enumerate(INT96):
        written = struct.pack("<qi", 0, 2_458_850 + i)
        data = data.replace(written, struct.pack("<qi", nanoseconds, day))
    path.write_bytes(data)
    schema = pa.schema([("t", UTC), ("n", pa.list_(pa.struct([("t", UTC)])))])
    columns = table_of("parquet", [path], schema)
    assert columns.column("t").cast(pa.int64()).to_pylist() == [None, *INT96.values()]
    inner = columns.column("n").combine_chunks().flatten().field("t").cast(pa.int64()).to_pylist()
    assert inner == [None, *INT96.values()][: len(inner)]
    assert len(inner) == len(INT96)


def test_a_column_that_does_not_decode_is_named(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"good": range(3000), "bad": range(3000)})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    chunk = pq.read_metadata(path).row_group(0).column(1)
    data = bytearray(path.read_bytes())
    end = chunk.data_page_offset + chunk.total_compressed_size
    data[end - 1000 : end] = bytes(1000)
    path.write_bytes(data)
    schema = pa.schema([("good", pa.int64()), ("bad", pa.int64())])
    with pytest.raises(MalformedDataError, match="column 'bad', which does not decode") as caught:
        rows_of(format_of("parquet", schema), version(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream])
def test_arrow_codecs_and_dictionaries(new, codec, tmp_path):
    path = tmp_path / "x.arrow"
    table = pa.table({"id": range(900), "s": pa.array(["a", "b", None] * 300).dictionary_encode()})
    options = ipc.IpcWriteOptions(compression=codec)
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)
    reader = format_of("arrow", pa.schema([("s", pa.string())]))
    counts = [block.rows for block in reader.blocks(version(path))]
    assert counts == ([100] * 9 if new is ipc.new_file else [900])
    assert [row["s"] for row in rows_of(reader, version(path))] == ["a", "b", None] * 300


def test_feather_files_of_version_one_are_named_as_such(tmp_path):
    path = tmp_path / "x.feather"
    path.write_bytes(b"FEA1" + bytes(40) + b"FEA1")
    with pytest.raises(MalformedDataError, match="Feather version 1"):
        rows_of(format_of("arrow"), version(path))


def test_orc_s_timestamps_hang_in_the_writer_s_zone_or_else_in_the_session_s(tmp_path):
    path = tmp_path / "x.orc"
    noon = pa.array([dt.datetime.fromisoformat("2026-07-01T12:00")], pa.timestamp("us"))
    orc.write_table(pa.table({"t": noon}), path)
    schema = pa.schema([("t", UTC)])
    berlin = format_of("orc", schema, timeZone="Europe/Berlin")
    assert rows_of(berlin, version(path))[0]["t"].hour == 12
    # The writer's zone is the third field of a stripe's footer; made an unknown one, it is gone.
    named, unnamed = b"\x1a\x03GMT", b"\x7a\x03GMT"
    assert path.read_bytes().count(named) == 1
    path.write_bytes(path.read_bytes().replace(named, unnamed))
    # What is counted is the time since 2015, which began in winter.
    assert rows_of(berlin, version(path))[0]["t"].hour == 11
    assert rows_of(format_of("orc", schema), version(path))[0]["t"].hour == 12


def test_binary_files_read_as_spark_reads_them(spark_answers, tmp_path):
    path = tmp_path / "a b.bin"
    path.write_bytes(b"\x00\x01")
    # Hadoop's local file system knows milliseconds only.
    os.utime(path, ns=(0, 1_700_000_000_123_000_000))

    def by_spark(spark: Any) -> tuple[str, dict[str, Any]]:
        frame = spark.read.format("binaryFile").load(str(tmp_path))
        ddl = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
        return ddl, _below(tmp_path, *frame.toArrow().to_pylist())

    ddl, expected = spark_answers(by_spark, path)
    reader = format_of("binaryFile", arrow_schema(ddl))
    assert reader.splittability(version(path)) is Splittability.WHOLE
    (found,) = rows_of(reader, version(path))
    assert _below(tmp_path, found) == expected


def _below(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "path": row["path"].removeprefix(f"file:{folder}/")}


def test_a_binary_file_is_not_opened_unless_its_content_is_wanted():
    # In whole microseconds: a float of today's seconds cannot tell one from the next.
    file = FileVersion("/nowhere/x", 3 * 2**30, 1_700_000_000_123_457)
    schema = pa.schema([("length", pa.int64()), ("modificationTime", UTC)])
    (row,) = rows_of(format_of("binaryFile", schema), file)
    time = dt.datetime(2023, 11, 14, 22, 13, 20, 123457, dt.UTC)
    assert row == {"length": 3 * 2**30, "modificationTime": time}
    with pytest.raises(SplitReadError, match="too long to be one value: /nowhere/x"):
        rows_of(format_of("binaryFile", pa.schema([("content", pa.binary())])), file)


def test_rows_count_where_the_file_s_own_count_is_left_at_zero(tmp_path):
    path = tmp_path / "x.parquet"
    for groups in (1, 2):
        table = pa.table({"id": list(range(60))})
        pq.write_table(table, path, row_group_size=60 // groups, store_schema=False)
        data = bytearray(path.read_bytes())
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        # The field of the footer after the schema, a number, then the list of row groups.
        count = data.index(bytes([0x16, 120, 0x19]), footer)
        data[count + 1] = 0
        path.write_bytes(data)
        schema = pa.schema([("id", pa.int64())])
        reader = format_of("parquet", schema)
        assert sum(block.rows for block in reader.blocks(version(path))) == 60
        assert [row["id"] for row in rows_of(reader, version(path))] == list(range(60))


def test_bounds_that_are_not_numbers_say_nothing():
    assert bound(struct.pack("<d", float("nan")), pa.float64()) is None
    assert bound(struct.pack("<d", 1.5), pa.float64()) == pa.scalar(1.5)


def test_a_release_of_pyarrow_that_drops_rows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    schema = pa.schema([("id", pa.int64())])
    pq.write_table(pa.table({"id": [1]}, schema), path)
    assert table_of("parquet", [path], schema).num_rows == 1
    monkeypatch.setattr(pa, "__version__", "25.0.0")
    with pytest.raises(OptionError, match=r"pyarrow 25\.0\.0"):
        table_of("parquet", [path], schema)


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


def test_avro_s_logical_types_become_columns_together_and_alone(logical):
    assert rows_of(format_of("avro", TARGET), logical) == [_row(i) for i in range(3)]
    # The enum is defined in a column that is left out.
    enum = format_of("avro", pa.schema([("again", pa.string())]))
    assert rows_of(enum, logical) == [{"again": "B"}] * 3


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

"""Random tables in Parquet, ORC, Avro and Arrow, by pyarrow and fastavro with their options.

They are compared with the tables themselves. Other writers, and Spark's readings of such files, are
in `tests/reader/files/formats/blocks`.
"""

from __future__ import annotations

import datetime as dt
import io
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, ipc, orc

from pyspark_sluice.tests.reader.readings.kinds import fields
from pyspark_sluice.tests.reader.readings.model import Group, Outcome
from pyspark_sluice.tests.reader.readings.values import comparable

EXACT = Context(prec=80)
"""Rounds no decimal that a column can hold."""

TEXTS = ("", "a", "text", "é\u4e2d", "\U0001f600", "A", "null", " ", "x" * 40)
DAYS = (-25567, 0, 1, 19723, 60000)
INSTANTS = (0, 1, 5_000, 1_700_000_000_123_456, -2_000_000_000_000_000, 4_000_000_000_000_000)
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "parquet": {
        "version": ["1.0", "2.4", "2.6"],
        "data_page_version": ["1.0", "2.0"],
        "compression": ["none", "snappy", "gzip", "zstd", "lz4", "brotli"],
        "use_dictionary": [True, False],
        "write_statistics": [True, False],
        "row_group_size": [7, 1000],
        "data_page_size": [64, 1 << 20],
        "store_schema": [True, False],
        "store_decimal_as_integer": [True, False],
        "use_compliant_nested_type": [True, False],
        "write_page_index": [True, False],
        "use_deprecated_int96_timestamps": [False, False, True],
        "dictionary_pagesize_limit": [None, 16],
    },
    "orc": {
        "file_version": ["0.11", "0.12"],
        "compression": ["uncompressed", "zlib", "snappy", "lz4", "zstd"],
        "stripe_size": [1024, 64 * 1024 * 1024],
        "compression_block_size": [65536, 262144],
        "dictionary_key_size_threshold": [0.0, 1.0],
        "row_index_stride": [1000, 10000],
        "batch_size": [3, 1024],
    },
    "avro": {
        "codec": ["null", "deflate", "bzip2", "xz"],
        "sync_interval": [30, 16000],
        "metadata": [None, {"key": "value"}],
    },
    "arrow": {
        "compression": [None, "lz4", "zstd"],
        "allow_64bit": [False, True],
        "emit_dictionary_deltas": [False, True],
        "unify_dictionaries": [False, True],
    },
}


def group(chance: Random, files: int, file_format: str) -> Group:
    """Tables of one schema, which is asked for as it is, in part, or in wider types."""
    stored = pa.schema(fields(chance, chance.randint(2, 6), chance.choice([0, 1, 2])))
    asked = _asked(chance, stored)
    contents, written, labels = [], [], []
    for _ in range(files):
        table = _table(chance, stored, chance.choice([0, 1, 3, 20, 60]))
        options = {name: chance.choice(values) for name, values in OPTIONS[file_format].items()}
        contents.append(_WRITERS[file_format](chance, table, options))
        labels.append(str(options))
        written.append(_as_asked(table, asked))
    made = tuple(contents), tuple(written), tuple(labels)
    return Group(file_format, asked, {}, made[0], written=made[1], labels=made[2])


def _parquet(_: Random, table: pa.Table, options: dict[str, Any]) -> bytes:
    if "bool" in str(table.schema):
        # Arrow does not read its own booleans in lists; see docs/differences.md.
        options["data_page_version"] = "1.0"
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def _orc(_: Random, table: pa.Table, options: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def _arrow(chance: Random, table: pa.Table, options: dict[str, Any]) -> bytes:
    sink, form = pa.BufferOutputStream(), chance.choice(["file", "stream", "feather"])
    table, rows = _encoded(chance, table), chance.choice([7, 1000])
    if form == "feather":
        feather.write_feather(table, sink, options["compression"] or "uncompressed", chunksize=rows)
        return sink.getvalue().to_pybytes()
    new = ipc.new_file if form == "file" else ipc.new_stream
    with new(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def _encoded(chance: Random, table: pa.Table) -> pa.Table:
    """Some columns as dictionaries, in chunks that have others."""
    for number, field in enumerate(table.schema):
        if chance.random() < 0.15 and not pa.types.is_nested(field.type):
            column = table.column(number)
            starts = range(0, max(1, table.num_rows), 20)
            parts = [column.slice(at, 20).combine_chunks().dictionary_encode() for at in starts]
            chunks = pa.chunked_array(parts)
            table = table.set_column(number, pa.field(field.name, chunks.type), chunks)
    return table


def avro_file(table: pa.Table, **options: Any) -> bytes:
    """A table as fastavro writes it, with null in each union."""
    # Avro has no columns with dots and spaces in their names, but fastavro writes them.
    columns = [{"name": f.name, "type": avro_type(f, f"r{n}")} for n, f in enumerate(table.schema)]
    sink = io.BytesIO()
    rows = table.to_pylist(maps_as_pydicts="strict")
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": columns}, rows, **options)
    return sink.getvalue()


_WRITERS: dict[str, Callable[[Random, pa.Table, dict[str, Any]], bytes]] = {
    "parquet": _parquet,
    "orc": _orc,
    "arrow": _arrow,
    "avro": lambda _, table, options: avro_file(table, **options),
}
_IN_AVRO: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def avro_type(field: pa.Field, name: str) -> list[Any]:
    """A union of null and the type; `name` makes the names of its records differ."""
    kind = field.type
    if pa.types.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return ["null", {"type": "bytes", "logicalType": "decimal", **digits}]
    if pa.types.is_struct(kind):
        parts = [{"name": f.name, "type": avro_type(f, f"{name}_{n}")} for n, f in enumerate(kind)]
        return ["null", {"type": "record", "name": name, "fields": parts}]
    if pa.types.is_list(kind):
        return ["null", {"type": "array", "items": avro_type(kind.value_field, name)}]
    if pa.types.is_map(kind):
        return ["null", {"type": "map", "values": avro_type(kind.item_field, name)}]
    return ["null", _IN_AVRO[kind]]


def _table(chance: Random, schema: pa.Schema, rows: int) -> pa.Table:
    """So many rows; in some columns few different values, as dictionaries need."""
    columns = []
    for field in schema:
        pool = [_value(chance, field.type) for _ in range(chance.choice([1, 3, max(1, rows)]))]
        values = [None if chance.random() < 0.15 else chance.choice(pool) for _ in range(rows)]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _value(chance: Random, kind: pa.DataType) -> Any:
    """A value of the type, the ends of it more often than chance would have it."""
    if pa.types.is_struct(kind):
        return {f.name: _maybe(chance, f.type) for f in kind}
    if pa.types.is_list(kind):
        return [_maybe(chance, kind.value_type) for _ in range(chance.randint(0, 3))]
    if pa.types.is_map(kind):
        keys = chance.sample(["k", "j", "", "é"], chance.randint(0, 3))
        return [(key, _maybe(chance, kind.item_type)) for key in keys]
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_integer(kind):
        edge = 1 << (kind.bit_width - 1)
        return chance.choice([0, 1, -1, edge - 1, -edge, chance.randint(-edge, edge - 1)])
    if pa.types.is_floating(kind):
        layout = "<f" if kind.bit_width == 32 else "<d"
        raw = chance.getrandbits(kind.bit_width).to_bytes(kind.bit_width // 8, "little")
        near = [0.0, -0.0, 1.1, 0.1, 16777216.0, float("nan"), float("inf")]
        number = chance.choice([*near, *struct.unpack(layout, raw)])
        return float(struct.unpack(layout, struct.pack(layout, number))[0])
    if pa.types.is_decimal(kind):
        digits = chance.choice([kind.precision, 1, chance.randint(1, kind.precision)])
        number = chance.choice([10**digits - 1, chance.randrange(10**digits), 0])
        # From text: arithmetic on decimals would round them to 28 digits.
        return Decimal(f"{chance.choice(['', '-'])}{number}E-{kind.scale}")
    if pa.types.is_date(kind):
        return dt.date(1970, 1, 1) + dt.timedelta(days=chance.choice(DAYS))
    if pa.types.is_timestamp(kind):
        return chance.choice(INSTANTS)
    return chance.choice([b"", b"a", b"\xff\x00"] if pa.types.is_binary(kind) else TEXTS)


def _maybe(chance: Random, kind: pa.DataType) -> Any:
    return None if chance.random() < 0.2 else _value(chance, kind)


def _asked(chance: Random, stored: pa.Schema) -> pa.Schema:
    """Of the columns some, in another order; some of a wider type."""
    chosen = [f for f in stored if chance.random() < 0.8] or [stored.field(0)]
    if chance.random() < 0.3:
        chance.shuffle(chosen)
    if chance.random() < 0.3:
        chosen = [f.with_type(_wider(chance, f.type)) for f in chosen]
    return pa.schema(chosen)


def _wider(chance: Random, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return chance.choice([kind, pa.int64(), pa.float64(), pa.decimal128(38, 18)])
    if pa.types.is_decimal(kind):
        wide = pa.decimal128(38, min(38, kind.scale + 9))
        return chance.choice([kind, wide, pa.decimal128(38, 18)])
    return pa.float64() if kind == pa.float32() else kind


def _as_asked(table: pa.Table, asked: pa.Schema) -> Outcome:
    """The rows as they were written, of the columns that are asked for, if every value fits."""
    for field in asked:
        if not all(map(partial(_fits, field.type), table.column(field.name).to_pylist())):
            return f"refused: values of {field.name} do not fit {field.type}"
    return comparable(table.select(asked.names))


def _fits(kind: pa.DataType, value: Any) -> bool:
    """True if the column's type, which may be wider than the one stored, holds this value."""
    if isinstance(value, Decimal) and pa.types.is_decimal(kind):
        # Zeros at the end need no room.
        exponent = EXACT.normalize(value).as_tuple().exponent
        room = Decimal(f"1E{kind.precision - kind.scale}")
        return isinstance(exponent, int) and -exponent <= kind.scale and value.copy_abs() < room
    if isinstance(value, int) and pa.types.is_floating(kind):
        return int(float(value)) == value
    return True

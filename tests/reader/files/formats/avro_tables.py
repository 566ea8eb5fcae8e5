"""Tables as Avro files, by fastavro."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa


def avro_file(table: pa.Table, **options: Any) -> bytes:
    """A table as fastavro writes it, with null in each union."""
    # Avro has no columns with dots and spaces in their names, but fastavro writes them.
    columns = [{"name": f.name, "type": _avro_type(f, f"r{n}")} for n, f in enumerate(table.schema)]
    sink = io.BytesIO()
    rows = table.to_pylist(maps_as_pydicts="strict")
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": columns}, rows, **options)
    return sink.getvalue()


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


def _avro_type(field: pa.Field, name: str) -> list[Any]:
    """A union of null and the type; `name` makes the names of its records differ."""
    kind = field.type
    if pa.types.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return ["null", {"type": "bytes", "logicalType": "decimal", **digits}]
    if pa.types.is_struct(kind):
        parts = [{"name": f.name, "type": _avro_type(f, f"{name}_{n}")} for n, f in enumerate(kind)]
        return ["null", {"type": "record", "name": name, "fields": parts}]
    if pa.types.is_list(kind):
        return ["null", {"type": "array", "items": _avro_type(kind.value_field, name)}]
    if pa.types.is_map(kind):
        return ["null", {"type": "map", "values": _avro_type(kind.item_field, name)}]
    return ["null", _IN_AVRO[kind]]

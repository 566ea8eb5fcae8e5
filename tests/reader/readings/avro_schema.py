"""Arrow's types as Avro has them, for the writer of the tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_PLAIN: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def avro_type(kind: pa.DataType, name: str) -> list[Any]:
    """A union of null and the type; `name` makes its records' names differ."""
    return ["null", _not_null(kind, name)]


def _not_null(kind: pa.DataType, name: str) -> Any:
    if pa.types.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if pa.types.is_struct(kind):
        parts = [
            {"name": f.name, "type": avro_type(f.type, f"{name}_{n}")} for n, f in enumerate(kind)
        ]
        return {"type": "record", "name": name, "fields": parts}
    if pa.types.is_list(kind):
        return {"type": "array", "items": avro_type(kind.value_type, name + "_e")}
    if pa.types.is_map(kind):
        return {"type": "map", "values": avro_type(kind.item_type, name + "_v")}
    return _PLAIN[kind]


def avro_value(value: Any, kind: pa.DataType) -> Any:
    """The value as the writer takes it: maps as dictionaries."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: avro_value(inner, kind.item_type) for key, inner in value}
    if pa.types.is_list(kind):
        return [avro_value(inner, kind.value_type) for inner in value]
    if pa.types.is_struct(kind):
        return {f.name: avro_value(value[f.name], f.type) for f in kind}
    return value

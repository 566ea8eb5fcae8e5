"""Values of two readers in a form in which equal ones are equal, and no other ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from pyspark_sluice.tests.reader.readings.model import Rows


def comparable(table: pa.Table) -> Rows:
    """Rows in which instants and days are numbers, bytes are text, floats keep their bits."""
    plain = pa.schema([pa.field(f.name, _plain_type(f.type)) for f in table.schema])
    columns = [column.cast(field.type) for column, field in zip(table.columns, plain, strict=True)]
    rows = pa.Table.from_arrays(columns, schema=plain).to_pylist()
    return [{name: _value(value) for name, value in row.items()} for row in rows]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain_type(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _plain_type(kind.item_type))
    return kind


def _value(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"value", "metadata"}:
        return _variant(value["value"], value["metadata"])
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(inner) for inner in value]
    if isinstance(value, float):
        return f"float {value!r}"
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, Decimal):
        return f"decimal {value:f}"
    if isinstance(value, bytes):
        # Spark carries bytes along that are not UTF-8; Arrow's strings cannot.
        return value.decode("utf-8", "replace")
    return value


def _variant(value: bytes, metadata: bytes) -> str:
    """What a variant holds, with the types of its values; the names' numbers do not count."""
    from pyspark.sql.types import VariantVal

    try:
        return f"variant {VariantVal(value, metadata).toPython()!r}"
    except (ArithmeticError, ValueError, RecursionError, PySparkException):
        # Days and instants that Python does not have, and a thousand levels.
        return f"variant {value.hex()} {metadata.hex()}"


def with_bytes(kind: Any) -> Any:
    """Spark's type with binary for string, so that text that is not UTF-8 can be collected."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return types.BinaryType()
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(with_bytes(kind.elementType))
    if isinstance(kind, types.MapType):
        return types.MapType(types.BinaryType(), with_bytes(kind.valueType))
    if isinstance(kind, types.StructType):
        return types.StructType([types.StructField(f.name, with_bytes(f.dataType)) for f in kind])
    return kind

"""Arrow schemas as Spark's JSON, in which schemas are stored, and back; without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...errors import OptionError
from ...reader.files.evolution.file_types import SPARK_METADATA
from ...reader.files.evolution.type_growth import SPARK_TYPES, is_variant

_NAMES: Final = {
    **{kind: name for name, kind in SPARK_TYPES.items() if name != "variant"},
    # Spark has one type for each of these.
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}

# Units and sizes of Arrow that Spark does not tell apart. Variants are structs, too.
_KINDS: Final[Sequence[tuple[Callable[[pa.DataType], bool], str]]] = (
    (lambda kind: bool(pa.types.is_timestamp(kind) and kind.tz), "timestamp"),
    (pa.types.is_timestamp, "timestamp_ntz"),
    (pa.types.is_time64, "time(6)"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_fixed_size_binary, "binary"),
    (is_variant, "variant"),
)
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
# Other parameters change no Arrow type: char(3), time(3), string collate UTF8_LCASE.
_PARAMETERS = re.compile(r"(char|varchar|time|string|interval)\b.*")
_WITH_PARAMETERS: Final = {
    "char": pa.string(),
    "varchar": pa.string(),
    "time": pa.time64("ns"),
    "string": pa.string(),
    "interval": pa.duration("us"),
}


def json_of(schema: pa.Schema) -> dict[str, Any]:
    """The schema as Spark writes it; timestamps without a zone stay without one.

    Raises:
        OptionError: Spark has no such type.
    """
    return {"type": "struct", "fields": [_field_json(field) for field in schema]}


def arrow_schema_of(stored: Mapping[str, Any]) -> pa.Schema:
    """The Arrow schema of a stored one: types, order and nullability as Spark checks them."""
    return pa.schema([_arrow_field(field) for field in stored["fields"]])


def _field_json(field: pa.Field) -> dict[str, Any]:
    metadata = json.loads((field.metadata or {}).get(SPARK_METADATA, b"{}"))
    return {
        "name": field.name,
        "type": _type_json(field.type),
        "nullable": field.nullable,
        "metadata": metadata,
    }


def _type_json(kind: pa.DataType) -> Any:
    name = _NAMES.get(kind) or next((name for is_one, name in _KINDS if is_one(kind)), None)
    if name is not None:
        return name
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field_json(kind.field(n)) for n in range(len(kind))]}
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _type_json(kind.key_type),
            "valueType": _type_json(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if any(is_one(kind) for is_one in _LISTS):
        return {
            "type": "array",
            "elementType": _type_json(kind.value_type),
            "containsNull": kind.value_field.nullable,
        }
    raise OptionError("Spark has no type for a column", "", str(kind), "a type that Spark has")


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    metadata = field.get("metadata")
    kept = {SPARK_METADATA: json.dumps(metadata).encode()} if metadata else None
    return pa.field(field["name"], _arrow_type(field["type"]), field["nullable"], kept)


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return _by_name(kind)
    if kind["type"] == "struct":
        return pa.struct([_arrow_field(field) for field in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"]), kind["containsNull"]))
    if kind["type"] == "map":
        key = pa.field("key", _arrow_type(kind["keyType"]), nullable=False)
        return pa.map_(
            key, pa.field("value", _arrow_type(kind["valueType"]), kind["valueContainsNull"])
        )
    return _by_name(str(kind["type"]))


def _by_name(name: str) -> pa.DataType:
    if name in SPARK_TYPES:
        return SPARK_TYPES[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    word = _PARAMETERS.fullmatch(name)
    if word is not None:
        return _WITH_PARAMETERS[word[1]]
    raise OptionError("a stored schema has a type that is not known", "", name, "a type of Spark")

"""The types of JSON values, and what of a record a schema does not have.

Not here: values as values of a schema (`values.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...evolution.types import merged, wider
from ..variants import is_variant
from .scalars import Number

_LONG = 1 << 63
_INTEGER = re.compile(r"-?\d+\Z", re.ASCII)


def json_leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Two values under one name: numbers as the wider one, anything else as text."""
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return wider(one, other) or pa.string()


def type_of_json(value: Any, *, exact: bool) -> pa.DataType:
    """The type of a parsed value; with `exact` false, numbers and booleans are strings."""
    if isinstance(value, Mapping):
        fields = [(name, type_of_json(v, exact=exact)) for name, v in value.items()]
        # Spark's sinks have no structs without fields.
        return pa.struct(fields) if fields else pa.null()
    if isinstance(value, list):
        kind: pa.DataType = pa.null()
        for inner in value:
            kind = merged(kind, type_of_json(inner, exact=exact), json_leaf) or pa.string()
        return pa.list_(pa.field("element", kind))
    if value is None:
        return pa.null()
    if not exact or (isinstance(value, str) and type(value) is not Number):
        return pa.string()
    return _simple(value)


def _simple(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if type(value) is Number:
        value = int(value) if _INTEGER.match(value) else math.nan
    if isinstance(value, int):
        if -_LONG <= value < _LONG:
            return pa.int64()
        digits = len(str(abs(value)))
        return pa.decimal128(digits, 0) if digits <= 38 else pa.float64()
    return pa.float64()


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Where only nulls were seen, strings, as in Spark."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without_nulls(kind.value_type)))
    return kind


class KnownFields:
    """The names of a schema, at every depth."""

    def __init__(self, kind: pa.DataType) -> None:
        """`kind` is a struct, or whatever may hold some."""
        self._fields: dict[str, KnownFields] | None = None
        self._elements: KnownFields | None = None
        if pa.types.is_struct(kind) and not is_variant(kind):
            self._fields = {field.name: KnownFields(field.type) for field in kind}
        elif pa.types.is_list(kind):
            self._elements = KnownFields(kind.value_type)
        elif pa.types.is_map(kind):
            self._elements = KnownFields(kind.item_type)

    def unknown_part(self, value: Any) -> Any:
        """What of `value` the schema does not have, in its place; None if nothing.

        A null or an empty object under an unknown name is nothing: it is seen when it has a value.
        """
        if self._fields is not None and isinstance(value, dict):
            found = {}
            for name, inner in value.items():
                known = self._fields.get(name)
                part = _content(inner) if known is None else known.unknown_part(inner)
                if part is not None:
                    found[name] = part
            return found or None
        if self._elements is not None and isinstance(value, list):
            parts = [self._elements.unknown_part(inner) for inner in value]
            return parts if any(part is not None for part in parts) else None
        if self._elements is not None and isinstance(value, dict):
            return {k: p for k, v in value.items() if (p := self._elements.unknown_part(v))} or None
        return None


def _content(value: Any) -> Any:
    """`value`, or None if no value is in it."""
    if isinstance(value, dict):
        return value if any(_content(inner) is not None for inner in value.values()) else None
    if isinstance(value, list):
        return value if any(_content(inner) is not None for inner in value) else None
    return value

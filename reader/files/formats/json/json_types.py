"""The types of JSON values.

Not here: values as values of a schema (`token_values.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import merged, wider_or_text
from ...values.numbers import type_of
from .json_scalars import Number


def type_of_json(values: Iterable[Any], *, exact: bool) -> pa.DataType:
    """The one type that takes all of these parsed values; null without values.

    With `exact` false, numbers and booleans are strings.
    """
    values = [value for value in values if value is not None]
    objects = [value for value in values if isinstance(value, Mapping)]
    arrays = [value for value in values if isinstance(value, list)]
    leaves = (value for value in values if not isinstance(value, (Mapping, list)))
    kinds = list(dict.fromkeys(_leaf(value, exact=exact) for value in leaves))
    if arrays:
        element = type_of_json(chain.from_iterable(arrays), exact=exact)
        kinds.append(pa.list_(pa.field("element", element)))
    fields: dict[str, list[Any]] = {}
    for value in objects:
        for name, inner in value.items():
            fields.setdefault(name, []).append(inner)
    # Spark's sinks have no structs without fields.
    if fields:
        kinds.append(pa.struct([(n, type_of_json(v, exact=exact)) for n, v in fields.items()]))
    kind: pa.DataType = pa.null()
    for found in kinds:
        kind = merged(kind, found, wider_or_text)
    return kind


def _leaf(value: Any, *, exact: bool) -> pa.DataType:
    # A `Number` is a string with the digits, so strings are those that are not.
    if not exact or (isinstance(value, str) and type(value) is not Number):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    # Words such as NaN are numbers too.
    return type_of(str(value)) or pa.float64()


def as_maps(found: pa.DataType, known: pa.DataType) -> pa.DataType:
    """`found` with a map where `known` has one: by itself any object is a struct."""
    if pa.types.is_map(known) and pa.types.is_struct(found):
        item: pa.DataType = pa.null()
        for field in found:
            item = merged(item, as_maps(field.type, known.item_type), wider_or_text)
        return pa.map_(pa.string(), item)
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(pa.field("element", as_maps(found.value_type, known.value_type)))
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        kinds = {field.name: field.type for field in known}
        fields = [(f.name, as_maps(f.type, kinds.get(f.name, f.type))) for f in found]
        return pa.struct(fields)
    return found


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Where only nulls were seen, strings, as in Spark."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without_nulls(kind.value_type)))
    return kind

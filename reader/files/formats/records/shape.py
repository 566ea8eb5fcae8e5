"""The schema of records without one: of parsed values, by whole columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import children, merged, wider_or_text, with_children
from ...values.numbers import type_of

_LEAVES = {bool: pa.bool_(), float: pa.float64(), str: pa.string()}


def type_of_values(values: Sequence[Any], *, exact: bool) -> pa.DataType:
    """Return the one type that takes all of these parsed values; null without values.

    With `exact` false, numbers and booleans are strings.
    """
    classes = set(map(type, values))
    kinds = [_type_of_leaves(each, values, exact) for each in classes - {dict, list, type(None)}]
    if list in classes:
        elements = chain.from_iterable(value for value in values if type(value) is list)
        kinds.append(pa.list_(pa.field("element", type_of_values(list(elements), exact=exact))))
    if dict in classes:
        objects = [value for value in values if type(value) is dict]
        fields = [
            (name, type_of_values([value.get(name) for value in objects], exact=exact))
            for name in dict.fromkeys(chain.from_iterable(objects))
        ]
        # Spark's sinks have no structs without fields.
        kinds += [pa.struct(fields)] if fields else []
    kind: pa.DataType = pa.null()
    for other in kinds:
        kind = merged(kind, other, wider_or_text)
    return kind


def _type_of_leaves(each: type, values: Sequence[Any], exact: bool) -> pa.DataType:
    if not exact:
        return pa.string()
    if each in _LEAVES:
        return _LEAVES[each]
    kind: pa.DataType = pa.null()
    if each is int:
        numbers = [value for value in values if type(value) is int]
        texts: Collection[str] = {str(min(numbers)), str(max(numbers))}
    else:
        texts = {str(value) for value in values if type(value) is each}
    for text in texts:
        # Words such as NaN are numbers too.
        kind = merged(kind, type_of(text) or pa.float64(), wider_or_text)
    return kind


def as_maps(kind: pa.DataType, column: pa.DataType) -> pa.DataType:
    """`kind` with a map where `column` has one: by itself any object is a struct."""
    if pa.types.is_map(column) and pa.types.is_struct(kind):
        item: pa.DataType = pa.null()
        for field in kind:
            item = merged(item, as_maps(field.type, column.item_type), wider_or_text)
        return pa.map_(pa.string(), item)
    if pa.types.is_list(column) and pa.types.is_list(kind):
        return pa.list_(pa.field("element", as_maps(kind.value_type, column.value_type)))
    if pa.types.is_struct(column) and pa.types.is_struct(kind):
        kinds = {field.name: field.type for field in column}
        fields = [(f.name, as_maps(f.type, kinds.get(f.name, f.type))) for f in kind]
        return pa.struct(fields)
    return kind


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Return where only nulls were seen, strings, as in Spark."""
    if pa.types.is_null(kind):
        return pa.string()
    fields = (field.with_type(without_nulls(field.type)) for _, field in children(kind))
    return with_children(kind, fields)

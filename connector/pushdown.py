"""Conditions of Spark's that a batch read uses to leave out files, row groups and rows.

Spark applies every one of them again: what is left out here only spares work, and whatever is not
understood is left to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import Filter

from ..reader.files.formats.filter.conditions import Condition
from ..reader.files.formats.records import METADATA

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_NULL_TESTS = {"IsNull": "is null", "IsNotNull": "is not null"}


def conditions_of(filters: Sequence[Filter], schema: pa.Schema) -> list[Condition]:
    """What `filters` say of single columns, in this reader's words."""
    metadata = schema.field(METADATA).type if METADATA in schema.names else pa.struct([])
    if metadata.get_field_index("row_index") >= 0:
        return []  # Rows are numbered, so none may be left out before.
    return [condition for one in filters for condition in _conditions(one, schema)]


def _conditions(one: Any, schema: pa.Schema) -> Iterator[Condition]:
    name = type(one).__name__
    if name == "Not":
        inner = type(one.child).__name__
        flipped = {"EqualTo": "!=", "IsNull": "is not null", "IsNotNull": "is null"}.get(inner)
        one, op = one.child, flipped or ""
    else:
        op = _COMPARISONS.get(name) or _NULL_TESTS.get(name) or ("in" if name == "In" else "")
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if not op or len(path) != 1 or path[0] not in schema.names:
        return
    field = schema.field(path[0])
    if op in _NULL_TESTS.values():
        yield Condition(field.name, op, ())
        return
    given = [value for value in one.value if value is not None] if op == "in" else [one.value]
    try:
        values = tuple(_literal(value, field.type) for value in given)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        return
    if values:
        yield Condition(field.name, op, values)


def _literal(value: Any, kind: pa.DataType) -> pa.Scalar:
    types = pa.types
    ordered = (
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        or types.is_string(kind) or types.is_date(kind) or types.is_timestamp(kind)
    )  # fmt: skip
    if value is None or not ordered or isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and math.isnan(value):
        raise ValueError  # Spark's NaN equals itself.
    made = pa.scalar(value, kind)
    if made.as_py() != value:
        raise ValueError  # Rounded to the column's type.
    return made

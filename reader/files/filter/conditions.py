"""One condition of a filter, and what it means for a column and for a block's statistics.

A condition that is null for a row does not hold, as in SQL, and NaN is greater than every number,
as in Spark. Parsing is in `predicate.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COMPARE = {
    "=": pc.equal,
    "in": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Range:
    """What a block's metadata says of one column; values already in the column's target type."""

    low: pa.Scalar | None
    high: pa.Scalar | None
    nulls: int | None
    rows: int


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct. `values` has one literal, several for IN, none for the two null tests.

    A literal has the type in which Spark compares it with the column, which is not always the
    column's: a literal is never rounded to a narrower type.
    """

    column: str
    op: str
    values: tuple[pa.Scalar, ...]

    def holds(self, array: pa.Array) -> pa.Array:
        """True, false or null for each value of the column."""
        if self.op == "is null":
            return array.is_null()
        if self.op == "is not null":
            return array.is_valid()
        # Arrow's sets tell -0.0 from 0.0.
        may_be_set = self.op == "in" and not pa.types.is_floating(array.type)
        if may_be_set and all(value.type == array.type for value in self.values):
            return pc.is_in(array, value_set=pa.array(self.values, array.type))
        mask = reduce(pc.or_, (self._compare(array, value) for value in self.values))
        if self.op in (">", ">=") and pa.types.is_floating(array.type):
            mask = pc.or_(mask, pc.is_nan(array))
        return mask

    def _compare(self, array: pa.Array, value: pa.Scalar) -> pa.Array:
        return COMPARE[self.op](_comparable(array, value.type), value)

    def may_hold(self, known: Range) -> bool:
        """False only if no row of the block can fulfil the condition."""
        if known.nulls is not None:
            if self.op == "is null":
                return known.nulls > 0
            if known.nulls == known.rows:
                return False
        if self.op in ("is null", "is not null") or known.low is None or known.high is None:
            return True
        return any(self._may_equal(value, known.low, known.high) for value in self.values)

    def _may_equal(self, value: pa.Scalar, low: pa.Scalar, high: pa.Scalar) -> bool:
        # NaN does not count for minimum and maximum but for > and != it does.
        floating = pa.types.is_floating(value.type)
        low, high = _comparable(low, value.type), _comparable(high, value.type)
        if self.op in ("=", "in"):
            return _true(pc.less_equal(low, value)) and _true(pc.less_equal(value, high))
        if self.op == "!=":
            return floating or not (_true(pc.equal(low, value)) and _true(pc.equal(high, value)))
        if self.op in ("<", "<="):
            return _true(COMPARE[self.op](low, value))
        return floating or _true(COMPARE[self.op](high, value))


def _true(scalar: pa.Scalar) -> bool:
    return bool(scalar.as_py())


def _comparable(values: Any, kind: pa.DataType) -> Any:
    """An array or a scalar of a column in the type of a literal, which takes all its values."""
    if values.type == kind:
        return values
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        values = values.cast(pa.decimal128(38, 0))
    return values.cast(kind, safe=False)

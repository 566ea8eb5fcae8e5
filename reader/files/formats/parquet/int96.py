"""INT96 timestamps as Spark reads them: from the twelve bytes, not from what Arrow makes of them.

Arrow takes the day 0 for the filling of nulls, and days and nanoseconds as unsigned, so that values
at the edges would come out as other ones without a word. So it is shown a footer in which these
columns are of twelve bytes each, as they lie in the file: eight of nanoseconds, four of the day.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...values.rows import in_place_of
from .schema_elements import FIXED_BYTES, INT96, LENGTH, TYPE, Fields, number

_DAY = 86_400_000_000
_JULIAN_DAY_OF_1970 = np.int32(2_440_588)
_PARTS = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])


def as_bytes(fields: Fields) -> Fields:
    """Return the fields of an element that are not INT96, but twelve bytes."""
    if fields.get(TYPE) != number(INT96):
        return fields
    return fields | {TYPE: number(FIXED_BYTES), LENGTH: number(_PARTS.itemsize)}


def timestamps(array: pa.FixedSizeBinaryArray) -> pa.TimestampArray:
    """Return the instants, with Spark's arithmetic: it wraps around, and cuts towards zero."""
    data = array.buffers()[1]
    parts: Any = np.frombuffer(data, _PARTS, len(array), array.offset * _PARTS.itemsize)
    nanoseconds = parts["nanoseconds"].astype(np.int64)
    microseconds = nanoseconds // 1000
    if nanoseconds.size and nanoseconds.min() < 0:
        # Spark's division cuts towards zero, numpy's goes down.
        microseconds += (nanoseconds < 0) & (nanoseconds % 1000 != 0)
    # In 32 bits, as Spark subtracts them.
    days = parts["day"] - _JULIAN_DAY_OF_1970
    return in_place_of(array, days.astype(np.int64) * _DAY + microseconds, pa.timestamp("us"))

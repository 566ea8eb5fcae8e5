"""One file of every type, and what it reads in several engines."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_AT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.UTC)
# Spark's Python cannot collect the year 1.
_FIRST = dt.datetime(1583, 1, 1, tzinfo=dt.UTC)
_LAST = dt.datetime(9998, 12, 31, 23, 59, 59, 999999, dt.UTC)
_TIMES = [_FIRST, _LAST, None, _AT]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), [0, 1, 2, 3]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "whole": (pa.int32(), [2**31 - 1, -(2**31), None, 0]),
    "large": (pa.int64(), [2**63 - 1, -(2**63), None, 0]),
    "single": (pa.float32(), [1.5, float("inf"), None, float("nan")]),
    "real": (pa.float64(), [5e-324, float("-inf"), None, float("nan")]),
    "price": (pa.decimal128(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), None, 0]),
    "wide": (pa.decimal128(38, 10), [Decimal(10) ** 27, -(Decimal(10) ** 27), None, 0]),
    "text": (pa.string(), ["", "ä😀\u0001", None, "a" * 100]),
    "octets": (pa.binary(), [b"", b"\x00\xff", None, b"a"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1)]),
    "at": (pa.timestamp("us", "UTC"), _TIMES),
    "local": (pa.timestamp("us"), [t and t.replace(tzinfo=None) for t in _TIMES]),
    "list": (pa.list_(pa.string()), [["a", None], [], None, ["b"]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [], None, [("n", None)]]),
    "inner": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float64()))]),
        [{"x": 1, "y": [1.0, None]}, {"x": None, "y": None}, None, {"x": 2, "y": []}],
    ),
}  # fmt: skip
SMALL = {"byte": (pa.int8(), [127, -128, None, 0]), "short": (pa.int16(), [32767, -32768, None, 0])}
"""Types that Delta has and Iceberg has not."""


def write_every_type(path: Path, *, small: bool) -> pa.Table:
    """Write a Parquet file that has a row of ordinary values, of limits and of nulls."""
    columns = {**COLUMNS, **(SMALL if small else {})}
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, path)
    return table

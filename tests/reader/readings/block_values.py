"""Random Arrow tables: every type with its ends, nulls, empty and nested values."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.kinds import VARIANT

TEXTS = ("", "a", "text", "é\u4e2d", "\U0001f600", "A", "null", " ", "x" * 40)
DAYS = (-25567, 0, 1, 19723, 60000, 2932896)
INSTANTS = (
    0,
    1,
    -1,
    5_000,
    -2_000_000,
    1_700_000_000_123_456,
    -2_000_000_000_000_000,
    4_000_000_000_000_000,
)


def table_of(chance: Random, schema: pa.Schema, rows: int) -> pa.Table:
    """So many rows; in some columns few different values, as dictionaries need."""
    columns = []
    for field in schema:
        pool = [value_of(chance, field.type) for _ in range(chance.choice([1, 3, max(1, rows)]))]
        values = [None if chance.random() < 0.15 else chance.choice(pool) for _ in range(rows)]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def value_of(chance: Random, kind: pa.DataType) -> Any:
    """A value of the type, the ends of it more often than chance would have it."""
    if kind == VARIANT:
        return _variant(chance)
    if pa.types.is_struct(kind):
        return {f.name: maybe(chance, f.type) for f in kind}
    if pa.types.is_list(kind):
        return [maybe(chance, kind.value_type) for _ in range(chance.randint(0, 3))]
    if pa.types.is_map(kind):
        keys = chance.sample(["k", "j", "", "é"], chance.randint(0, 3))
        return [(key, maybe(chance, kind.item_type)) for key in keys]
    return _atom(chance, kind)


def _variant(chance: Random) -> dict[str, bytes]:
    """A variant as PySpark makes it."""
    from pyspark.sql.types import VariantVal

    made = VariantVal.parseJson(json.dumps(_json(chance, chance.choice([0, 1, 1, 2, 3]))))
    return {"value": made.value, "metadata": made.metadata}


def _json(chance: Random, depth: int) -> Any:
    if depth and chance.random() < 0.7:
        parts = [_json(chance, depth - 1) for _ in range(chance.randint(0, 3))]
        return dict(zip(chance.sample(["k", "a", "", "a.b", "é"], 5), parts, strict=False))
    if depth and chance.random() < 0.5:
        return [_json(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    numbers = [0, -1, 127, 128, 1 << 31, -(1 << 63), 1.5, 1e300, -0.0]
    return chance.choice([None, True, False, *numbers, *TEXTS, "z" * 70, "2024-01-02"])


def maybe(chance: Random, kind: pa.DataType) -> Any:
    """A value, or null."""
    return None if chance.random() < 0.2 else value_of(chance, kind)


def _atom(chance: Random, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_integer(kind):
        edge = 1 << (kind.bit_width - 1)
        return chance.choice(
            [0, 1, -1, edge - 1, -edge, chance.randint(-edge, edge - 1), 16777216 % edge]
        )
    if pa.types.is_floating(kind):
        return _floating(chance, kind)
    if pa.types.is_decimal(kind):
        digits = chance.choice(
            [kind.precision, kind.precision, 1, chance.randint(1, kind.precision)]
        )
        number = chance.choice([10**digits - 1, chance.randrange(10**digits), 0])
        # From text: arithmetic on decimals would round them to 28 digits.
        return Decimal(f"{chance.choice(['', '-'])}{number}E-{kind.scale}")
    if pa.types.is_date(kind):
        return dt.date(1970, 1, 1) + dt.timedelta(days=chance.choice(DAYS) % 2_900_000)
    if pa.types.is_timestamp(kind):
        return chance.choice(INSTANTS)
    if pa.types.is_binary(kind):
        return chance.choice([b"", b"a", b"\xff\x00", b"abc" * 9])
    return chance.choice(TEXTS)


def _floating(chance: Random, kind: pa.DataType) -> float:
    layout = "<f" if kind.bit_width == 32 else "<d"
    raw = chance.getrandbits(kind.bit_width).to_bytes(kind.bit_width // 8, "little")
    near = chance.choice([0.0, -0.0, 1.1, 0.1, 1.5, 16777216.0, float("nan"), float("inf")])
    number = chance.choice([near, near, struct.unpack(layout, raw)[0]])
    return float(struct.unpack(layout, struct.pack(layout, number))[0])

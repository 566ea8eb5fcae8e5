"""Random tables in Parquet, ORC, Avro and Arrow, by every writer at hand with its options."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_sluice.tests.reader.readings import block_writers
from pyspark_sluice.tests.reader.readings.block_values import table_of
from pyspark_sluice.tests.reader.readings.kinds import ANY, WITH_VARIANTS, fields, quoted
from pyspark_sluice.tests.reader.readings.model import Group, Outcome
from pyspark_sluice.tests.reader.readings.values import comparable
from pyspark_sluice.tests.reader.readings.writing import CannotWriteError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EXACT = Context(prec=80)
"""Rounds no decimal that a column can hold."""


def group(chance: Random, files: int, file_format: str, spark: SparkSession | None) -> Group:
    """Tables of one schema, which is asked for as it is, in part, or in wider types."""
    pool = WITH_VARIANTS if file_format == "parquet" else ANY
    stored = pa.schema(fields(chance, chance.randint(2, 6), chance.choice([0, 1, 2]), pool))
    if chance.random() < 0.25:
        stored = _with_dots(chance, stored)
    asked = _asked(chance, stored)
    contents, written, labels = [], [], []
    writers = [*block_writers.of(file_format)]
    for number in range(files):
        table = table_of(chance, stored, chance.choice([0, 1, 3, 20, 60]))
        made = _written(chance, spark, writers[number % len(writers)], table)
        if made is not None:
            label, data = made
            contents.append(data)
            labels.append(label)
            written.append(_as_asked(table, asked))
    condition = _condition(chance, asked) if chance.random() < 0.4 else ""
    if file_format == "orc" and "timestamp" in str(asked):
        # Spark reads some of Arrow's timestamps wrongly; only their writer knows them.
        condition = ""
    rows = () if condition else tuple(written)
    return Group(
        file_format,
        asked,
        {},
        tuple(contents),
        written=rows,
        labels=tuple(labels),
        condition=condition,
    )


def _written(
    chance: Random, spark: SparkSession | None, writer: Callable[..., str], table: pa.Table
) -> tuple[str, bytes] | None:
    """What the writer made; None if it cannot write such a table, which is its own affair."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        try:
            label = writer(chance, table, path, spark)
        except CannotWriteError:
            return None
        return label, path.read_bytes()


def _with_dots(chance: Random, stored: pa.Schema) -> pa.Schema:
    """With a struct, and next to it columns whose names read like paths into it."""
    kept = [f for f in stored if f.name.lower() not in ("s", "s.x", "s.y")]
    inner = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.string())])
    more = [pa.field("s", inner), pa.field("s.x", chance.choice([pa.int64(), pa.string()]))]
    chance.shuffle(more)
    return pa.schema([*kept, *more])


def _asked(chance: Random, stored: pa.Schema) -> pa.Schema:
    """Of the columns some, in another order; some of a wider type."""
    chosen = [f for f in stored if chance.random() < 0.8] or [stored.field(0)]
    if chance.random() < 0.3:
        chance.shuffle(chosen)
    if chance.random() < 0.3:
        chosen = [f.with_type(_wider(chance, f.type)) for f in chosen]
    return pa.schema(chosen)


def _wider(chance: Random, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return chance.choice([kind, pa.int64(), pa.float64(), pa.decimal128(38, 18)])
    if kind == pa.float32():
        return pa.float64()
    if pa.types.is_decimal(kind):
        return chance.choice(
            [kind, pa.decimal128(38, min(38, kind.scale + 9)), pa.decimal128(38, 18)]
        )
    return kind


def _as_asked(table: pa.Table, asked: pa.Schema) -> Outcome:
    """The rows as they were written, of the columns that are asked for, if every value fits."""
    for field in asked:
        if not all(map(partial(_fits, field.type), table.column(field.name).to_pylist())):
            return f"refused: values of {field.name} do not fit {field.type}"
    return comparable(table.select(asked.names))


def _fits(kind: pa.DataType, value: Any) -> bool:
    """True if the column's type, which may be wider than the one stored, holds this value."""
    if isinstance(value, Decimal) and pa.types.is_decimal(kind):
        # Zeros at the end need no room.
        exponent = EXACT.normalize(value).as_tuple().exponent
        room = Decimal(f"1E{kind.precision - kind.scale}")
        return isinstance(exponent, int) and -exponent <= kind.scale and value.copy_abs() < room
    if isinstance(value, int) and pa.types.is_floating(kind):
        return int(float(value)) == value
    return True


def _condition(chance: Random, asked: pa.Schema) -> str:
    """A comparison of one column with a literal that is near the column's values."""
    # Spark pushes conditions on names with backticks down to ORC under another name.
    plain = [f for f in asked if _literals(f.type) and "`" not in f.name]
    if not plain:
        return ""
    chosen = chance.choice(plain)
    comparison = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    literal = chance.choice(_literals(chosen.type))
    return f"{quoted(chosen.name)} {comparison} {literal}"


def _literals(kind: pa.DataType) -> tuple[str, ...]:
    if pa.types.is_integer(kind):
        return ("0", "1", "16777217", "-1", "127", "128")
    if pa.types.is_floating(kind):
        return ("0", "1.1", "1.5", "16777217", "-1", "0.1")
    if pa.types.is_string(kind):
        return ("'a'", "'text'", "''", "'é'")
    if pa.types.is_decimal(kind):
        return ("0", "1.5", "0.1", "-1")
    return ()

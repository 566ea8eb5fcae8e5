"""Random types and schemas over everything that Spark and Arrow both have, and their DDL."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pyarrow as pa

from pyspark_sluice.reader.files.evolution.hints import parse_columns

NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
ATOMS = tuple(NAMES)
FIELD_NAMES = (
    *("a", "b", "c", "a.b", "a.b.c", "A b", "`t`", "ä", "\U0001f600", "a.`b", "x", "value", "id"),
    *("key", "element", "list", "_c0", "1", "s", "n", "date"),
)
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
"""As Spark hands variants to Arrow."""


@dataclass(frozen=True)
class Pool:
    """What types without parts, and what names of fields, a format is tried with."""

    atoms: tuple[pa.DataType, ...] = ATOMS
    names: tuple[str, ...] = FIELD_NAMES


ANY = Pool()
WITH_VARIANTS = Pool((*ATOMS, VARIANT))


def atom(chance: Random, pool: Pool = ANY) -> pa.DataType:
    """A type without parts; decimals are a quarter, as their digits and scales are many types."""
    if chance.random() < 0.25:
        precision = chance.choice([1, 5, 9, 10, 18, 19, 28, 37, 38, 38, 38])
        return pa.decimal128(precision, chance.choice([0, precision // 2, precision]))
    return chance.choice(pool.atoms)


def kind(chance: Random, depth: int, pool: Pool = ANY) -> pa.DataType:
    """A type with at most so many levels of structs, arrays and maps."""
    if depth == 0 or chance.random() < 0.5:
        return atom(chance, pool)
    shape = chance.choice(["struct", "struct", "array", "map"])
    if shape == "struct":
        return pa.struct(fields(chance, chance.randint(1, 3), depth - 1, pool))
    if shape == "array":
        return pa.list_(pa.field("element", kind(chance, depth - 1, pool)))
    return pa.map_(pa.string(), kind(chance, depth - 1, pool))


def fields(chance: Random, count: int, depth: int, pool: Pool = ANY) -> list[pa.Field]:
    """Fields of different names; names that differ only in case are not allowed in a schema."""
    names: dict[str, str] = {}
    for name in chance.sample(pool.names, count):
        names.setdefault(name.lower(), name)
    return [pa.field(name, kind(chance, depth, pool)) for name in names.values()]


def ddl_of(data_type: pa.DataType) -> str:
    """The type as Spark writes it."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if data_type == VARIANT:
        return "variant"
    if pa.types.is_struct(data_type):
        parts = (f"{quoted(f.name)}:{ddl_of(f.type)}" for f in data_type)
        return f"struct<{','.join(parts)}>"
    if pa.types.is_list(data_type):
        return f"array<{ddl_of(data_type.value_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{ddl_of(data_type.key_type)},{ddl_of(data_type.item_type)}>"
    return NAMES[data_type]


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def schema_ddl(schema: pa.Schema) -> str:
    """The whole schema as Spark writes it."""
    return ", ".join(f"{quoted(f.name)} {ddl_of(f.type)}" for f in schema)


def arrow_schema(ddl: str) -> pa.Schema:
    """The schema that Spark writes like this, as Arrow has it."""
    return pa.schema(parse_columns(ddl, "schema"))

"""What all writers of the tests have in common: drawn options, refusals, a job of Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_sluice.tests.reader.readings.kinds import schema_ddl


class CannotWriteError(Exception):
    """The writer has no such type, or no such name."""


def tried(write: Callable[[], object], label: str) -> str:
    """The writer's label; its refusals are not ours to judge, as long as they are refusals."""
    try:
        write()
    except Exception as error:
        raise CannotWriteError(f"{label}: {error}") from error
    return label


def drawn(chance: Random, options: dict[str, list[Any]]) -> dict[str, Any]:
    """One of the values of each option."""
    return {name: chance.choice(values) for name, values in options.items()}


def without_maps(table: pa.Table) -> None:
    """Refuse tables that polars cannot hold."""
    if any("map<" in str(field.type) for field in table.schema):
        raise CannotWriteError("polars has no maps")


def by_spark(table: pa.Table, path: Path, spark: Any, kind: str, options: dict[str, str]) -> str:
    """By one task of Spark, into one file."""
    target = path.parent / "written"
    between = path.parent / "between.parquet"

    def write() -> None:
        pq.write_table(table, between)
        frame = spark.read.schema(schema_ddl(table.schema)).parquet(str(between)).coalesce(1)
        frame.write.format(kind).options(**options).save(str(target))
        (part,) = target.glob("part-*")
        part.rename(path)

    return tried(write, f"spark {options}")

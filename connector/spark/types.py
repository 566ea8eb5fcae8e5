"""Schemas and partitions in Spark's types."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ...reader.files.evolution.file_types import with_collations
from ..query.partitions import ReaderPartition
from ..source.schema_json import json_of

# Before Spark 4.2 timestamps are in UTC by default, and there is no parameter for it.
_IN_UTC: Mapping[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Types, order and nullability as Spark checks them; timestamps in UTC."""
    # Spark hands timestamps over in UTC; the session's zone counts only where they are shown.
    arrow = to_arrow_schema(schema, **_IN_UTC)
    # Arrow has no collations, and `filter` must not compare without them.
    return pa.schema([
        with_collations(field, column.getCollationMetadata()) if _has_collation(column) else field
        for field, column in zip(arrow, schema, strict=True)
    ])  # fmt: skip


def _has_collation(column: StructField) -> bool:
    # Spark 4.0 has collations, too.
    return bool(getattr(column, "getCollationMetadata", dict)())


def spark_schema(schema: pa.Schema) -> StructType:
    """Spark's types for a schema that was found in files, or that an option describes."""
    return StructType.fromJson(json_of(schema))


class SluicePartition(InputPartition):
    """A partition of any host, which Spark pickles."""

    value: ReaderPartition

    def __init__(self, value: ReaderPartition) -> None:
        super().__init__(value)

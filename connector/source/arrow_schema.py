"""Spark's schema as the Arrow schema that record batches have to equal exactly, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """Types, order and nullability as Spark checks them; timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def arrow_schema_of(stored: Mapping[str, Any]) -> pa.Schema:
    """The same of a schema as it is stored, in Spark's JSON."""
    return arrow_schema(StructType.fromJson(dict(stored)))


def spark_schema(schema: pa.Schema) -> StructType:
    """Spark's types for a schema that was found in files."""
    # Timestamps without zone would else become those with one.
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def json_of(schema: pa.Schema) -> dict[str, Any]:
    """A schema as it is stored."""
    return spark_schema(schema).jsonValue()

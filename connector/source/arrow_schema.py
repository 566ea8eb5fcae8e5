"""Spark's schema as the Arrow schema that record batches have to equal exactly."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """Types, order and nullability as Spark checks them; timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC")

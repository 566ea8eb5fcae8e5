"""Compares what has landed with what the sink holds, row for row, as multisets.

The landed files are parsed by pyarrow, the sink by Spark through its own log of committed files:
neither by the code that is being shown.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict."""

    landed: int
    ingested: int
    lost: int
    duplicated: int

    @property
    def exact(self) -> bool:
        """True if both hold the same rows, each as often."""
        return self.landed == self.ingested and not self.lost and not self.duplicated

    def __str__(self) -> str:
        return (
            f"rows landed {self.landed}, rows ingested {self.ingested}, "
            f"lost {self.lost}, duplicated {self.duplicated}"
        )


def compare(landing: Path, sink: Path, schema: pa.Schema) -> Comparison:
    """Compare the JSON lines files below `landing` with the Parquet sink at `sink`."""
    tables = [_landed(path, schema) for path in sorted(landing.rglob("[!.]*.json"))]
    landed = _rows(pa.concat_tables(tables), schema.names)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.ui.showConsoleProgress", "false")
    session = spark.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        with warnings.catch_warnings():
            # toArrow looks at the version of pandas, which it does not use here.
            warnings.simplefilter("ignore", FutureWarning)
            ingested = _rows(session.read.parquet(str(sink)).toArrow(), schema.names)
    finally:
        session.stop()
    return Comparison(
        landed.total(), ingested.total(), (landed - ingested).total(), (ingested - landed).total()
    )


def _landed(path: Path, schema: pa.Schema) -> pa.Table:
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return pyarrow.json.read_json(path, parse_options=options)


def _rows(table: pa.Table, names: Sequence[str]) -> Counter[tuple[object, ...]]:
    columns = [table.column(name).to_pylist() for name in names]
    return Counter(zip(*columns, strict=True))

"""A stream of JSON files driven by the calls that Spark makes, in this process, without Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.tests.patience import PATIENCE

SCHEMA = StructType([StructField("id", LongType())])
LONG_AGO = 1_600_000_000
"""In September of 2020."""


def next_offset(reader: Any, start: Any) -> Any:
    """Ask for the next offset as this Spark does: 4.0 and 4.1 know no read limits."""
    try:
        from pyspark.sql.streaming.datasource import ReadMaxFiles
    except ModuleNotFoundError:
        # As after a restart: the newest offset of Spark's log comes first.
        reader.partitions(start, start)
        return reader.latestOffset()
    return reader.latestOffset(start, ReadMaxFiles(1))


class Stream:
    """Reads `<root>/in`, where the first file that lands holds the row 0, the next one 1 ..."""

    def __init__(self, root: Path, options: Mapping[str, str], schema: StructType = SCHEMA) -> None:
        self.data = root / "in"
        self.data.mkdir(exist_ok=True)
        given = {
            "path": str(self.data),
            "stateLocation": str(root / "state"),
            "discoveryInterval": "20ms",
            "fileFormat": "json",
            **options,
        }
        # As Spark hands them over.
        self.options = {name.lower(): value for name, value in given.items()}
        self.reader: Any = SluiceDataSource(self.options).streamReader(schema)
        self.at = self.reader.initialOffset()
        self._files = 0

    def land(self, *names: str, at: float | None = None) -> None:
        """Files of one row each, modified at the time `at` (seconds)."""
        for name in names:
            path = self.data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            hidden = path.with_name(f".{path.name}")
            hidden.write_text(json.dumps({"id": self._files}) + "\n")
            if at is not None:
                os.utime(hidden, (at, at))
            hidden.rename(path)
            self._files += 1

    def plan(self) -> tuple[Any, list[Any]]:
        """The next offset and its partitions; the same offset and none if there is nothing new."""
        end = next_offset(self.reader, self.at)
        return end, [] if end == self.at else list(self.reader.partitions(self.at, end))

    def await_plan(self) -> list[Any]:
        """The partitions of the next batch that has any; the stream goes on after it."""
        deadline, partitions = time.monotonic() + PATIENCE, list[Any]()
        while not partitions:
            assert time.monotonic() < deadline, "nothing was found"
            self.at, partitions = self.plan()
        return partitions

    def read(self, partitions: Iterable[Any]) -> list[int]:
        """The first column of each row; may be asked again, as Spark may."""
        batches = [batch for part in partitions for batch in self.reader.read(part)]
        return [row for batch in batches for row in batch.column(0).to_pylist()]

    def batch(self) -> list[int]:
        """One batch, from its planning to its end: the rows."""
        end, partitions = self.plan()
        rows = self.read(partitions)
        if partitions:
            self.reader.commit(end)
        self.at = end
        return rows

    def until(self, count: int, seconds: float = PATIENCE) -> list[int]:
        """Batch after batch until so many rows are there."""
        rows, deadline = [], time.monotonic() + seconds
        while len(rows) < count:
            assert time.monotonic() < deadline, f"only {rows}"
            new = self.batch()
            rows += new
            if not new:
                # The coordinator's threads want this interpreter, too.
                time.sleep(0.001)
        return rows

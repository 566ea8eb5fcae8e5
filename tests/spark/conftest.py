"""A small lake for one test: a directory that files land in, a checkpoint, a Parquet sink."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END

SCHEMA = "id long, text string"


class Lake:
    """Lands JSON files and runs sluice queries over them, with bounded waits."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark = spark
        self.source = root / "landing"
        self.checkpoint = root / "checkpoint"
        self.sink = root / "sink"
        self.source.mkdir()
        self.landed: Counter[int] = Counter()
        self._queries: list[Any] = []

    @property
    def state(self) -> Path:
        return self.checkpoint / "sluice" / "source"

    def land(self, name: str, ids: range, *, folder: str = "") -> Path:
        """One file with one row an id, put in place atomically."""
        directory = self.source / folder
        directory.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": i, "text": f"row {i}"}) for i in ids]
        hidden = directory / f".{name}"
        hidden.write_text("\n".join(lines) + "\n")
        target = directory / name
        os.replace(hidden, target)
        self.landed.update(ids)
        return target

    def frame(self, **options: Any) -> Any:
        """The streaming data frame with the options given on top of the usual ones."""
        usual = {"fileFormat": "json", "checkpointLocation": str(self.checkpoint)}
        usual |= FOR_RUNS_THAT_END
        reader = self.spark.readStream.format("sluice").schema(SCHEMA)
        return reader.options(**{**usual, **options}).load(str(self.source))

    def run(self, writer: Any, *arguments: str) -> Any:
        """Start a writer; the query is stopped when the test ends."""
        query = writer.start(*arguments)
        self._queries.append(query)
        return query

    def finish(self, writer: Any, *arguments: str) -> Any:
        """An AvailableNow run of a writer to its end; raises what the query raised."""
        writer = writer.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        query = self.run(writer, *arguments)
        assert query.awaitTermination(PATIENCE), "the run did not end in time"
        return query

    def drain(self, **options: Any) -> Any:
        """An AvailableNow run into the Parquet sink."""
        writer = self.frame(**options).writeStream.format("parquet")
        return self.finish(writer, str(self.sink))

    def in_table(self) -> Counter[int]:
        """Ids in the Delta table, with how often each is there."""
        rows = DeltaTable(str(self.sink)).to_pyarrow_table(columns=["id"])
        return Counter(rows["id"].to_pylist())

    def ingested(self) -> Counter[int]:
        """Ids in the sink, with how often each is there."""
        log = self.sink / "_spark_metadata"
        if not log.exists() or not any(path.name.isdigit() for path in log.iterdir()):
            return Counter()
        return Counter(row.id for row in self.spark.read.parquet(str(self.sink)).collect())

    def check_exactly_once(self) -> None:
        """Every landed row is in the sink exactly once, and nothing else is."""
        ingested = self.ingested()
        assert ingested - self.landed == Counter(), "duplicated or invented rows"
        assert self.landed - ingested == Counter(), "lost rows"

    def close(self) -> None:
        for query in self._queries:
            query.stop()


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(spark, tmp_path)
    yield made
    made.close()

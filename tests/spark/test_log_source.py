"""A second source proves the API: an append-only partitioned log with unbounded splits."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.tests.patience import PATIENCE

SOURCE = "pyspark_sluice.examples.log_source.log_source:LogSource"
SCHEMA = "partition string, position long, line string"


@pytest.fixture
def log(lake):
    class Log:
        def __init__(self):
            self.landed: set[tuple[str, int, str]] = set()

        def append(self, name, lines):
            path = lake.source / f"{name}.log"
            position = path.stat().st_size if path.exists() else 0
            with path.open("a") as file:
                for line in lines:
                    file.write(f"{line}\n")
                    self.landed.add((path.name, position, line))
                    position += len(line) + 1

        def start(self, trigger, parallelism):
            reader = lake.spark.readStream.format("sluice").schema(SCHEMA).option("source", SOURCE)
            reader = reader.option("sourceOptions", '{"slice": 50}')
            reader = reader.option("discoveryInterval", "100ms").option("parallelism", parallelism)
            reader = reader.option("checkpointLocation", str(lake.checkpoint))
            writer = reader.load(str(lake.source)).writeStream.format("parquet").trigger(**trigger)
            writer = writer.option("checkpointLocation", str(lake.checkpoint))
            return lake.run(writer, str(lake.sink))

        def ingested(self):
            rows = lake.spark.read.parquet(str(lake.sink)).collect()
            return [(row.partition, row.position, row.line) for row in rows]

    return Log()


def _readers(lake):
    """Partition -> readers it was assigned to, checkpoint by checkpoint."""
    history = CheckpointHistory(open_store(str(lake.state)))
    found: dict[str, list[int]] = {}
    for ref in history.checkpoints():
        for reader, batch in history.load(ref).assigned:
            for text in batch.column("json").to_pylist():
                found.setdefault(text.split('"')[1], []).append(reader)
    return found


@pytest.mark.effect_of("source", "sourceOptions")
def test_slices_new_partitions_and_another_parallelism_at_restart(log, lake, until):
    for p in range(4):
        log.append(f"p{p}", [f"line {i}" for i in range(120)])
    query = log.start({"availableNow": True}, parallelism=2)
    assert query.awaitTermination(PATIENCE)
    assert sorted(log.ingested()) == sorted(log.landed)
    # Slices of 50 lines: three batches, and every partition stayed with its reader.
    assert len(lake.batches()) == 3
    assert all(len(set(readers)) == 1 for readers in _readers(lake).values())
    for p in range(4):
        log.append(f"p{p}", [f"more {i}" for i in range(10)])
    query = log.start({"processingTime": "0 seconds"}, parallelism=3)
    until(lambda: len(log.ingested()) == len(log.landed), "second part")
    log.append("new", ["only line"])
    until(lambda: len(log.ingested()) == len(log.landed), "new partition")
    assert query.exception() is None
    assert sorted(log.ingested()) == sorted(log.landed)
    assert {reader for readers in _readers(lake).values() for reader in readers} == {0, 1, 2}

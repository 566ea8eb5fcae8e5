"""A query over files with a row limit: Spark's tasks wait for what their readers continue."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.spark.versions import SEVERAL_BATCHES

pytestmark = [
    SEVERAL_BATCHES,
    pytest.mark.thorough("test_gateways_over_files.py has the same without Spark"),
]

FILES, ROWS, LIMIT = 4, 20, 10
UNREAD = 1
"""The batch of which one row is wanted: no other reader runs, and none commits."""


def run(lake, source):
    for file in range(FILES):
        lake.land(f"{file}.json", range(file * ROWS, file * ROWS + ROWS))
        time.sleep(0.01)  # Files are taken in the order of modification time.
    batches = {}

    def sink(batch, number):
        if number != UNREAD:
            batches[number] = [row.id for row in batch.collect()]
            return
        # What is handed out next was cut while this batch was running.
        objects = lake.state / "checkpoints"
        wait_until(lambda: len(list(objects.glob("*.arrow"))) > UNREAD + 1)
        batches[number] = [row.id for row in batch.take(1)]

    options = {
        "fileFormat": "json",
        "checkpointLocation": lake.checkpoint,
        "maxRowsPerTrigger": LIMIT,
        "parallelism": 2,
        "discoveryInterval": "100ms",
    }
    reader = lake.spark.readStream.format(source).schema("id long, text string")
    frame = reader.options(**options).load(str(lake.source))
    writer = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(PATIENCE)
    return batches


def test_a_part_that_continues_an_unread_one_waits_for_its_gateway(lake):
    batches = run(lake, "sluice")
    assert max(map(len, batches.values())) <= LIMIT
    read = Counter(row for batch in batches.values() for row in batch)
    assert max(read.values()) == 1
    # What is not wanted counts as read: the file of the reader that never ran, and the rest of
    # the other's.
    begun = {row // ROWS for row in batches[UNREAD - 1] + batches[UNREAD]}
    assert {row // ROWS for row in lake.landed - read} <= begun

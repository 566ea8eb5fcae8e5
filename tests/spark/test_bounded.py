"""Limits that hold inside one file, and a restore in the middle of it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.tests.patience import PATIENCE

LIMIT = 50_000


def _one_csv(lake, rows=20_000):
    lines = [f"{i},row {i}" for i in range(rows)]
    (lake.source / "one.csv").write_text("id,text\n" + "\n".join(lines) + "\n")
    lake.landed.update(range(rows))
    return max(map(len, lines)) + 1


def _split_bytes(lake):
    """Bytes that each checkpoint of the chain assigned."""
    history = CheckpointHistory(open_store(str(lake.state)))
    checkpoints = [history.load(ref) for ref in history.checkpoints()]
    return [
        sum(
            row["end"] - row["start"]
            for _, batch in checkpoint.assigned
            for row in batch.to_pylist()
        )
        for checkpoint in checkpoints
    ]


def test_no_batch_exceeds_max_bytes_even_inside_one_file(lake):
    _one_csv(lake)
    lake.drain(fileFormat="csv", header="true", maxBytesPerTrigger=LIMIT)
    assert max(_split_bytes(lake)) <= LIMIT
    assert len(_split_bytes(lake)) == -(-(lake.source / "one.csv").stat().st_size // LIMIT)
    lake.check_exactly_once()


def test_a_restore_goes_on_in_the_middle_of_a_file(lake):
    _one_csv(lake)
    stored = {}

    def sink(frame, batch_id):
        rows = [row.id for row in frame.collect()]
        if batch_id == 3 and len(stored) == 3 and not failed:
            failed.append(batch_id)
            message = "the sink is down"
            raise RuntimeError(message)
        stored[batch_id] = rows

    failed: list[int] = []

    def run():
        frame = lake.frame(fileFormat="csv", header="true", maxBytesPerTrigger=LIMIT)
        writer = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
        return lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))

    with pytest.raises(Exception, match="the sink is down"):
        run().awaitTermination(PATIENCE)
    assert run().awaitTermination(PATIENCE)
    assert Counter(i for rows in stored.values() for i in rows) == lake.landed
    assert [rows[0] for rows in stored.values()] == sorted(rows[0] for rows in stored.values())


@pytest.mark.effect_of("maxRowsPerTrigger")
def test_max_rows_holds_where_the_metadata_counts_rows(lake):
    table = pa.table({"id": range(10_000), "text": [f"row {i}" for i in range(10_000)]})
    pq.write_table(table, lake.source / "one.parquet", row_group_size=1_000)
    lake.landed.update(range(10_000))
    query = lake.drain(fileFormat="parquet", maxRowsPerTrigger=2_500)
    counts = [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]]
    assert counts == [2_000] * 5
    lake.check_exactly_once()

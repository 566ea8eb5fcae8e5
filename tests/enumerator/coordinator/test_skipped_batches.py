"""A sink that remembers batch numbers, under a query whose checkpoint is from a backup."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.protocol.numbers import Harness

UNREAD = "no reader ran in a batch that Spark has completed"


class FileSinkLog:
    """Spark's file sink: a batch whose number is in its log is skipped, and no task runs."""

    def __init__(self, root: Path) -> None:
        self.log = root / "_spark_metadata"
        self.log.mkdir()

    def has(self, number: int) -> bool:
        return (self.log / str(number)).exists()

    def add(self, number: int, rows: list[int]) -> None:
        (self.log / str(number)).write_text(json.dumps(rows))

    @property
    def rows(self) -> Counter[int]:
        return Counter(row for path in self.log.iterdir() for row in json.loads(path.read_text()))


class Query:
    """Batches of two numbers from a coordinator into the sink, numbered as Spark does."""

    def __init__(self, sink: FileSinkLog, **changes: object) -> None:
        settings = CoordinatorSettings(
            BatchLimits(files=2), parallelism=2, discovery_timeout=0.0, batches_may_be_unread=False
        )
        self.harness = Harness(range(4), settings)
        self.sink, self.number, self.at = sink, 0, NO_CHECKPOINT

    def batch(self) -> None:
        end = self.harness.coordinator.latest(self.at)
        if end == self.at:
            return
        self.harness.coordinator.assignments(self.at, end)
        if not self.sink.has(self.number):
            rows = [row for of in self.harness.assigned(end).values() for row in of]
            self.harness.acknowledge_all(end)
            self.sink.add(self.number, rows)
        self.number, self.at = self.number + 1, end

    def saved(self) -> tuple[dict[str, bytes], int, CheckpointRef]:
        return dict(self.harness.state.objects), self.number, self.at

    def restore(self, saved: tuple[dict[str, bytes], int, CheckpointRef]) -> None:
        objects, self.number, self.at = saved
        self.harness.state.objects.clear()
        self.harness.state.objects.update(objects)
        self.harness.restart()
        self.harness.start(self.at)


@pytest.fixture
def restored(tmp_path):
    """Four batches are in the sink, and the checkpoint is as after the first."""
    query = Query(FileSinkLog(tmp_path))
    query.batch()
    backup = query.saved()
    query.batch()
    query.harness.offer(4, 5, 6, 7)
    query.batch()
    query.batch()
    query.restore(backup)
    # The listing finds what came since; the newest first, so that 8 and 9 are in a skipped batch.
    query.harness.offer(9, 8, 7, 6, 5, 4)
    query.harness.enumerator.pending.sort(reverse=True)
    return query


def run(query: Query, batches: int = 8) -> None:
    for _ in range(batches):
        query.batch()


def test_a_batch_that_a_restored_query_s_sink_skips_is_an_error_in_every_incarnation(restored):
    for _ in range(2):
        with pytest.raises(StateError, match=UNREAD) as caught:
            run(restored)
        assert "allowUnreadBatches=true" in str(caught.value)
        assert restored.number == 2, "handed out after the batch that nobody read"
        restored.harness.restart()
    assert restored.harness.abandoned() == []
    assert restored.sink.rows == Counter(range(8))


def test_a_skipped_batch_is_an_error_after_batches_of_this_incarnation_were_read(tmp_path):
    query = Query(FileSinkLog(tmp_path))
    query.batch()
    query.sink.add(1, [])
    with pytest.raises(StateError, match=UNREAD):
        run(query)
    assert query.harness.abandoned() == []

"""The calls of Spark 4.0 and 4.1, in the order in which they were seen on 4.0.5 and 4.1.4."""

import logging
from collections import Counter

import pytest

from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.spark.stream_reader import StartTrackingReader
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.enumerator.files.ledger_source import OfflineFileSource
from pyspark_sluice.enumerator.offline.offline_state import state_after
from pyspark_sluice.enumerator.settings import StartingState
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.connector.stream import SCHEMA, Stream


class Query(Stream):
    """One query over files of one row, restarted with a new reader; its rows."""

    def __init__(self, root, **options):
        super().__init__(root, options)
        self.rows = []
        self.restart()

    def restart(self):
        self.reader.stop()
        self.reader = StartTrackingReader(self.options, SCHEMA)

    def deliver(self, start, end):
        """A batch; Spark has its offset in its log."""
        self.rows += self.read(self.reader.partitions(start, end))


@pytest.fixture
def query(tmp_path):
    query = Query(tmp_path, maxFilesPerTrigger="1")
    yield query
    query.reader.stop()


def fresh_batches(query, count):
    """Read so many batches of a fresh query; the offsets."""
    offsets = [query.reader.initialOffset()]
    for _ in range(count):
        offsets.append(query.reader.latestOffset())
        query.deliver(offsets[-2], offsets[-1])
        query.reader.commit(offsets[-1])
    return offsets


def test_being_asked_again_proves_that_the_batch_before_is_complete(query):
    query.land("a.json", "b.json")
    offsets = fresh_batches(query, 2)
    assert query.rows == [0, 1]
    assert query.reader.latestOffset() == offsets[-1]
    query.land("c.json")
    while (end := query.reader.latestOffset()) == offsets[-1]:
        pass
    query.deliver(offsets[-1], end)
    assert query.rows == [0, 1, 2]


def test_a_restart_resumes_after_the_newest_offset_of_the_log(query):
    query.land("a.json", "b.json", "c.json")
    newest = fresh_batches(query, 2)[-1]
    query.restart()
    assert query.reader.partitions(newest, newest) == []
    end = query.reader.latestOffset()
    query.deliver(newest, end)
    assert query.rows == [0, 1, 2]


def test_a_restart_repeats_the_batch_that_spark_has_not_committed(query):
    query.land("a.json", "b.json", "c.json")
    offsets = fresh_batches(query, 2)
    query.restart()
    query.reader.partitions(offsets[2], offsets[2])
    query.deliver(offsets[1], offsets[2])
    assert query.rows == [0, 1, 1]
    query.deliver(offsets[2], query.reader.latestOffset())
    assert query.rows == [0, 1, 1, 2]


@pytest.mark.effect_of("availableNow")
def test_available_now_plans_everything_as_checkpoints_within_the_limits(tmp_path):
    query = Query(tmp_path, maxFilesPerTrigger="2", availableNow="true")
    query.land(*(f"{number}.json" for number in range(7)))
    start, end = query.reader.initialOffset(), query.reader.latestOffset()
    partitions = [partition.value for partition in query.reader.partitions(start, end)]
    files = Counter()
    for part in (part for partition in partitions for part in partition.parts):
        files[part.checkpoint.ref.checkpoint] += sum(batch.num_rows for batch in part.splits())
    assert files == {1: 2, 2: 2, 3: 2, 4: 1}
    query.deliver(start, end)
    assert sorted(query.rows) == list(range(7))
    assert query.reader.latestOffset() == end
    query.land("7.json")
    query.restart()
    query.reader.partitions(end, end)
    query.deliver(end, query.reader.latestOffset())
    assert sorted(query.rows) == list(range(8))
    query.reader.stop()


def test_of_a_batch_over_several_checkpoints_a_reader_of_the_last_proves_nothing(tmp_path):
    """The sink failed after one of two tasks. The other one has parts in earlier checkpoints."""
    query = Query(tmp_path, maxFilesPerTrigger="2", availableNow="true", parallelism="2")
    query.land(*(f"{number}.json" for number in range(7)))
    start, end = query.reader.initialOffset(), query.reader.latestOffset()
    read, unread = query.reader.partitions(start, end)
    query.read([read])
    states = StateView(open_store(read.value.state))
    assert [link.is_complete for link in states.chain()] == 4 * [False]
    savepoint = StartingState(states.store, states.head)
    pending = state_after(savepoint, OfflineFileSource(None), None).enumerator.ledger.pending
    assert len(pending) == sum(1 for part in unread.value.parts for _ in part.splits())
    # The next batch begins after all of them.
    query.read([unread])
    query.land("7.json")
    query.restart()
    query.reader.partitions(end, end)
    query.read(query.reader.partitions(end, query.reader.latestOffset()))
    links = StateView(states.store).chain()
    assert [link.is_complete for link in links] == [False, *4 * [True]]
    query.reader.stop()


def test_a_run_that_repeats_a_batch_says_that_it_ends_with_it(tmp_path, caplog):
    query = Query(tmp_path, availableNow="true")
    query.land("a.json")
    first, end = query.reader.initialOffset(), query.reader.latestOffset()
    query.restart()
    query.reader.partitions(end, end)
    assert query.reader.initialOffset() == first
    with caplog.at_level(logging.WARNING, "pyspark_sluice"):
        query.deliver(first, end)
    assert "Start the query again to read the rest" in caplog.text
    assert query.rows == [0]
    query.reader.stop()


@pytest.mark.parametrize("limit", ["maxRowsPerTrigger", "maxBatchDuration"])
def test_available_now_refuses_limits_that_readers_keep(tmp_path, limit):
    query = Query(tmp_path, **{limit: "2000"}, availableNow="true")
    with pytest.raises(OptionError, match="maxRowsPerTrigger or maxBatchDuration"):
        query.reader.latestOffset()
    query.reader.stop()


def test_a_first_batch_that_leaves_files_says_so(query, caplog):
    query.land("a.json", "b.json", "c.json")
    with caplog.at_level(logging.WARNING, "pyspark_sluice"):
        query.reader.latestOffset()
    assert "2 files are not in the first batch" in caplog.text
    assert "set the option availableNow" in caplog.text

"""Batches in the order of a column in the files, by their footers, through the coordinator."""

import io
import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator.files import enumerator
from pyspark_sluice.enumerator.files.discovery.local import local_tree
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.errors import MalformedDataError, SourceUnavailable
from pyspark_sluice.reader.files.formats import time_columns
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.source.file_trials import Runs
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64())])


def rows(hour, count=3):
    at = [BEGIN + timedelta(hours=hour, minutes=minute) for minute in range(count)]
    return pa.table({"at": at, "id": [hour] * count}, SCHEMA)


def land(folder, hour, kind="parquet", modified=0, **form):
    """The file of an hour; its name says nothing of it."""
    path = folder / f"{random.Random(hour).random()}.{kind}"
    (orc if kind == "orc" else pq).write_table(rows(hour), path, **form)
    at = 1_700_000_000 + modified
    os.utime(path, (at, at))
    return path


class Query(Runs):
    """In the order of `at`."""

    def __init__(self, path, kind="parquet", **options):
        super().__init__(
            SCHEMA,
            path=str(path),
            fileFormat=kind,
            fileOrder="eventTime",
            eventTimeColumn="at",
            maxEventTimeSkew="1h",
            **options,
        )

    def run(self, batches=100, deltas=2, **more):
        """Hours of each batch."""
        found = super().run(batches, deltas, **more)
        return [sorted({row["id"] for row in batch}) for batch in found]


@pytest.fixture
def footers(monkeypatch):
    """Paths of the files of which a footer was read for its times, in order."""
    read, opened = [], time_columns.SourceFile

    def watching(file, storage):
        read.append(file.path)
        return opened(file, storage)

    monkeypatch.setattr(time_columns, "SourceFile", watching)
    return read


@pytest.mark.sample("1-parquet", "100-orc", why="the same footers in other numbers")
@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("deltas", [1, 100])
def test_a_backlog_comes_in_the_order_of_the_column_and_each_footer_is_read_once(
    tmp_path, footers, kind, deltas
):
    for hour in range(12):
        land(tmp_path, hour, kind, modified=-hour)
    query = Query(tmp_path, kind)
    # A restart after each batch: what is pending comes from deltas, or from a base.
    found = [batch for _ in range(6) for batch in query.run(batches=1, deltas=deltas)]
    assert found == [[hour, hour + 1] for hour in range(0, 12, 2)]
    assert len(footers) == len(set(footers)) == 12
    assert query.run() == []
    land(tmp_path, 12, kind)
    assert query.run() == [[12]]
    assert len(footers) == 13


def test_a_batch_that_was_lost_with_its_process_comes_again_as_it_was(tmp_path, footers):
    for hour in range(6):
        land(tmp_path, hour, modified=-hour)
    query = Query(tmp_path)
    query.die()
    assert query.run(batches=2) == [[0, 1], [2, 3]]
    before = len(footers)
    query.die()
    assert query.run() == [[4, 5]]
    assert len(footers) == before


def test_a_long_first_listing_is_remembered_in_steps(tmp_path, footers, monkeypatch):
    policy = FileSource.policy
    monkeypatch.setattr(FileSource, "policy", lambda source: replace(policy(source), portion=3))
    monkeypatch.setattr(local_tree, "CHUNK", 3)
    monkeypatch.setattr(enumerator, "_UNSAVED", 3)
    monkeypatch.setattr(enumerator, "_PATIENCE", PATIENCE)
    for hour in range(12):
        land(tmp_path, hour, modified=-hour)
    query = Query(tmp_path)
    # Checkpoints without a row, until all is listed: each run ends after its first one.
    found, listed = [], []
    with monkeypatch.context() as dying:
        # A run enters one portion, and has read the next one when it ends.
        again = "_list_again_after"
        dying.setattr(FileSplitEnumerator, again, lambda running, _: running._discover())
        for _ in range(5):
            found += query.run(batches=1)
            listed.append(len(footers))
    assert found == [[], [], [], [], [0, 1]]
    # What a run had read beyond its checkpoint is read again, the rest is not.
    assert listed == [6, 12, 18, 21, 21]
    assert query.run() == [[hour, hour + 1] for hour in range(2, 12, 2)]


@pytest.mark.effect_of("eventTimeColumn", "eventTimeUnit")
def test_what_was_remembered_of_another_column_is_not_used(tmp_path, footers):
    for hour in range(4):
        land(tmp_path, hour)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    assert query.run(batches=1) == [[0]]
    query.given |= {"eventTimeColumn": "id", "eventTimeUnit": "s"}
    assert query.run() == [[1], [2], [3]]
    # Of the three that were pending, one more each.
    assert len(footers) == 7


def test_the_order_may_change_from_modification_times_to_the_column(tmp_path, footers):
    for hour in range(5):
        land(tmp_path, hour, modified=-hour)
    query = Query(tmp_path, maxFilesPerTrigger="1")
    by_column = query.given
    query.given = {k: v for k, v in by_column.items() if "vent" not in k and k != "fileOrder"}
    assert query.run(batches=1) == [[4]]
    query.given = by_column
    assert query.run() == [[0], [1], [2], [3]]
    assert len(footers) == 4


def test_a_file_that_is_found_late_by_its_column_goes_into_quarantine(tmp_path):
    land(tmp_path, 5)
    query = Query(tmp_path, onLateFile="quarantine")
    assert query.run() == [[5]]
    late = land(tmp_path, 2)
    land(tmp_path, 6)
    assert query.run() == [[6]]
    backlog = query.backlog["eventTime"]
    assert backlog["newestLateFiles"] == [str(late)]
    # Of all files, also of those before the restart.
    assert backlog["longestFileSeconds"] == 120


# Files without a time -------------------------------------------------------------------------


def without_statistics(folder, hour, modified):
    return land(folder, hour, modified=modified, write_statistics=False)


def archived(folder, hour, modified):
    data = land(folder, hour).read_bytes()
    path = folder / "a.zip"
    path.write_bytes(PACKERS[".zip"]({"b.parquet": data}))
    return path


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (without_statistics, "no statistics of at in row group 0"),
        (archived, "no statistics of its members"),
    ],
)
def test_a_file_without_a_time_fails_the_query_by_its_name_and_nothing_is_skipped(
    tmp_path, write, found
):
    land(tmp_path, 1)
    bad = write(tmp_path, 2, 0)
    query = Query(tmp_path, discoveryAttempts="1")
    with pytest.raises(SourceUnavailable, match=found) as failed:
        query.run()
    assert failed.value.where == str(bad)
    assert "onMissingEventTime" in failed.value.remedy
    query.given["onMissingEventTime"] = "mtime"
    assert {hour for batch in query.run() for hour in batch} == {1, 2}


@pytest.mark.effect_of("onMissingEventTime")
def test_a_file_without_statistics_comes_by_its_modification_time_and_makes_no_other_late(tmp_path):
    # Its modification time is before the times of all others.
    bad = without_statistics(tmp_path, 99, 0)
    land(tmp_path, 1)
    query = Query(tmp_path, onMissingEventTime="mtime", onLateFile="fail")
    assert query.run() == [[99], [1]]
    told = query.backlog["eventTime"]
    assert (told["filesWithoutEventTime"], told["newestFilesWithoutEventTime"]) == (1, [str(bad)])
    # This one is modified after the times of all others.
    newer = without_statistics(tmp_path, 100, 100_000_000)
    assert query.run() == [[100]]
    land(tmp_path, 2)
    assert query.run() == [[2]]
    told = query.backlog["eventTime"]
    assert told["newestFilesWithoutEventTime"] == [str(bad), str(newer)]
    assert told["reached"] == "2026-01-02T02:00:00Z"


def test_a_file_of_nulls_and_one_without_rows_are_no_errors(tmp_path):
    pq.write_table(rows(0).slice(0, 0), tmp_path / "empty.parquet")
    nulls = pa.table({"at": pa.nulls(2, SCHEMA.field("at").type), "id": [7, 7]}, SCHEMA)
    pq.write_table(nulls, tmp_path / "nulls.parquet")
    land(tmp_path, 1)
    query = Query(tmp_path)
    assert sorted(hour for batch in query.run() for hour in batch) == [1, 7]
    assert query.backlog["eventTime"]["filesWithoutEventTime"] == 2


def test_what_a_damaged_file_means_is_decided_where_it_is_read(tmp_path):
    land(tmp_path, 1)
    bad = land(tmp_path, 2)
    bad.write_bytes(bad.read_bytes()[:-3])
    query = Query(tmp_path)
    with pytest.raises(MalformedDataError):
        query.run()
    query = Query(tmp_path, ignoreCorruptFiles="true")
    assert sorted(hour for batch in query.run() for hour in batch) == [1]
    assert query.backlog["eventTime"]["filesWithoutEventTime"] == 1


# Object stores --------------------------------------------------------------------------------


def test_of_each_object_one_range_at_its_end_is_read_once(server, bucket):
    text = random.Random(1).randbytes(400_000).hex()
    for hour in (3, 1, 2, 0):
        sink = io.BytesIO()
        wide = rows(hour, 1).append_column("text", pa.array([text]))
        pq.write_table(wide, sink, compression="none")
        server.client().put_object(Bucket=bucket, Key=f"in/{9 - hour}", Body=sink.getvalue())
    size = len(sink.getvalue())
    assert size > 4 * time_columns.TAIL
    storage = as_json(server.options)
    query = Query(f"s3a://{bucket}/in", storageOptions=storage, maxFilesPerTrigger="1")

    def ranges_in(batches):
        start = len(server.names)
        found = query.run(batches=batches)
        asked = zip(server.names[start:], server.headers[start:], strict=True)
        ours = [headers.get("HTTP_RANGE") for name, headers in asked if name.startswith("GET")]
        return found, ours

    found, ranges = ranges_in(1)
    assert found == [[0]]
    footers = [each for each in ranges if each == f"bytes={size - time_columns.TAIL}-{size - 1}"]
    assert len(footers) == 4
    # The others read the one file of the batch.
    reading = len(ranges) - 4
    assert 0 < reading <= 3
    found, ranges = ranges_in(1)
    assert (found, len(ranges)) == ([[1]], reading)
    assert not set(ranges) & set(footers)
    assert query.run() == [[2], [3]]

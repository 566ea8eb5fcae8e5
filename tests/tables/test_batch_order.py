"""A batch follows the query's newest batch in the table, or is refused by name; on every sink."""

import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.schema import Schema

from pyspark_sluice.checkpoint_meta.documents.batch_mark import (
    NO_BATCH,
    BatchMark,
    BatchOrigin,
    Forked,
    TableInput,
)
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.batch_order import TableMark
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake
from pyspark_sluice.tests.tables.sinks import LINEAGE, batch_of, identity_of, ids

OTHER = replace(identity_of(2), checksum="f" * 16)
"""Checkpoint 2 of the state before it was restored from a backup."""

RESTORED = BatchMark.of(OTHER)


class Table:
    """A sink with its table, and the ids in it."""

    def __init__(self, kind, folder):
        self.folder = folder
        self._lake = IcebergLake(folder, Schema()) if kind == "iceberg" else None
        plain = {"delta": DeltaSink, "manifests": Manifests}
        self.sink = self._lake.sink if self._lake else plain[kind](str(folder / "table"), {})

    def batch(self, number, rows=None, **options):
        url = self.folder / "table"
        rows = ids(3 * number, number > 0) if rows is None else rows
        if self._lake:
            return self._lake.batch(number, rows, **options)
        return batch_of(url, number, rows, **options)

    def add(self, number, **options):
        self.sink.add(self.batch(number, **options))

    def look(self, previous):
        """A batch without files."""
        self.sink.add(replace(self.batch(1), files=[], mark=NO_BATCH, origin=BatchOrigin(previous)))

    @property
    def iceberg(self):
        return self._lake.table

    def ids(self):
        if self._lake:
            return self._lake.ids()
        if isinstance(self.sink, Manifests):
            paths = self.sink.paths()
            return sorted(i for p in paths for i in pa.parquet.read_table(p)["id"].to_pylist())
        return sorted(self.delta.to_pyarrow_table()["id"].to_pylist())

    @property
    def delta(self):
        return DeltaTable(str(self.folder / "table"))


@pytest.fixture(params=["delta", "iceberg", "manifests"])
def table(request, tmp_path):
    return Table(request.param, tmp_path)


@pytest.fixture
def delta(tmp_path):
    return Table("delta", tmp_path)


def test_a_batch_is_added_once_however_often_it_is_repeated(table):
    for number in (1, 2):
        for _ in range(2):
            table.add(number)
    assert table.ids() == [3, 6]
    table.look(BatchMark.of(identity_of(2)))


@pytest.mark.parametrize("number", [2, 3, 7])
def test_a_table_ahead_of_a_restored_checkpoint_is_refused_at_any_number(table, number):
    """Batches without files come between: the number of the next one is larger than the mark's."""
    table.add(1)
    table.add(2, identity=OTHER)
    previous = BatchMark.of(identity_of(1))
    found = re.escape(
        f"found checkpoint {RESTORED} as the query's newest batch; expected checkpoint"
    )
    for attempt in (lambda: table.add(number, previous=previous), lambda: table.look(previous)):
        with pytest.raises(TableError, match=rf"the table is ahead of the checkpoint.*{found}"):
            attempt()
    assert table.ids() == [3, 6]


def test_other_files_under_a_checkpoint_that_is_there_are_refused_by_name(table):
    table.add(1)
    with pytest.raises(TableError, match=r"is ahead of the checkpoint.*, with other files"):
        table.add(1, token="f" * 12)
    with pytest.raises(TableError, match=r"is ahead .* expected no batch of query \w+ yet"):
        table.look(NO_BATCH)
    assert table.ids() == [3]


def test_a_table_behind_the_checkpoint_is_refused_whether_it_has_batches_or_none(table):
    first, second = BatchMark.of(identity_of(1)), BatchMark.of(identity_of(2))
    for newest, found in ((NO_BATCH, "no batch of the query"), (first, f"checkpoint {first}")):
        if newest == first:
            table.add(1)
        for attempt in (lambda: table.add(3), lambda: table.look(second)):
            with pytest.raises(TableError, match=rf"the table is behind the checkpoint.*{found}"):
                attempt()
    assert table.ids() == [3]


def test_a_chain_that_is_not_retained_that_far_follows_any_earlier_batch(table):
    table.look(BatchMark(150))
    table.add(1)
    table.add(200, previous=BatchMark(150))
    with pytest.raises(TableError, match=r"is ahead of the checkpoint"):
        table.add(201, previous=BatchMark(150))


def test_marks_in_delta_have_a_time_by_which_spark_keeps_them(delta):
    delta.add(1)
    log = (delta.folder / "table/_delta_log/00000000000000000000.json").read_text().splitlines()
    marks = [json.loads(line)["txn"] for line in log if "txn" in json.loads(line)]
    assert len(marks) == 5
    assert min(mark["lastUpdated"] for mark in marks) > 1.7e12


def test_a_delta_table_without_its_marks_proves_a_batch_by_its_files_or_refuses(delta, monkeypatch):
    for number in (1, 2):
        delta.add(number)
    # As Spark leaves the log once the marks are older than delta.setTransactionRetentionDuration.
    monkeypatch.setattr(DeltaTable, "transaction_version", lambda *_: None)
    delta.add(2)
    with pytest.raises(TableError, match=r"is ahead of the checkpoint.*with other files"):
        delta.add(2, token="f" * 12)
    delta.add(3)
    assert delta.ids() == [3, 6, 9]
    delta.sink.compact(1 << 20)
    with pytest.raises(TableError, match=r"not known which batches.*a compaction may have"):
        delta.add(4)


def between_commits():
    """A time that is later than all commits before and earlier than all after, in whole ms."""
    time.sleep(0.01)
    now = datetime.now(UTC)
    time.sleep(0.01)
    return now


@pytest.fixture(params=["version", "time", "rollback", "set current"])
def taken_back(request, tmp_path):
    """A table, and what takes it back to an earlier state: as delta-rs and pyiceberg do it."""
    way = request.param
    table = Table("iceberg" if way in ("rollback", "set current") else "delta", tmp_path)

    def state():
        if way == "time":
            return between_commits()
        is_delta = way == "version"
        return table.delta.version() if is_delta else table.iceberg.current_snapshot().snapshot_id

    def take_back(to):
        if way in ("version", "time"):
            table.delta.restore(to)
            return
        with table.iceberg.manage_snapshots() as manage:
            try:
                steps = {"rollback": "rollback_to_snapshot", "set current": "set_current_snapshot"}
                getattr(manage, steps[way])(to)
            except ValueError:  # A rollback leads to ancestors only.
                manage.set_current_snapshot(to)

    return table, state, take_back


def test_a_table_that_was_taken_back_is_behind_until_its_batches_are_added(taken_back):
    table, state, take_back = taken_back
    table.add(1)
    first = state()
    table.add(2)
    second = state()
    table.add(3)
    take_back(first)
    expected = [3]
    # A commit of another query hides nothing.
    for other in ("", "f" * 16):
        if other:
            table.add(1, lineage=other)
            expected.append(3)
        for attempt in (lambda: table.add(4), lambda: table.look(BatchMark.of(identity_of(3)))):
            with pytest.raises(TableError, match=r"the table is behind.*found checkpoint 1-"):
                attempt()
        assert table.ids() == expected
    table.add(2)
    take_back(first)
    take_back(second)
    with pytest.raises(TableError, match=r"the table is behind.*found checkpoint 2-"):
        table.add(4)
    for number in (3, 4, 4):
        table.add(number)
    assert table.ids() == [3, 6, 9, 12]


def test_a_table_that_was_taken_back_to_its_newest_batch_goes_on(taken_back):
    table, state, take_back = taken_back
    table.add(1)
    first = state()
    table.add(1, lineage="f" * 16)
    take_back(first)
    table.add(2)
    assert table.ids() == [3, 6]


def test_a_delta_table_whose_log_ends_within_a_restore_proves_batches_by_files(delta):
    delta.add(1)
    delta.add(2)
    after_two = between_commits()
    delta.add(3)
    delta.delta.restore(after_two)
    delta.delta.create_checkpoint()
    (delta.folder / "table/_delta_log/00000000000000000002.json").unlink()
    with pytest.raises(TableError, match=r"the table is behind.*found checkpoint 2-"):
        delta.add(4)


def expire(table, *snapshots):
    table.iceberg.maintenance.expire_snapshots().by_ids([*snapshots]).commit()


def test_an_iceberg_table_keeps_a_mark_whose_snapshot_has_expired_unless_it_was_taken_back(
    tmp_path,
):
    table = Table("iceberg", tmp_path)
    table.add(1)
    first = table.iceberg.current_snapshot().snapshot_id
    table.iceberg.append(ids(50, 1))
    others = table.iceberg.current_snapshot().snapshot_id
    expire(table, first)
    table.add(2)
    second = table.iceberg.current_snapshot().snapshot_id
    with table.iceberg.manage_snapshots() as manage:
        manage.rollback_to_snapshot(others)
    for _ in range(2):
        with pytest.raises(TableError, match=r"not known which batches.*--new-table"):
            table.add(3)
        if second in {each.snapshot_id for each in table.iceberg.metadata.snapshots}:
            expire(table, second)
    assert table.ids() == [3, 50]


def add_of(table, number, *roots, **options):
    batch = table.batch(number, **options)
    reads = TableInput(list(roots), "/state")
    table.sink.add(replace(batch, origin=replace(batch.origin, reads=reads)))


def test_a_table_knows_the_inputs_of_all_its_queries(table):
    assert list(table.sink.inputs()) == []
    add_of(table, 1, "/in/a")
    add_of(table, 2, "/in/a", "s3://b/c")
    assert {root for each in table.sink.inputs() for root in each.input} == {"/in/a", "s3://b/c"}
    assert {each.state for each in table.sink.inputs()} == {"/state"}


def test_a_delta_table_knows_its_inputs_after_its_log_was_cleaned_and_it_was_moved(delta):
    for number in range(1, 4):
        add_of(delta, number, f"/in/{number}")
    log = delta.folder / "table/_delta_log"
    delta.delta.create_checkpoint()
    for commit in log.glob("*.json"):
        commit.unlink()
    moved = (delta.folder / "table").rename(delta.folder / "moved")
    delta.sink = DeltaSink(str(moved), {})
    roots = {root for each in delta.sink.inputs() for root in each.input}
    assert roots == {"/in/1", "/in/2", "/in/3"}


def test_inputs_of_batches_that_were_taken_back_do_not_count(taken_back):
    table, state, take_back = taken_back
    add_of(table, 1, "/other", lineage="f" * 16)
    first = state()
    add_of(table, 1, "/in/a")
    assert sorted(each.input for each in table.sink.inputs()) == [["/in/a"], ["/other"]]
    take_back(first)
    assert [each.input for each in table.sink.inputs()] == [["/other"]]


def test_a_clone_without_marks_has_rows_of_queries_whose_inputs_are_not_known(delta):
    add_of(delta, 1, "/in/a")
    for commit in (delta.folder / "table/_delta_log").glob("*.json"):
        lines = commit.read_text().splitlines(keepends=True)
        commit.write_text("".join(line for line in lines if not line.startswith('{"txn"')))
    assert delta.sink.inputs() == [TableInput()]


FORK = "fedcba9876543210"
CONTINUED = "the query is continued by another one: a fork of it writes into the table"


def fork_of(table, number, lineage=FORK, *, place=None):
    """The first batch of a fork that begins after checkpoint 2."""
    batch = table.batch(number, lineage=lineage, previous=NO_BATCH)
    place = table.sink.identity() if place is None else place
    forked = Forked(LINEAGE, str(BatchMark.of(identity_of(2))), place, "/old", 2, 1)
    reads = TableInput(["/in"], "/state-of-the-fork")
    return replace(batch, origin=BatchOrigin(NO_BATCH, reads, forked))


def refused_as_continued(act, *arguments, **options):
    with pytest.raises(TableError, match=re.escape(CONTINUED)) as refused:
        act(*arguments, **options)
    assert f"query {FORK}, whose state is /state-of-the-fork" in str(refused.value)


def test_the_first_batch_of_a_fork_ends_the_query_that_it_continues(table):
    for number in (1, 2):
        table.add(number)
    first = fork_of(table, 4)
    table.look(BatchMark.of(identity_of(2)))
    table.sink.add(first)
    table.sink.add(first)
    refused_as_continued(table.look, BatchMark.of(identity_of(2)))
    refused_as_continued(table.add, 3)
    refused_as_continued(table.sink.add, fork_of(table, 5, "1" * 16))
    table.add(5, lineage=FORK, previous=BatchMark.of(identity_of(4)))
    refused_as_continued(table.add, 3)
    assert table.ids() == [3, 6, 12, 15]


def test_a_query_that_goes_on_next_to_its_fork_on_purpose_is_not_refused_again(table):
    for number in (1, 2):
        table.add(number)
    table.sink.add(fork_of(table, 5))
    third = table.batch(3)
    table.sink.add(replace(third, origin=replace(third.origin, any_table=True)))
    table.add(4)
    assert table.ids() == [3, 6, 9, 12, 15]


def test_a_fork_of_a_query_of_another_table_ends_nothing_in_this_one(table):
    for number in (1, 2):
        table.add(number)
    table.sink.add(fork_of(table, 4, place="delta:another"))
    table.add(3)
    assert table.ids() == [3, 6, 9, 12]


def test_a_fork_whose_batches_were_taken_back_ends_nothing(taken_back):
    table, state, take_back = taken_back
    for number in (1, 2):
        table.add(number)
    second = state()
    table.sink.add(fork_of(table, 4))
    take_back(second)
    table.add(3)
    assert table.ids() == [3, 6, 9]


def test_a_fork_whose_batches_were_removed_ends_nothing(table):
    for number in (1, 2):
        table.add(number)
    batch = fork_of(table, 4)
    table.sink.add(batch)
    opened = table.sink.opened()
    paths = [path for path in table.sink.files(opened) if path.endswith(batch.files[0].path[-30:])]
    table.sink.remove(opened, paths, FORK, TableMark(NO_BATCH, ""))
    table.add(3)
    assert table.ids() == [3, 6, 9]

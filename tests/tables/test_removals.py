"""Batches that take rows of files out of a table: with the rows that replace them, or alone."""

import datetime as dt
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, StringType

from pyspark_sluice.checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, BatchOrigin
from pyspark_sluice.checkpoint_meta.documents.written_file import Removal
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tables.written_batch import WrittenBatch
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake
from pyspark_sluice.tests.tables.sinks import LINEAGE, batch_of, identity_of

COLUMNS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "file", StringType()),
    NestedField(3, "day", DateType()),
)


def day_of(file):
    return dt.date(2024, 1, int(file[0]))


class Orders:
    """A table of rows of files; the first character of a file is its day."""

    def __init__(self, kind, root):
        self.kind, self.root = kind, root
        self.lake = IcebergLake(root, COLUMNS) if kind == "iceberg" else None
        self.by = {"partition_by": "day"} if kind == "delta by day" else {}
        self.sink = self.other_sink()

    def other_sink(self):
        if self.lake:
            return IcebergSink(self.lake.table)
        return DeltaSink(str(self.root / "table"), {})

    def batch(self, number, files=(), removed=(), previous=None, **more):
        mark = BatchMark.of(identity_of(number))
        before = BatchMark.of(identity_of(number - 1)) if number > 1 else NO_BATCH
        before = before if previous is None else previous
        written = []
        if files:
            rows = pa.table(
                {
                    "id": pa.array([i for ids in files.values() for i in ids], pa.int64()),
                    "file": [file for file, ids in files.items() for _ in ids],
                    "day": [day_of(file) for file, ids in files.items() for _ in ids],
                    **{
                        name: [value] * sum(map(len, files.values()))
                        for name, value in more.items()
                    },
                }
            )
            make = self.lake.batch if self.lake else self._delta_batch
            written = [(file, mark) for file in make(number, rows).files]
        removals = [
            (Removal(column="file", keys=[file], values={"day": str(day_of(file))}), mark)
            for file in removed
        ]
        return WrittenBatch.of_files(written, LINEAGE, BatchOrigin(before), {}, removals)

    def _delta_batch(self, number, rows):
        return batch_of(self.root / "table", number, rows, **self.by)

    def add(self, *arguments, **more):
        self.sink.add(self.batch(*arguments, **more))

    def append(self, *rows):
        """Rows of another writer: (id, file or None, day)."""
        names = ("id", "file", "day")
        table = pa.table(
            {n: pa.array([row[i] for row in rows], COLUMNS_ARROW[n]) for i, n in enumerate(names)}
        )
        if self.lake:
            self.lake.table.append(table)
        else:
            write_deltalake(self.delta, table, mode="append")

    @property
    def delta(self):
        return DeltaTable(str(self.root / "table"))

    def rows(self):
        table = self.lake.table.scan().to_arrow() if self.lake else self.delta.to_pyarrow_table()
        return sorted((row["id"], row["file"]) for row in table.to_pylist())

    def versions(self):
        return len(self.lake.table.snapshots()) if self.lake else self.delta.version()


COLUMNS_ARROW = {"id": pa.int64(), "file": pa.string(), "day": pa.date32()}
FIRST = {"1a": [1, 2], "1b": [3], "2a": [4]}


@pytest.fixture(params=["delta", "delta by day", "iceberg"])
def orders(request, tmp_path):
    return Orders(request.param, tmp_path)


@pytest.fixture
def delta(tmp_path):
    return Orders("delta", tmp_path)


def test_rows_of_a_file_are_replaced_and_all_others_stay(orders):
    orders.add(1, FIRST)
    orders.append((90, None, dt.date(2024, 1, 1)), (91, None, None), (92, "1x", None))
    for _ in range(2):
        orders.add(2, {"1a": [5, 6, 7]}, ["1a"])
        kept = [(3, "1b"), (4, "2a"), (90, None), (91, None), (92, "1x")]
        assert orders.rows() == sorted([*((i, "1a") for i in (5, 6, 7)), *kept])
    # Rows that were read before their path had the column.
    orders.append((93, "1a", None))
    orders.add(3, {"1a": [8], "2a": [9]}, ["1a", "2a", "2b"])
    assert {row for row in orders.rows() if row[1] in ("1a", "2a")} == {(8, "1a"), (9, "2a")}
    orders.add(4, {"3a": [10]})
    assert (10, "3a") in orders.rows()


def test_rows_are_removed_alone_and_a_removal_of_nothing_keeps_its_mark(orders):
    orders.add(1, FIRST)
    orders.add(2, removed=["1a", "2a"])
    assert orders.rows() == [(3, "1b")]
    before = orders.versions()
    orders.add(3, removed=["1a"])
    assert orders.versions() > before
    assert orders.sink.newest(orders.sink.opened(), LINEAGE).batch == BatchMark.of(identity_of(3))
    versions = orders.versions()
    for number in (3, 3):
        orders.add(number, removed=["1a"])
    assert orders.versions() == versions
    with pytest.raises(TableError, match=r"is ahead of the checkpoint.*, with other files"):
        orders.add(3, removed=["1b"])
    orders.add(4, {"1a": [5]})
    assert orders.rows() == [(3, "1b"), (5, "1a")]


@pytest.mark.parametrize("way", ["answer lost", "the same by another process", "died before"])
@pytest.mark.parametrize("files", [{}, {"1a": [5]}])
def test_a_removal_is_in_the_table_once_however_its_commit_ends(orders, monkeypatch, way, files):
    orders.add(1, FIRST)
    batch = orders.batch(2, files, ["1a"])
    commit, early = orders.sink._commit, orders.other_sink()

    def disturbed(table, batch):
        monkeypatch.undo()
        if way == "answer lost":
            commit(table, batch)
        if way == "the same by another process":
            early.add(batch)
            commit(table, batch)
        raise OSError(5, "the answer is lost")

    monkeypatch.setattr(orders.sink, "_commit", disturbed)
    orders.sink.add(batch)
    expected = [(3, "1b"), (4, "2a"), *((i, "1a") for i in files.get("1a", ()))]
    assert orders.rows() == sorted(expected)
    orders.add(3, {"1c": [6]})
    assert orders.rows() == sorted([*expected, (6, "1c")])


@pytest.mark.parametrize("between", ["append", "compact", "delete", "replace by another query"])
def test_a_writer_that_comes_between_repeats_and_loses_nothing(orders, monkeypatch, between):
    orders.add(1, FIRST)
    orders.add(2, {"1c": [8], "2c": [9]})
    commit = orders.sink._commit
    late = (7, "1a", dt.date(2024, 1, 1))
    expected = [(3, "1b"), (4, "2a"), (5, "1a"), (8, "1c"), (9, "2c")]

    def disturbed(table, batch):
        monkeypatch.undo()
        if between == "append":
            orders.append(late)
        elif between == "delete":
            orders.lake.table.delete("id = 3") if orders.lake else orders.delta.delete("id = 3")
        elif orders.lake:
            orders.append(late)
        elif between == "compact":
            orders.delta.optimize.compact()
        else:
            rows = orders.batch(9, {"1b": [33]}).rows(pa.schema(orders.delta.schema().to_arrow()))
            write_deltalake(
                orders.delta,
                rows,
                mode="overwrite",
                predicate="file = '1b'",
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        commit(table, batch)

    monkeypatch.setattr(orders.sink, "_commit", disturbed)
    orders.add(3, {"1a": [5]}, ["1a"])
    if between == "delete":
        expected.remove((3, "1b"))
    if between == "replace by another query" and orders.lake is None:
        expected = [(33 if i == 3 else i, file) for i, file in expected]
    # Rows of the key that came before the commit are among those that it removes.
    assert orders.rows() == sorted(expected)


def test_queries_that_replace_files_at_once_end_with_each_file_once(orders):
    orders.add(1, {**FIRST, "3a": [10], "4a": [11]})
    others = {"f" * 16: (3, "2a"), "e" * 16: (4, "3a")}
    batches = [orders.batch(2, {"1a": [5]}, ["1a"])]
    for lineage, (number, file) in others.items():
        batch = orders.batch(number, {file: [12]}, [file], previous=NO_BATCH)
        batches.append(replace(batch, lineage=lineage))
    failures = []

    def add(batch):
        try:
            orders.other_sink().add(batch)
        except Exception as error:  # noqa: BLE001 - the test says it
            failures.append(error)

    threads = [threading.Thread(target=add, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert orders.rows() == [(3, "1b"), (5, "1a"), (11, "4a"), (12, "2a"), (12, "3a")]


def test_a_replacing_batch_may_bring_columns_and_removes_in_a_table_without_the_key(orders):
    orders.add(1, FIRST)
    orders.add(2, {"1a": [5]}, ["1a"], more="x")
    assert orders.rows() == [(3, "1b"), (4, "2a"), (5, "1a")]
    table = orders.lake.table.scan().to_arrow() if orders.lake else orders.delta.to_pyarrow_table()
    assert sorted(zip(table["id"].to_pylist(), table["more"].to_pylist(), strict=True)) == [
        (3, None),
        (4, None),
        (5, "x"),
    ]


def test_one_batch_over_several_checkpoints_removes_what_it_added_itself(orders):
    first, second = orders.batch(1, FIRST), orders.batch(2, {"1a": [5]}, ["1a"])
    marks = {1: first.mark, 2: second.mark}
    files = [(file, marks[1]) for file in first.files] + [(f, marks[2]) for f in second.files]
    removals = [(removal, marks[2]) for removal in second.removals]
    batch = WrittenBatch.of_files(files, LINEAGE, BatchOrigin(), {}, removals)
    orders.sink.add(batch.before)  # And the process dies.
    for _ in range(2):
        orders.sink.add(batch)
        assert orders.rows() == [(3, "1b"), (4, "2a"), (5, "1a")]


def test_files_of_other_days_are_not_opened(tmp_path):
    orders = Orders("delta by day", tmp_path)
    days = {f"{day}{name}": [day] for day in range(1, 9) for name in "abc"}
    orders.add(1, days)
    for path in orders.delta.file_uris(partition_filters=[("day", ">", "2024-01-02")]):
        (tmp_path / path).unlink()
    orders.add(2, {"1a": [50], "2b": [51]}, ["1a", "2b"])
    commit = orders.delta.history(1)[0]["operationMetrics"]
    assert (commit["num_removed_files"], commit["num_added_rows"]) == (2, 2)


def test_a_change_data_feed_shows_the_rows_that_went_and_those_that_came(delta):
    schema = pa.schema([("id", pa.int64()), ("file", pa.string()), ("day", pa.date32())])
    feed = {"delta.enableChangeDataFeed": "true"}
    DeltaTable.create(str(delta.root / "table"), schema, configuration=feed)
    delta.add(1, FIRST)
    delta.add(2, {"1a": [5]}, ["1a"])
    changes = pa.table(delta.delta.load_cdf(delta.delta.version()).read_all()).to_pylist()
    assert sorted((row["id"], row["_change_type"]) for row in changes) == [
        (1, "delete"),
        (2, "delete"),
        (5, "insert"),
    ]


def test_tables_that_cannot_are_refused_by_name(delta, tmp_path):
    delta.add(1, FIRST)
    delta.delta.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(TableError, match=r"found delta\.appendOnly=true"):
        delta.sink.check_removal("file")
    with pytest.raises(TableError, match=r"found delta\.appendOnly=true"):
        delta.add(2, {"1a": [5]}, ["1a"])
    assert delta.rows() == [(1, "1a"), (2, "1a"), (3, "1b"), (4, "2a")]
    delta.delta.alter.set_table_properties({"delta.appendOnly": "false"})
    delta.add(2, {"1a": [5]}, ["1a"])
    assert delta.rows() == [(3, "1b"), (4, "2a"), (5, "1a")]
    with pytest.raises(TableError, match="found manifests; expected a Delta or Iceberg table"):
        Manifests(str(tmp_path / "manifests"), {}).check_removal("file")


def test_a_batch_that_removed_rows_is_one_of_the_history(orders):
    orders.add(1, FIRST)
    orders.add(2, {"1a": [5]}, ["1a"])
    orders.add(3, removed=["2a"])
    orders.add(4, {"1d": [6]})
    found = list(orders.sink.batches(orders.sink.opened(), LINEAGE))
    assert [mark.batch.checkpoint for mark, _ in found] == [4, 3, 2, 1]
    assert [mark.has_removals for mark, _ in found] == [False, True, True, False]
    table, (mark, names) = orders.sink.opened(), found[0]
    chosen = [path for path in orders.sink.files(table) if path.rpartition("/")[2] in names[0]]
    orders.sink.remove(table, chosen, LINEAGE, found[1][0])
    assert mark.takes_back is False
    found = list(orders.sink.batches(orders.sink.opened(), LINEAGE))
    assert [mark.batch.checkpoint for mark, _ in found] == [3, 2, 1]

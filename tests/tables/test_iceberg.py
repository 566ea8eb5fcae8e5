"""Batches of data files in an Iceberg table: each once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake
from pyspark_sluice.tests.tables.sinks import ids


@pytest.fixture
def lake(tmp_path):
    return IcebergLake(tmp_path, Schema(NestedField(1, "id", LongType())))


def test_batches_are_added_once_each_in_one_snapshot(lake):
    for number in (1, 2, 2):
        lake.add(number, ids(3 * number))
    assert lake.ids() == [*range(3, 9)]
    assert len(lake.table.snapshots()) == 2


def test_another_writer_s_copy_of_the_batch_is_seen_before_ours_is_added(lake, monkeypatch):
    batch = lake.batch(1, ids(0))
    late, early = lake.sink, IcebergSink(lake.table)
    commit = late._commit

    def overtaken(table, batch):
        monkeypatch.undo()
        # Between our look and our commit.
        early.add(batch)
        return commit(table, batch)

    monkeypatch.setattr(late, "_commit", overtaken)
    late.add(batch)
    assert lake.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    "error", [OSError(5, "the answer is lost"), CommitStateUnknownException("the answer is lost")]
)
def test_a_commit_whose_answer_was_lost_adds_the_rows_once(lake, monkeypatch, error):
    tries = []
    commit = lake.catalog.commit_table

    def loses(*arguments):
        tries.append(commit(*arguments))
        raise error

    monkeypatch.setattr(lake.sink._table.catalog, "commit_table", loses)
    lake.add(1, ids(0))
    assert len(tries) == 1
    assert lake.ids() == [0, 1, 2]


def test_columns_in_another_case_or_of_nulls_in_required_ones_are_refused_by_name(tmp_path):
    columns = [
        NestedField(1, "ID", LongType()),
        NestedField(2, "text", StringType(), required=True),
    ]
    lake = IcebergLake(tmp_path, Schema(*columns))
    found = "id is ID in the table; text may be null, and is required"
    with pytest.raises(TableError, match=found):
        lake.add(1, ids(0, text="a"))
    sure = pa.schema([pa.field("ID", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    lake.add(1, pa.table({"ID": [1], "text": ["a"]}, schema=sure))
    fields = [(field.name, field.required) for field in lake.table.schema().fields]
    assert fields == [("ID", False), ("text", True)]


def test_an_earlier_batch_and_partition_values_are_refused_by_name(lake):
    lake.add(2, ids(0))
    with pytest.raises(TableError, match="found checkpoint 2 of the query"):
        lake.add(1, ids(3))
    with pytest.raises(TableError, match="no writePartitionBy"):
        lake.add(3, ids(3, who="a"), partition_by="who")

"""Batches of data files in an Iceberg table: each once."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tests.tables.sinks import add_to_iceberg, batch_of, finished, ids, processes


def where(folder):
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder / "w")}


@pytest.fixture
def catalog(tmp_path):
    made = SqlCatalog("x", **where(tmp_path))
    made.create_namespace("lake")
    return made


@pytest.fixture
def table(catalog):
    return catalog.create_table("lake.orders", pa.schema([("id", pa.int64())]))


def rows_of(catalog):
    return sorted(catalog.load_table("lake.orders").scan().to_arrow()["id"].to_pylist())


def test_batches_are_added_once_each(catalog, table, tmp_path):
    sink = IcebergSink(table)
    for number in (1, 2, 2):
        sink.add(batch_of(tmp_path / "data", number, ids(3 * number)))
    assert rows_of(catalog) == [*range(3, 9)]


def test_another_writer_s_copy_of_the_batch_is_seen_before_ours_is_added(
    catalog, table, tmp_path, monkeypatch
):
    batch = batch_of(tmp_path / "data", 1, ids(0))
    late, early = IcebergSink(table), IcebergSink(catalog.load_table("lake.orders"))
    commit = late._commit

    def overtaken(table, batch):
        monkeypatch.undo()
        # Between our look and our commit.
        late._table.refresh()
        stale = late._table.metadata
        early.add(batch)
        late._table.metadata = stale
        late._table.metadata.properties["commit.retry.num-retries"] = "0"
        return commit(table, batch)

    monkeypatch.setattr(late, "_commit", overtaken)
    late.add(batch)
    assert rows_of(catalog) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.thorough("many races; one batch repeated is above")
def test_two_drivers_that_add_one_batch_at_once_add_it_once(catalog, table, tmp_path):
    context = processes()
    for number in range(1, 3):
        batch = batch_of(tmp_path / "data", number, ids(3 * number))
        arguments = (where(tmp_path), "lake.orders", batch, context.Barrier(2))
        finished([context.Process(target=add_to_iceberg, args=arguments) for _ in range(2)])
    assert rows_of(catalog) == [*range(3, 9)]


@pytest.mark.parametrize(
    "error", [OSError(5, "the answer is lost"), CommitStateUnknownException("the answer is lost")]
)
def test_a_commit_whose_answer_was_lost_adds_the_rows_once(
    catalog, table, tmp_path, monkeypatch, error
):
    sink, tries = IcebergSink(table), []
    commit = catalog.commit_table

    def loses(*arguments):
        tries.append(commit(*arguments))
        raise error

    monkeypatch.setattr(table.catalog, "commit_table", loses)
    sink.add(batch_of(tmp_path / "data", 1, ids(0)))
    assert len(tries) == 1
    assert rows_of(catalog) == [0, 1, 2]


def test_another_engine_reads_the_table_with_its_old_and_new_columns(
    catalog, table, tmp_path, monkeypatch
):
    # Which files there are pyiceberg says; polars reads them.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    sink = IcebergSink(table)
    sink.add(batch_of(tmp_path / "data", 1, ids(0)))
    sink.add(batch_of(tmp_path / "data", 2, ids(3, text="new")))
    location = catalog.load_table("lake.orders").metadata_location
    found = pl.scan_iceberg(location, reader_override="native").sort("id").collect()
    assert found["id"].to_list() == [*range(6)]
    assert found["text"].to_list() == [None] * 3 + ["new"] * 3


def test_new_columns_are_added_and_other_types_refused_by_name(catalog, table, tmp_path):
    sink = IcebergSink(table)
    sink.add(batch_of(tmp_path / "data", 1, ids(0, text="new")))
    assert catalog.load_table("lake.orders").scan().to_arrow()["text"].to_pylist() == ["new"] * 3
    with pytest.raises(TableError, match="do not fit the table's"):
        sink.add(batch_of(tmp_path / "data", 2, ids(3, text=1)))
    assert rows_of(catalog) == [0, 1, 2]


def test_columns_in_another_case_or_of_nulls_in_required_ones_are_refused_by_name(
    catalog, tmp_path
):
    columns = [
        NestedField(1, "ID", LongType()),
        NestedField(2, "text", StringType(), required=True),
    ]
    other = catalog.create_table("lake.other", Schema(*columns))
    sink = IcebergSink(other)
    found = "id is ID in the table; text may be null, and is required"
    with pytest.raises(TableError, match=found):
        sink.add(batch_of(tmp_path / "data", 1, ids(0, text="a")))
    sure = pa.schema([pa.field("ID", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    rows = pa.table({"ID": [1], "text": ["a"]}, schema=sure)
    sink.add(batch_of(tmp_path / "data", 1, rows))
    schema = catalog.load_table("lake.other").schema()
    assert [(field.name, field.required) for field in schema.fields] == [
        ("ID", False),
        ("text", True),
    ]


def test_an_earlier_batch_and_partition_values_are_refused_by_name(catalog, table, tmp_path):
    sink = IcebergSink(table)
    sink.add(batch_of(tmp_path / "data", 2, ids(0)))
    with pytest.raises(TableError, match="found checkpoint 2 of the query"):
        sink.add(batch_of(tmp_path / "data", 1, ids(3)))
    with pytest.raises(TableError, match="no writePartitionBy"):
        sink.add(batch_of(tmp_path / "data", 3, ids(3, who="a"), partition_by="who"))

"""Landed batches in an Iceberg table: each once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tests.tables.sinks import batch_of, ids

pytestmark = pytest.mark.slow


@pytest.fixture
def catalog(tmp_path):
    made = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "w"))
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


def test_new_columns_are_added_and_other_types_refused_by_name(catalog, table, tmp_path):
    sink = IcebergSink(table)
    sink.add(batch_of(tmp_path / "data", 1, ids(0, text="new")))
    assert catalog.load_table("lake.orders").scan().to_arrow()["text"].to_pylist() == ["new"] * 3
    with pytest.raises(TableError, match="do not fit the table's"):
        sink.add(batch_of(tmp_path / "data", 2, ids(3, text=1)))
    assert rows_of(catalog) == [0, 1, 2]


def test_an_earlier_batch_and_partition_values_are_refused_by_name(catalog, table, tmp_path):
    sink = IcebergSink(table)
    sink.add(batch_of(tmp_path / "data", 2, ids(0)))
    with pytest.raises(TableError, match="found checkpoint 2 of the query"):
        sink.add(batch_of(tmp_path / "data", 1, ids(3)))
    with pytest.raises(TableError, match="no landPartitionBy"):
        sink.add(batch_of(tmp_path / "data", 3, ids(3, who="a"), partition_by="who"))

"""Batches in an Iceberg table: each once, with columns that are found by the field ids in files."""

import math
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.iceberg_files import path_in
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake
from pyspark_sluice.tests.tables.sinks import ids, in_place

MAPPING = "schema.name-mapping.default"


@pytest.fixture
def lake(tmp_path):
    return IcebergLake(tmp_path, Schema())


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
    "error",
    [
        OSError(5, "the answer is lost"),
        CommitStateUnknownException("the answer is lost"),
        # A client that sends a request twice gets a conflict with its own commit.
        CommitFailedException("concurrent modification"),
    ],
)
def test_a_commit_whose_answer_was_lost_adds_the_rows_once(lake, monkeypatch, error):
    tries = []
    commit = lake.catalog.commit_table

    def loses(*arguments):
        tries.append(commit(*arguments))
        raise error

    monkeypatch.setattr(lake.catalog, "commit_table", loses)
    lake.add(1, ids(0))
    assert len(tries) == 1
    assert lake.ids() == [0, 1, 2]


def test_columns_in_another_case_or_of_nulls_in_required_ones_are_refused_by_name(tmp_path):
    columns = [
        NestedField(1, "ID", LongType()),
        NestedField(2, "text", StringType(), required=True),
    ]
    lake = IcebergLake(tmp_path, Schema(*columns))
    with pytest.raises(TableError, match="id is ID in the table"):
        lake.add(1, ids(0, text="a"))
    for text in ({"text": pa.array([None], pa.string())}, {}):
        with pytest.raises(TableError, match="nulls in text, or no such column"):
            lake.add(1, pa.table({"ID": [1], **text}), columns=None)
    lake.add(1, pa.table({"ID": [1], "text": ["a"]}))
    sure = pa.schema([pa.field("ID", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    lake.add(2, pa.table({"ID": [2], "text": ["b"]}, schema=sure))
    fields = [(field.name, field.required) for field in lake.table.schema().fields]
    assert fields == [("ID", False), ("text", True)]
    assert sorted(lake.table.scan().to_arrow()["text"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize(
    ("location", "path", "expected"),
    [
        ("s3a://b/w/t", "s3://b/w/t/data/1", "s3a://b/w/t/data/1"),
        ("s3://b/w/t", "s3://b/w/t/data/1", "s3://b/w/t/data/1"),
        ("s3a://b/w/t", "s3://other/1", "s3a://other/1"),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            "abfs://c/t/1",
            "abfss://c@a.dfs.core.windows.net/t/1",
        ),
        ("gs://b/t", "s3://b/1", "s3://b/1"),
        ("file:///w/t", "/w/t/data/1", "file:///w/t/data/1"),
        ("file:/w/t", "/w/t/data/1", "file:/w/t/data/1"),
        ("/w/t", "/w/t/data/1", "/w/t/data/1"),
    ],
)
def test_data_files_have_the_scheme_of_the_location_of_their_table(location, path, expected):
    """A Hadoop catalog knows no file system for another one."""
    assert path_in(location, path) == expected


def test_partition_values_are_refused_by_name(lake):
    with pytest.raises(TableError, match="no writePartitionBy"):
        lake.add(1, ids(3, who="a"), partition_by="who")


def paths_of(lake):
    return [file.file_path for file in lake.files()]


def rename(lake, old, new):
    with lake.table.update_schema() as update:
        update.rename_column(old, new)


def test_a_renamed_column_keeps_its_values_and_the_old_name_is_a_new_column(lake):
    lake.add(1, ids(1, 1, v=10))
    rename(lake, "v", "v_old")
    lake.add(2, ids(2, 1, v="20"))
    lake.add(3, ids(3, 1, v="30", v_old=30))
    assert lake.rows() == [
        {"id": 1, "v_old": 10, "v": None},
        {"id": 2, "v_old": None, "v": "20"},
        {"id": 3, "v_old": 30, "v": "30"},
    ]


def test_a_name_mapping_is_not_touched_and_still_reads_files_without_ids(lake):
    lake.add(1, ids(1, 1, v=10), columns=None)
    rename(lake, "v", "v_old")
    mapping = lake.table.properties[MAPPING]
    lake.add(2, ids(2, 1, v=20))
    assert lake.table.properties[MAPPING] == mapping
    assert lake.rows()[0] == {"id": 1, "v_old": 10, "v": None}


def test_files_without_ids_are_refused_if_the_name_mapping_has_other_columns(lake):
    lake.add(1, ids(1, 1, v=10), columns=None)
    lake.add(2, ids(2, 1, v=20, w=1), columns=None)
    rename(lake, "v", "v_old")
    with pytest.raises(TableError, match="does not find the columns of a file by their names"):
        lake.add(3, ids(3, 1, v=30), columns=None)
    assert [(row["v_old"], row["w"]) for row in lake.rows()] == [(10, None), (20, 1)]


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("o", pa.struct([("x", pa.list_(pa.struct([("y", pa.int64())]))), ("z", pa.int64())])),
        ("m", pa.map_(pa.string(), pa.struct([("k", pa.int64())]))),
        ("w", pa.string()),
    ]
)


def test_new_columns_have_the_ids_that_the_table_gives_them_at_any_depth(lake):
    first = {"id": 1, "o": {"x": [{"y": 1}], "z": 2}, "m": [("a", {"k": 3})], "w": "w"}
    lake.add(1, pa.Table.from_pylist([first], NESTED))
    inner = pa.struct([("x", pa.list_(pa.struct([("y", pa.int64()), ("n", pa.int64())])))])
    outer = pa.struct([*inner, ("z", pa.int64()), ("s", pa.struct([("t", pa.int64())]))])
    fields = [pa.field("new", pa.list_(pa.int64())), NESTED.field("id"), pa.field("o", outer)]
    second = {"id": 2, "o": {"x": [{"y": 1, "n": 2}], "z": 3, "s": {"t": 4}}, "new": [5]}
    lake.add(2, pa.Table.from_pylist([second], pa.schema(fields)))
    assert not [path for path in paths_of(lake) if "/ids-" in path]
    assert lake.rows()[1] == {**second, "m": None, "w": None}
    assert MAPPING not in lake.table.properties
    numbers = {
        field.name: int(field.metadata[b"PARQUET:field_id"])
        for path in paths_of(lake)
        for field in pq.read_schema(path)
    }
    assert numbers == {field.name: field.field_id for field in lake.table.schema().fields}


def test_files_whose_new_ids_another_writer_has_taken_are_copied_with_others(lake):
    batch = lake.batch(1, ids(1, 1, v=10))
    with lake.table.update_schema() as update:
        update.add_column("other", StringType())
        update.add_column("id", LongType())
    lake.sink.add(batch)
    lake.sink.add(batch)
    assert lake.rows() == [{"id": 1, "other": None, "v": 10}]
    assert [path.rpartition("/")[2][:4] for path in paths_of(lake)] == ["ids-"]


def test_the_recipe_of_a_refused_type_lets_the_batch_in(lake):
    lake.add(1, ids(1, 1, v=10))
    batch = lake.batch(2, ids(2, 1, v="text"))
    with pytest.raises(TableError, match="Rename the column in the table"):
        lake.sink.add(batch)
    rename(lake, "v", "v_old")
    lake.sink.add(batch)
    assert lake.rows() == [{"id": 1, "v_old": 10, "v": None}, {"id": 2, "v_old": None, "v": "text"}]


def test_dates_that_python_does_not_have_are_added_without_bounds(lake):
    days = pa.array([2_932_897], pa.date32())
    lake.add(1, pa.table({"id": [1], "day": days}))
    assert lake.table.scan().to_arrow()["day"].combine_chunks() == days
    bounds = lake.table.inspect.files()["readable_metrics"][0].as_py()["day"]["upper_bound"]
    assert bounds is None


def test_a_batch_reads_no_manifest_of_earlier_batches(lake, monkeypatch):
    for number in (1, 2):
        lake.add(number, ids(number, 1))
    entries = []
    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", lambda *_, **__: entries.append(1))
    lake.add(3, ids(3, 1))
    monkeypatch.undo()
    assert (entries, len(lake.rows())) == ([], 3)


def test_a_batch_does_not_read_the_manifest_of_thousands_of_files_again(lake, monkeypatch):
    lake.add(1, ids(1, 1))
    random = Random(0)
    with lake.table.transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
        with transaction.update_snapshot().fast_append() as append:
            for _ in range(4_000):
                file = DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=random.randbytes(160).hex(),
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=1,
                    file_size_in_bytes=1,
                )
                file.spec_id = 0
                append.append_data_file(file)
    merged = []
    fetch = ManifestFile.fetch_manifest_entry

    def fetches(manifest, io, discard_deleted=True):
        merged.append(manifest.added_files_count)
        return fetch(manifest, io, discard_deleted)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", fetches)
    lake.add(2, ids(2, 1))
    assert 4_000 not in merged


def test_files_of_others_have_no_bounds_of_floats_and_are_added_once(lake, tmp_path):
    with lake.table.update_schema() as update:
        update.add_column("id", LongType())
        update.add_column("f", DoubleType())
    batch = in_place(tmp_path / "a.parquet", ids(1, 1, f=1.5))
    lake.sink.add(batch)
    lake.sink.add(batch)
    (row,) = lake.rows()
    assert math.isclose(row["f"], 1.5)
    metrics = lake.table.inspect.files()["readable_metrics"][0].as_py()
    assert (metrics["f"]["upper_bound"], metrics["id"]["upper_bound"]) == (None, 1)
    again = in_place(tmp_path / "a.parquet", ids(1, 1, f=1.5), "f" * 16)
    with pytest.raises(TableError, match="already in the table"):
        lake.sink.add(again)

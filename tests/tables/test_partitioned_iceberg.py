"""Partitioned Iceberg tables: each data file has the rows of one partition of the current spec."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import expressions, types
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform

from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tests.tables.iceberg_lake import IcebergLake
from pyspark_sluice.tests.tables.sinks import in_place

# The plugin for pydantic does not know the constructors of filters.
EqualTo: Any = expressions.EqualTo
IsNull: Any = expressions.IsNull
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
DAYS = [-719_162, -366, -365, -1, 0, 1, 11_016, 2_932_896, None]
TIMES = [
    *(-62_135_596_800_000_000, -86_400_000_001, -86_400_000_000, -3_600_000_001, -1, 0, 1),
    *(3_599_999_999, 951_782_400_000_000, 253_402_300_799_999_999, None),
]
TEXTS = ["", "a", "ab", "abcd", "äöüß", "日本語テキスト", "😀😀😀", "a/b=c?%", None]
NUMBERS = [-(2**31), -11, -10, -1, 0, 1, 9, 10, 2**31 - 1, None]
DECIMALS = [None if n is None else decimal.Decimal(n).scaleb(-2) for n in NUMBERS]
TYPES = {
    "int": (types.IntegerType(), pa.array(NUMBERS[1:], pa.int32())),
    "long": (types.LongType(), pa.array([-(2**62), *NUMBERS, 2**62], pa.int64())),
    "decimal": (types.DecimalType(19, 2), pa.array(DECIMALS, pa.decimal128(19, 2))),
    "text": (types.StringType(), pa.array(TEXTS)),
    "bytes": (types.BinaryType(), pa.array([b"", b"\x00\xff\x00\xff", b"ab", None])),
    "date": (types.DateType(), pa.array(DAYS, pa.date32())),
    "local": (types.TimestampType(), pa.array(TIMES, pa.timestamp("us"))),
    "instant": (types.TimestamptzType(), pa.array(TIMES, pa.timestamp("us", "UTC"))),
    "flag": (types.BooleanType(), pa.array([True, False, None])),
    "double": (types.DoubleType(), pa.array([-1.5, 0.0, float("inf"), None])),
}
TRANSFORMS = {
    "identity": list(TYPES),
    "void": ["long"],
    "bucket[7]": ["int", "long", "decimal", "text", "bytes", "date", "local", "instant"],
    "truncate[3]": ["int", "long", "decimal", "text", "bytes"],
    "year": ["date", "local", "instant"],
    "month": ["date", "local", "instant"],
    "day": ["date", "local", "instant"],
    "hour": ["local", "instant"],
}


def parts_of(lake):
    """Spec, partition values and ids of each file, in the order of ids."""
    found = []
    for file in lake.files():
        ids = pq.read_table(file.file_path, columns=["id"])["id"].to_pylist()
        found.append(((file.spec_id, *file.partition), sorted(ids)))
    return sorted(found, key=lambda part: part[1])


def schema_of(**kinds):
    fields = enumerate(kinds.items(), 2)
    others = [types.NestedField(number, name, kind) for number, (name, kind) in fields]
    return Schema(types.NestedField(1, "id", types.LongType()), *others)


def plain(value):
    """A value as Iceberg's transforms take it."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    return (value - EPOCH.date()).days if isinstance(value, dt.date) else value


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_each_file_has_the_rows_of_one_tuple_of_partition_values(tmp_path, transform):
    names = TRANSFORMS[transform]
    kinds = {name: TYPES[name][0] for name in names}
    lake = IcebergLake(tmp_path, schema_of(**kinds), **dict.fromkeys(names, transform))
    most = max(len(TYPES[name][1]) for name in names)
    values = {}
    for name in names:
        array = TYPES[name][1]
        filled = pa.concat_arrays([array, pa.nulls(most - len(array), array.type)])
        values[name] = pa.concat_arrays([filled, filled])
    lake.add(1, pa.table({"id": range(2 * most), **values}))
    # pyiceberg's own transforms of single values, not those by which rows were parted.
    apply = {n: parse_transform(transform).transform(kinds[n]) for n in names}
    columns = [[apply[n](plain(v)) for v in values[n].to_pylist()] for n in names]
    expected: dict[Any, list[int]] = {}
    for number, parts in enumerate(zip(*columns, strict=True)):
        expected.setdefault((0, *parts), []).append(number)
    assert parts_of(lake) == list(expected.items())
    for position, name in enumerate(names):
        last = values[name].drop_null().to_pylist()[-1]
        for filtered, value in ((EqualTo(name, last), last), (IsNull(name), None)):
            planned = {file.partition[position] for file in lake.files(filtered)}
            assert planned == {apply[name](plain(value))}, name


def rows(first, count=4, **more):
    numbers = range(first, first + count)
    table = {"id": pa.array(numbers, pa.int64()), "who": [f"u{n % 2}" for n in numbers]}
    return pa.table({**table, **more})


WHO = schema_of(who=types.StringType())


def evolve(lake, transform):
    """Partition by a transform of `id` instead of by `who`."""
    with lake.table.update_spec() as update:
        update.remove_field("who_part")
        update.add_field("id", transform, "id_part")


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_spec_may_evolve_between_two_batches(tmp_path, version):
    lake = IcebergLake(tmp_path, WHO, version=version, who="identity")
    lake.add(1, rows(0))
    evolve(lake, "truncate[4]")
    lake.add(2, rows(4))
    with lake.table.update_spec() as update:
        update.remove_field("id_part")
    lake.add(3, rows(8))
    void = (None,) if version == "1" else ()
    assert parts_of(lake) == [
        ((0, "u0"), [0, 2]),
        ((0, "u1"), [1, 3]),
        ((1, *void, 4), [4, 5, 6, 7]),
        ((2, *void, *void), [8, 9, 10, 11]),
    ]
    assert lake.ids(EqualTo("who", "u1")) == [*range(1, 12, 2)]
    assert [file.record_count for file in lake.files(EqualTo("id", 5))] == [4]
    assert len(lake.table.snapshots()) == 3


def test_files_of_an_earlier_spec_are_written_again_for_the_current_one(tmp_path):
    lake = IcebergLake(tmp_path, WHO, who="identity")
    batch = lake.batch(1, rows(0))
    # The process ends before the commit, and someone else changes the spec.
    evolve(lake, "truncate[3]")
    for _ in range(2):
        IcebergSink(lake.table).add(batch)
    # Of two files, those of u0 and u1.
    assert parts_of(lake) == [((1, 0), [0, 2]), ((1, 0), [1]), ((1, 3), [3])]


def test_more_partitions_than_open_files_and_columns_that_the_rows_do_not_have(tmp_path):
    place = types.StructType(
        types.NestedField(4, "zip", types.LongType()),
        types.NestedField(5, "city", types.StringType()),
    )
    lake = IcebergLake(
        tmp_path, schema_of(who=types.StringType(), at=place), id="identity", who="identity"
    )
    with lake.table.update_spec() as update:
        update.add_field("at.city", "truncate[2]", "city_part")
    inner = [None if n == 1 else {"zip": n, "city": f"city {n}"} for n in range(20)]
    lake.add(1, pa.table({"id": range(20), "at": inner}))
    expected = [((1, n, None, None if n == 1 else "ci"), [n]) for n in range(20)]
    assert parts_of(lake) == expected
    lake.add(2, pa.table({"id": [20]}))
    assert parts_of(lake) == [*expected, ((1, 20, None, None), [20])]


def test_partition_columns_may_be_renamed_reordered_and_promoted_and_others_dropped(tmp_path):
    columns = schema_of(n=types.IntegerType(), gone=types.LongType(), old=types.LongType())
    lake = IcebergLake(tmp_path, columns, n="bucket[4]", old="identity")
    first = {"id": [1], "n": pa.array([34], pa.int32()), "gone": [5], "old": [7]}
    lake.add(1, pa.table(first))
    with lake.table.update_schema() as update:
        update.rename_column("old", "new")
        update.delete_column("gone")
    with lake.table.update_schema() as update:
        update.move_first("new")
    # A long in the rows promotes the int of the table, in the same commit as the files.
    lake.add(2, pa.table({"id": [2], "n": [34], "new": [7], "gone": ["back"]}))
    lake.add(3, pa.table({"n": pa.array([34], pa.int32()), "id": [3], "new": [8]}))
    bucket = parse_transform("bucket[4]").transform(types.IntegerType())(34)
    values = [((0, bucket, old), [number]) for number, old in ((1, 7), (2, 7), (3, 8))]
    assert parts_of(lake) == values
    assert lake.table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"new": 7, "id": 1, "n": 34, "gone": None},
        {"new": 7, "id": 2, "n": 34, "gone": "back"},
        {"new": 8, "id": 3, "n": 34, "gone": None},
    ]
    assert lake.ids(EqualTo("new", 7)) == [1, 2]
    assert len(lake.files(EqualTo("new", 8))) == 1


def test_a_partition_column_is_dropped_after_its_partition_field(tmp_path):
    lake = IcebergLake(tmp_path, WHO, who="identity")
    lake.add(1, rows(0))
    evolve(lake, "bucket[2]")
    with lake.table.update_schema() as update:
        update.delete_column("who")
    lake.add(2, rows(4).drop_columns("who"))
    assert lake.ids() == [*range(8)]
    assert {file.spec_id for file in lake.files()} == {0, 1}


def test_files_without_ids_are_written_again_with_partitions(tmp_path):
    # As with Spark Connect, whose tasks do not know the table.
    lake = IcebergLake(tmp_path, WHO, who="identity")
    lake.add(1, rows(0), columns=None, compression="snappy", file_bytes="1m")
    assert parts_of(lake) == [((0, "u0"), [0, 2]), ((0, "u1"), [1, 3])]
    assert {path.name[:4] for path in lake.data.iterdir()} == {"0123", "ids-"}
    codecs = {
        pq.read_metadata(f.file_path).row_group(0).column(0).compression for f in lake.files()
    }
    assert codecs == {"SNAPPY"}


def test_what_cannot_be_partitioned_is_refused_by_name(tmp_path, monkeypatch):
    lake = IcebergLake(tmp_path, WHO, who="identity", id="bucket[4]")
    with pytest.raises(TableError, match="no writePartitionBy"):
        lake.add(1, rows(0), partition_by="who")
    with pytest.raises(TableError, match=r"who.*long in the rows.*string, as in the table"):
        lake.batch(1, pa.table({"id": [1], "who": [1]}))
    with pytest.raises(TableError, match="Write without writeCopy=never"):
        lake.sink.add(in_place(tmp_path / "a.parquet", rows(0)))
    monkeypatch.setitem(sys.modules, "pyiceberg_core", None)
    with pytest.raises(TableError, match="the package pyiceberg-core on all machines"):
        lake.batch(1, rows(0))


def test_a_table_of_version_3_is_refused_before_anything_is_written(tmp_path):
    lake = IcebergLake(tmp_path, WHO)
    # As another engine upgrades it.
    path = Path(lake.table.metadata_location.removeprefix("file://"))
    newer = {**json.loads(path.read_text()), "format-version": 3, "next-row-id": 0}
    path.write_text(json.dumps(newer))
    with pytest.raises(TableError, match="found format-version 3; expected format-version 2"):
        IcebergSink(lake.table).columns()

"""Data files: every row once, bounds that hold, bounded memory, nothing half written."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import tempfile
import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalDraft
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.direct_write import file_writer as writer_module
from pyspark_sluice.reader.direct_write.file_writer import DataFileWriter
from pyspark_sluice.reader.direct_write.partitioning import Partitioning
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.direct_write.statistics import column_at
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

NAME = FileName(CheckpointIdentity(CheckpointRef(7, 2), "0123456789abcdef", "b" * 16), 3, "a" * 12)
PLAIN = pa.schema([("id", pa.int64()), ("text", pa.string())])


def writer(folder, schema=PLAIN, transform=None, **options):
    chosen = WriteOptions.model_validate({f"write_{k}": v for k, v in options.items()})
    return DataFileWriter(Place(str(folder), {}), NAME, schema, chosen, transform)


def rows(schema, *columns):
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def landed(folder, schema, *columns, **options):
    made = writer(folder, schema, **options)
    made.write(rows(schema, *columns))
    return made.finish()


def test_small_batches_are_put_together_and_large_ones_are_not_copied(monkeypatch):
    small, large = rows(PLAIN, [1], ["a"]), rows(PLAIN, [2], ["b" * 100])
    monkeypatch.setattr(writer_module, "_TOGETHER", 100)
    partition = writer_module._Partition(())
    for batch in (small, small, large, small, small):
        partition.add(batch, batch.nbytes)
    chunks = partition.take(PLAIN).to_batches()
    assert [chunk.num_rows for chunk in chunks] == [2, 1, 2]
    assert (
        chunks[1].column("text").buffers()[2].address == large.column("text").buffers()[2].address
    )


@pytest.mark.parametrize("name", ["a", "a.b", ".a", "[0]", "`"])
def test_a_field_of_a_struct_is_found_whatever_its_name_is(name):
    batch = pa.RecordBatch.from_pylist([{name: {name: {name: 7}}}])
    assert column_at(batch, (name,)).equals(batch.column(0))
    assert column_at(batch, (name, name, name)).to_pylist() == [7]


def ids(files):
    return sorted(i for file in files for i in pq.read_table(file.path)["id"].to_pylist())


def test_the_name_of_a_file_says_whose_it_is():
    assert FileName.parse(f"s3://b/day=1/{NAME}") == NAME
    assert FileName.parse("/table/part-00000.parquet") is None


def test_rows_are_in_files_of_about_the_size_that_is_asked_for(tmp_path):
    made = writer(tmp_path, file_bytes=1024 * 1024, compression="none")
    for start in range(0, 400_000, 20_000):
        made.write(rows(PLAIN, range(start, start + 20_000), [os.urandom(5).hex()] * 20_000))
    files = made.finish()
    assert ids(files) == list(range(400_000))
    assert len(files) > 2
    assert all(file.bytes == Path(file.path).stat().st_size for file in files)
    assert max(file.bytes for file in files) < 3 * 1024 * 1024
    assert sum(file.rows for file in files) == 400_000


def test_without_rows_there_is_no_file(tmp_path):
    assert writer(tmp_path).finish() == []
    assert list(tmp_path.iterdir()) == []


def test_partitions_are_directories_as_in_hive_and_values_as_in_delta(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("who", pa.string())])
    days = [dt.date(2024, 1, 2), None, dt.date(2024, 1, 2), dt.date(2024, 1, 2)]
    files = landed(
        tmp_path, schema, range(4), days, ["a/b", "x", "", "a/b"], partition_by="day,who"
    )
    folders = [str(Path(file.path).parent.relative_to(tmp_path)) for file in files]
    partitions = [tuple(file.partition.values()) for file in files]
    found = zip(folders, [ids([file]) for file in files], strict=True)
    assert dict(zip(partitions, found, strict=True)) == {
        ("2024-01-02", "a/b"): ("day=2024-01-02/who=a%2Fb", [0, 3]),
        (None, "x"): ("day=__HIVE_DEFAULT_PARTITION__/who=x", [1]),
        ("2024-01-02", None): ("day=2024-01-02/who=__HIVE_DEFAULT_PARTITION__", [2]),
    }


# With null, each column below has sixteen values: of 17 columns there are 2^68 combinations.
@pytest.mark.parametrize("columns", [1, 16, 17, 40])
def test_no_two_combinations_of_values_share_a_partition(columns):
    names = [f"c{index}" for index in range(columns)]
    found = [(value,) * columns for value in range(15)]
    # Each differs in one column from the first row.
    found += [(0,) * index + (1,) + (0,) * (columns - index - 1) for index in range(columns)]
    found += found[:3]
    values = [pa.array(column, pa.int8()) for column in zip(*found, strict=True)]
    batch = pa.record_batch([pa.array(range(len(found))), *values], ["id", *names])
    expected: dict[tuple[str, ...], list[int]] = {}
    # The values of each column are 0, 1, 2 ... in the order in which they come.
    for row in sorted(range(len(found)), key=found.__getitem__):
        expected.setdefault(tuple(map(str, found[row])), []).append(row)
    parts = Partitioning(batch.schema, names).split(batch)
    assert [(key, part["id"].to_pylist()) for key, part in parts] == list(expected.items())


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("America/New_York", ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.500000Z"]),
        (None, ["2024-01-02 03:04:05", "2024-01-02 03:04:05.500000"]),
    ],
)
def test_an_instant_has_its_zone_and_a_local_time_has_none(zone, expected):
    whole = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a local time
    at = pa.array([whole, whole.replace(microsecond=500_000)], pa.timestamp("us"))
    if zone is not None:
        at = at.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    parts = Partitioning((batch := pa.record_batch([[1, 2], at], ["id", "at"])).schema, ["at"])
    assert [values for values, _ in parts.split(batch)] == [(text,) for text in expected]


def test_many_partitions_take_the_memory_and_the_open_files_of_a_few(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_BUFFERED", 10_000)
    made = writer(tmp_path, partition_by="text")
    most = 0
    for start in range(0, 6_000, 300):
        texts = [f"p{i % 60}" for i in range(start, start + 300)]
        made.write(rows(PLAIN, range(start, start + 300), texts))
        most = max(most, len([n for n in os.listdir("/proc/self/fd") if _is_below(n, tmp_path)]))
    files = made.finish()
    assert ids(files) == list(range(6_000))
    assert len(files) == 60
    assert 0 < most <= 8


def _is_below(descriptor, folder):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder))
    except OSError:
        return False


def test_rows_are_sorted_within_each_file(tmp_path):
    files = landed(tmp_path, PLAIN, [3, 1, 2], ["a", "b", "a"], sort_by="text,id")
    assert [pq.read_table(file.path)["id"].to_pylist() for file in files] == [[2, 3, 1]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"partition_by": "nowhere"}, "writePartitionBy.*nowhere"),
        ({"partition_by": "id,text"}, "at least one other column"),
        ({"sort_by": "nowhere"}, "writeSortBy.*no such columns"),
    ],
)
def test_columns_that_are_not_there_are_refused_by_name(tmp_path, options, expected):
    with pytest.raises(OptionError, match=expected):
        writer(tmp_path, **options)


def test_a_function_changes_rows_on_their_way_and_what_it_returns_is_checked(tmp_path):
    made = writer(tmp_path, transform=lambda batch: batch.slice(0, 1))
    made.write(rows(PLAIN, [1, 2], ["a", "b"]))
    assert ids(made.finish()) == [1]
    made = writer(tmp_path, transform=lambda batch: batch.select(["id"]))
    with pytest.raises(OptionError, match="writeTransformSchema"):
        made.write(rows(PLAIN, [1, 2], ["a", "b"]))


def test_what_is_discarded_leaves_no_file(tmp_path):
    made = writer(tmp_path, file_bytes=1024 * 1024, compression="none", partition_by="text")
    for start in range(4):
        made.write(rows(PLAIN, range(200_000), [f"{start}"] * 200_000))
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    made.discard()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_of_partitions_become_durable_at_the_same_time_or_not_at_all(tmp_path, monkeypatch):
    meeting, publish = threading.Barrier(4), LocalDraft.publish

    def together(draft):
        meeting.wait(PATIENCE)
        return publish(draft)

    monkeypatch.setattr(LocalDraft, "publish", together)
    made = writer(tmp_path, partition_by="text")
    made.write(rows(PLAIN, range(8), [f"p{n}" for n in range(8)]))
    files = made.finish()
    assert [file.partition["text"] for file in files] == [f"p{n}" for n in range(8)]

    def fails(draft):
        if "text=p5" in str(draft._target):
            raise OSError("no answer")
        return publish(draft)

    monkeypatch.setattr(LocalDraft, "publish", fails)
    made = writer(tmp_path / "second", partition_by="text")
    made.write(rows(PLAIN, range(8), [f"p{n}" for n in range(8)]))
    with pytest.raises(OSError, match="no answer"):
        made.finish()
    made.discard()
    assert [path for path in (tmp_path / "second").rglob("*") if path.is_file()] == []


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize("where", ["directory", "upload", "rows that wait"])
def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path, request, monkeypatch, where):
    class Full(Place):
        def begin(self, name):
            (tmp_path / f".{name}.partial").symlink_to(FULL)
            return super().begin(name)

    place: Place = Full(str(tmp_path), {})
    if where != "directory":
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda prefix: FULL.open("wb"))
        place = Place(str(tmp_path), {})
    if where == "rows that wait":
        monkeypatch.setattr(writer_module, "_MOST_OPEN", 0)
    if where == "upload":
        options = request.getfixturevalue("server").options
        place = Place(f"s3://{request.getfixturevalue('bucket')}/table", options)
    monkeypatch.setattr(writer_module, "_BUFFERED", 1024 * 1024)
    made = DataFileWriter(place, NAME, PLAIN, WriteOptions(), None)
    batch = rows(PLAIN, range(900), [os.urandom(5_000).hex() for _ in range(900)])
    with pytest.raises(OSError, match="No space left"):
        made.write(batch)
    made.discard()
    assert list(place.files()) == []


FLOATS = st.floats(allow_nan=True, allow_infinity=True)
FIRST, LAST = (dt.datetime.fromisoformat(day) for day in ("0001-01-02", "9999-12-30"))
TIMES = st.datetimes(min_value=FIRST, max_value=LAST)


@given(
    texts=st.lists(st.none() | st.text(max_size=40), min_size=1, max_size=8),
    floats=st.lists(st.none() | FLOATS, min_size=1, max_size=8),
    times=st.lists(st.none() | TIMES, min_size=1, max_size=8),
    numbers=st.lists(st.none() | st.integers(-(10**20), 10**20), min_size=1, max_size=8),
)
def test_every_value_lies_between_the_bounds_that_are_written(
    tmp_path_factory, texts, floats, times, numbers
):
    schema = arrow_schema("t string, o struct<f: double>, at timestamp, d decimal(30, 3)")
    count = max(map(len, (texts, floats, times, numbers)))
    texts, floats, times, numbers = ((c * count)[:count] for c in (texts, floats, times, numbers))
    decimals = [None if n is None else Decimal(n) / 1000 for n in numbers]
    columns = texts, [{"f": f} for f in floats], times, decimals
    (file,) = landed(tmp_path_factory.mktemp("x"), schema, *columns)
    found = json.loads(file.statistics, parse_constant=pytest.fail)
    assert found["numRecords"] == count
    assert found["nullCount"] == {
        "t": texts.count(None),
        "o": {"f": floats.count(None)},
        "at": times.count(None),
        "d": numbers.count(None),
    }
    low, high = found["minValues"], found["maxValues"]
    if "t" in low:
        assert all(
            low["t"].encode() <= t.encode() <= high["t"].encode() for t in texts if t is not None
        )
    if "o" in low:
        assert all(low["o"]["f"] <= f <= high["o"]["f"] for f in floats if f is not None)
    else:
        assert any(f is None or not math.isfinite(f) for f in floats)
    if "at" in low:
        bounds = [dt.datetime.fromisoformat(b["at"].removesuffix("Z")) for b in (low, high)]
        assert all(bounds[0] <= t <= bounds[1] for t in times if t is not None)
    if "d" in low:
        assert all(low["d"] <= float(d) <= high["d"] for d in decimals if d is not None)


NAN = math.nan
NESTED = arrow_schema(
    "id bigint, f double, g float, o struct<x: double, y: bigint>, l array<double>,"
    "m map<string, array<float>>"
)


def bounded(path):
    """The columns for which the footer of a file has bounds, in some row group."""
    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(footer.num_columns)]
    return {column.path_in_schema for column in columns if column.is_stats_set}


def test_columns_with_nan_have_no_bounds_in_the_footer_at_any_depth(tmp_path):
    floats = {"x": NAN, "y": 1}
    values = [1, 2], [NAN, 1.5], [1.0, 2.0], [floats, None], [[1.0, NAN], []]
    (file,) = landed(tmp_path, NESTED, *values, [[("k", [NAN])], None])
    assert bounded(file.path) == {"id", "g", "o.y", "m.key_value.key"}
    found = json.loads(file.statistics)
    assert set(found["maxValues"]) == {"id", "g", "o"}
    assert found["nullCount"] == {"id": 0, "f": 0, "g": 0, "o": {"x": 1, "y": 1}}


def test_nan_after_rows_with_bounds_begins_another_file(tmp_path):
    made = writer(tmp_path, NESTED, file_bytes=1024 * 1024)
    rest = {"x": 1.0, "y": 1}, [1.0], [("k", [1.0])]
    for values in ([1.0], [None, NAN], [3.0]):
        count = len(values)
        more = ([column] * count for column in rest)
        batch = rows(NESTED, range(count), values, [1.0] * count, *more)
        made.write(batch)
        made._flush(made._partitions[()])
    files = made.finish()
    assert [file.rows for file in files] == [1, 3]
    assert ["f" in bounded(file.path) for file in files] == [True, False]
    assert json.loads(files[1].statistics)["nullCount"]["f"] == 1
    hidden = duckdb.sql(f"select count(*) from '{tmp_path}/*.parquet' where f >= 2").fetchall()
    assert hidden == [(2,)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), 2_932_897),
        (pa.date32(), -719_200),
        (pa.timestamp("us"), 253_402_300_800_000_000),
        (pa.timestamp("us", "UTC"), 253_402_318_799_000_000),
    ],
)
def test_days_and_instants_outside_of_the_years_one_to_9999_have_no_bounds(tmp_path, kind, value):
    schema = pa.schema([("at", kind), ("id", pa.int64())])
    (file,) = landed(tmp_path, schema, [value, None], [1, 2])
    found = json.loads(file.statistics)
    assert (found["nullCount"], found["maxValues"]) == ({"at": 1, "id": 0}, {"id": 2})
    assert pq.read_table(file.path)["at"].combine_chunks() == pa.array([value, None], kind)


def test_a_file_without_statistics_is_not_published(tmp_path, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(writer_module, "statistics_of", fails)
    made = writer(tmp_path)
    made.write(rows(PLAIN, [1], ["a"]))
    with pytest.raises(ZeroDivisionError):
        made.finish()
    made.discard()
    assert list(tmp_path.rglob("*.parquet*")) == []


def test_statistics_are_those_of_the_first_thirty_two_columns_and_of_no_list(tmp_path):
    schema = pa.schema([("l", pa.list_(pa.int64())), *((f"c{i}", pa.int64()) for i in range(40))])
    (file,) = landed(tmp_path, schema, [[1]], *([i] for i in range(40)))
    found = json.loads(file.statistics)
    assert list(found["minValues"]) == [f"c{i}" for i in range(31)]


def test_columns_have_a_dictionary_where_their_values_repeat(tmp_path):
    count, inner = 20_000, pa.struct([("x", pa.list_(pa.string()))])
    kinds = {"id": pa.int64(), "kind": pa.string(), "o": inner, "sensor": pa.string()}
    columns = range(count), ["a", "b"] * (count // 2), [{"x": ["y"]}] * count
    in_turn = [f"sensor {n % 4_900}" for n in range(count)]
    (file,) = landed(tmp_path, pa.schema(kinds), *columns, in_turn)
    group = pq.ParquetFile(file.path).metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(4)] == [False, True, True, True]

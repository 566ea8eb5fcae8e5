"""Partition columns, `_metadata`, filters, headers, packs: what depends on more than a record."""

import codecs
import gzip
import re
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.storage.urls import Location
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.formats.api import Splittability
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.path_columns import FileColumns, bases_of, parts_below
from pyspark_sluice.reader.files.testing import cut, read, read_rows, version, whole
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

DATA = [pa.field("a", pa.int64())]
AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def _tree(root, count=3):
    paths = []
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        for number in range(count):
            path = root / f"day={day}" / "region=a%2Fb" / f"{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'{{"a":{number}}}\n' * 2)
            paths.append(path)
    return paths


def test_metadata_has_the_fields_that_the_schema_asks_for(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,x\n2,y\n3,z\n")
    schema = arrow_schema(
        "a bigint, b string, _metadata struct<file_path: string, file_size: bigint,"
        "file_modification_time: timestamp, split_start: bigint, split_length: bigint,"
        "row_index: bigint>"
    )
    table, _ = read(cut(path, [5]), schema, file_format="csv")
    found = [row["_metadata"] for row in table.to_pylist()]
    modified = datetime.fromtimestamp(0, UTC).timestamp() + version(path).modified / 1e6
    assert {row["file_path"] for row in found} == {f"file:{path}"}
    assert {row["file_size"] for row in found} == {12}
    assert all(abs(row["file_modification_time"].timestamp() - modified) < 1e-5 for row in found)
    places = [(row["split_start"], row["split_length"], row["row_index"]) for row in found]
    assert places == [(0, 5, 0), (0, 5, 1), (5, 7, 2)]
    numbered = make_format(ReaderOptions(file_format="csv"), schema)
    assert numbered.splittability(version(path)) is Splittability.WHOLE


ODD_NAMES = [
    "x y", "per%cent", "per%20", "plus+eq=am&at@", "hash#", "q?", "colon:", "semi;comma,",
    "br[1]{2}(3)", "quote'", 'dq"', "back\\slash", "tilde~!$^|", "lt<gt>", "star*", "tab\t", "nl\n",
    "back`tick", "del\x7f", "\x01", "ümlaut", "日本", "e\u0301", "nbsp\u00a0", "c1\u0085",
    "bom\ufeff",
    "emoji😀", "ogham\u1680", "em\u2003", "zero\u200b", "line\u2028", "nnbsp\u202f", "mm\u205f",
    "ideo\u3000", "soft\u00ad", "private\ue000", "joiner\u2060", "tag\U000e0001",
]  # fmt: skip
PLACE = arrow_schema("_metadata struct<file_path: string, file_name: string>")


def test_paths_and_names_of_files_are_quoted_as_spark_quotes_them(spark_answers, tmp_path):
    folder = tmp_path / "a b%"
    folder.mkdir()
    for name in ODD_NAMES:
        (folder / f"{name}.bin").write_bytes(b"x")

    def by_spark(spark):
        frame = spark.read.format("binaryFile").load(str(folder))
        rows = frame.select("_metadata.file_path", "_metadata.file_name").collect()
        return sorted(_below(tmp_path, *row) for row in rows)

    expected = spark_answers(by_spark, ODD_NAMES)
    found = read_rows(sorted(folder.iterdir()), PLACE, file_format="binaryFile")
    assert sorted(_below(tmp_path, *row["_metadata"].values()) for row in found) == expected
    assert len(expected) == len(ODD_NAMES)


def _below(root, path, name):
    return [path.removeprefix(f"file://{root}").removeprefix(f"file:{root}"), name]


@pytest.mark.parametrize("scheme", ["s3a", "abfss"])
def test_paths_of_objects_are_quoted_as_hadoop_quotes_them(spark_answers, scheme):
    urls = [f"{scheme}://bucket@host.example/a b%/{name}.json" for name in ODD_NAMES]

    def by_hadoop(spark):
        path = spark._jvm.org.apache.hadoop.fs.Path
        return [path(url).toUri().toString() for url in urls]

    for loaded, theirs in zip(urls, spark_answers(by_hadoop, urls), strict=True):
        options = SluiceOptions(path=f"{scheme}://bucket@host.example/a b%", file_format="json")
        columns = FileColumns(PLACE, options)
        file = FileVersion(Location.of(loaded).url, 1, 0)
        rows = pa.RecordBatch.from_pylist([{}], pa.schema([]))
        (row,) = columns.add(rows, [FileSplit(file, 0, 1)], [1], 0).to_pylist()
        assert row["_metadata"] == {"file_path": theirs, "file_name": theirs.rpartition("/")[2]}


def test_a_metadata_field_that_is_not_known_is_refused_with_the_known_ones(tmp_path):
    (tmp_path / "a.csv").write_text("1,x\n")
    schema = AB.append(pa.field("_metadata", pa.struct([("owner", pa.string())])))
    with pytest.raises(OptionError, match=r"owner.*file_modification_time"):
        read_rows([tmp_path / "a.csv"], schema, file_format="csv")


def test_files_that_cannot_be_entered_in_the_middle_are_declared_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,x\n")
    gzipped = version(path)._replace(path=str(path) + ".gz")

    def kind(file=None, **options):
        made = make_format(ReaderOptions(file_format="csv", **options), AB)
        return made.splittability(file or version(path))

    assert kind() is Splittability.RECORDS
    assert kind(encoding="latin-1") is Splittability.RECORDS
    assert kind(gzipped) is Splittability.WHOLE
    assert kind(multi_line=True) is Splittability.WHOLE
    assert kind(encoding="utf-16") is Splittability.WHOLE
    assert kind(line_sep="||") is Splittability.WHOLE


@pytest.mark.parametrize("name", ["json", "csv"])
def test_without_any_column_the_rows_still_count(tmp_path, name):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text('{"a":1}\n{"a":2}\n')
    _, reports = read([whole(p) for p in paths], pa.schema([]), file_format=name, mode="PERMISSIVE")
    assert [report.rows for report in reports] == [2, 2]


@pytest.mark.parametrize(
    ("loaded", "directory", "parts"),
    [
        ("/in", "/in/day=1/hour=2", ["day=1", "hour=2"]),
        ("/x=1/in", "/x=1/in", []),
        ("/x=1/in,/y=2", "/y=2/day=3", ["day=3"]),
        ("/in/day=1,/in", "/in/day=1/hour=2", ["day=1", "hour=2"]),
        ("/in/a", "/in/ab/day=1", ["in", "ab", "day=1"]),
        ("/in/day=*/x", "/in/day=4/x", ["day=4", "x"]),
        (r"/in\,side", "/in,side/day=1", ["day=1"]),
        ("file:///in%20side", "/in side/day=1", ["day=1"]),
        ("s3a://x=1/in", "s3://x=1/in/day=1", ["day=1"]),
    ],
)
def test_parts_of_a_path_count_below_the_outermost_of_the_loaded_paths(loaded, directory, parts):
    bases = bases_of(ReaderOptions.model_validate({"basePath": loaded}))
    assert [part for part in parts_below(bases, directory) if part] == parts


def test_with_recursive_lookup_no_column_is_taken_from_the_path(tmp_path):
    paths = _tree(tmp_path)[:1]
    paths[0].write_text('{"a":1,"day":"2020-02-02"}\n')
    schema = pa.schema([*DATA, ("day", pa.date32())])
    (row,) = read_rows(paths, schema, base_path=str(tmp_path), recursive_file_lookup=True)
    assert row["day"] == date(2020, 2, 2)
    (row,) = read_rows(paths, schema, base_path=str(tmp_path))
    assert row["day"] == date(2026, 1, 1)


@pytest.mark.parametrize("header", ["a", "a,b,c"])
def test_a_header_of_another_length_is_refused_with_both_named(tmp_path, header):
    paths = [tmp_path / f"{i}.csv" for i in range(3)]
    for path in paths:
        path.write_text("a,b\n1,x\n")
    paths[-1].write_text(header + "\n1,x\n")
    expected = f"{re.escape(str(paths[-1]))}, byte 0; found .*; expected a, b"
    with pytest.raises(SchemaMismatchError, match=expected):
        read_rows(paths, AB, file_format="csv", header=True)


BODIES = {"csv": b"1,x\n2,y\n", "json": b'{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n', "text": b"x\ny\n"}
VALUE = pa.schema([("value", pa.string())])


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("name", BODIES)
def test_byte_order_marks_of_packed_files_are_left_out(tmp_path, name, mode):
    schema = VALUE if name == "text" else AB
    paths = [tmp_path / f"{number}.{name}" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(codecs.BOM_UTF8 * (number % 2) + BODIES[name])
    paths.append(tmp_path / f"mark.{name}")
    paths[-1].write_bytes(codecs.BOM_UTF8)
    options = {"file_format": name, "mode": mode}
    alone = [row for path in paths for row in read_rows([path], schema, **options)]
    assert read_rows(paths, schema, **options) == alone
    assert alone == alone[:2] * 4


def test_a_filter_on_a_partition_column_takes_no_row_of_a_packed_run_with_headers(tmp_path):
    paths = [tmp_path / f"day={day}" / "a.csv" for day in range(3)]
    for day, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"a,b\n{day},x\n{day},y\n")
    schema = AB.append(pa.field("day", pa.int64()))
    splits = [whole(path) for path in paths]
    table, reports = read(splits, schema, file_format="csv", header=True, filter="day < 2")
    assert table.to_pylist() == [{"a": d, "b": b, "day": d} for d in range(2) for b in "xy"]
    assert [report.rows for report in reports] == [2, 2, 0]


def test_the_first_of_many_headers_may_follow_comments(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_bytes(b"# made by hand\n" * number + b"a,b\n1,x\n")
    paths = sorted(tmp_path.iterdir())
    rows = read_rows(paths, AB, file_format="csv", header=True, comment="#")
    assert rows == [{"a": 1, "b": "x"}] * 3


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.txt", codecs.BOM_UTF8 + b"x\ny\n", ["\ufeffx\ny\n"]),
        ("without bytes.txt", b"", []),
        ("without content.txt.gz", gzip.compress(b"", mtime=0), [""]),
    ],
)
def test_a_whole_file_is_one_text_with_its_byte_order_mark(tmp_path, name, content, texts):
    path = tmp_path / name
    path.write_bytes(content)
    rows = read_rows([path], VALUE, file_format="text", wholetext=True)
    assert [row["value"] for row in rows] == texts

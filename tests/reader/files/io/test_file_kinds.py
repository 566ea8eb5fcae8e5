"""A file of another kind is named in the error, with the way to read it."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.schemas import schema_of_rows
from pyspark_sluice.enumerator.files.discovery.tree_discovery import all_files
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.api import ReaderContext, SplitFinished
from pyspark_sluice.reader.files.testing import cut, read
from pyspark_sluice.tests.reader.files.formats.packers import tarred, zipped
from pyspark_sluice.tests.reader.files.formats.table_files import write_table

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
TABLE = pa.table({"id": range(100), "text": ["x"] * 100}, SCHEMA)
LINE = b'{"id": 1, "text": "a"}\n'
MISFIT = b"order;customer\n"

WRITERS = {
    "fileFormat=parquet": lambda path: write_table("parquet", path, TABLE),
    "fileFormat=orc": lambda path: write_table("orc", path, TABLE),
    "fileFormat=arrow": lambda path: write_table("arrow", path, TABLE),
    "compression=gzip": lambda path: path.write_bytes(gzip.compress(LINE)),
    "compression=bzip2": lambda path: path.write_bytes(bz2.compress(LINE)),
    "compression=xz": lambda path: path.write_bytes(lzma.compress(LINE)),
    "Unpack it": lambda path: path.write_bytes(zipped({"a.json": LINE})),
}


def rows_of(path, schema=SCHEMA, **options):
    parsed = parse_options({"path": str(path), **options}, streaming=False)
    source = FileSource(parsed, schema)
    splits = source.cutter().cut_all(list(all_files(make_listing(parsed))), 2**30)
    return list(source.create_reader(ReaderContext(0, 0, 0)).read(splits))


def schema_of(path, **options):
    return schema_of_rows(parse_options({"path": str(path), **options}, streaming=False))[0]


def rows_and_dropped(path, **options):
    items = rows_of(path, fileFormat="json", mode="DROPMALFORMED", **options)
    return [(i.rows, i.dropped_records) for i in items if isinstance(i, SplitFinished)]


@pytest.mark.parametrize("way", WRITERS)
@pytest.mark.parametrize("name", ["json", "csv", "xml"])
def test_a_file_of_another_kind_is_named_with_the_way_to_read_it(tmp_path, name, way):
    path = tmp_path / "data"
    WRITERS[way](path)
    with pytest.raises(MalformedDataError) as reading:
        rows_of(path, fileFormat=name)
    assert f"the file is not {name}: {path}; found a" in str(reading.value)
    assert way in str(reading.value)
    report, *_ = rows_of(path, fileFormat=name, ignoreCorruptFiles="true")
    assert way in report.skipped
    with pytest.raises(MalformedDataError) as inferring:
        schema_of(path, fileFormat=name)
    assert str(inferring.value) == str(reading.value)


ZIP, TAR = zipped({"a.csv": LINE}), tarred({"a.csv": LINE})
PGP = b"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n=x\n-----END PGP MESSAGE-----\n"
OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + LINE
# Name of the file, its bytes, what the error says of it; a format and options that read the file.
NOT_TEXT: list[tuple[str, bytes, str, str, dict[str, str]]] = [
    ("access_log", gzip.compress(LINE), "compressed with gzip", "text", {"wholetext": "true"}),
    ("twice.gz", gzip.compress(gzip.compress(LINE)), "with gzip.*Unpack it", "csv", {}),
    ("zip.gz", gzip.compress(ZIP), "zip archive", "json", {"mode": "PERMISSIVE"}),
    ("a.xlsx", ZIP, "zip archive", "csv", {"header": "true", "enforceSchema": "false"}),
    ("a.jar", ZIP, "zip archive", "csv", {"rescuedDataColumn": "r"}),
    ("tar", TAR, "tar archive", "csv", {"multiLine": "true"}),
    ("tar", TAR, "tar archive", "json", {"mode": "DROPMALFORMED"}),
    ("tar.gz", gzip.compress(TAR), "tar archive", "text", {"encoding": "iso-8859-1"}),
    ("tar.bz2", bz2.compress(TAR), "tar archive", "json", {"multiLine": "true"}),
    ("7z", b"7z\xbc\xaf\x27\x1c\0\4" + LINE, "7z archive", "csv", {"mode": "DROPMALFORMED"}),
    ("a.xls", OFFICE, "Office", "csv", {"encoding": "iso-8859-1"}),
    ("a.csv", PGP, "PGP", "csv", {"mode": "PERMISSIVE"}),
    ("a.txt", PGP, "PGP", "text", {}),
    ("a.json", PGP, "PGP", "json", {"rescuedDataColumn": "r"}),
]
ONE = pa.schema([("value", pa.string())])


@pytest.mark.parametrize(
    ("file", "data", "kind", "name", "more"),
    NOT_TEXT,
    ids=[f"{case[0]}-{case[3]}-{case[4]}" for case in NOT_TEXT],
)
def test_no_row_comes_from_a_file_of_another_kind_in_any_mode(
    tmp_path, file, data, kind, name, more
):
    schema = ONE
    if "rescuedDataColumn" in more:
        schema = schema.append(pa.field("r", pa.string()))
    # One file alone, and next to one that a parse would take together with it.
    for folder in ("alone", "packed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_bytes(data)
    (tmp_path / "packed" / "good").write_bytes(b'{"value":"v"}\n' if name == "json" else b"value\n")
    for folder in ("alone", "packed"):
        with pytest.raises(MalformedDataError, match=rf"is not {name}: .*{file}.*{kind}"):
            rows_of(tmp_path / folder, schema, fileFormat=name, **more)


@pytest.mark.parametrize("name", ["tar.bz2", "tar"])
def test_a_large_file_that_is_cut_is_recognised_by_its_first_split(tmp_path, name):
    path = tmp_path / name
    data = tarred({"a.csv": b"".join(b"%d\n" % number for number in range(100_000))})
    path.write_bytes(bz2.compress(data) if name.endswith("bz2") else data)
    first, *_ = cut(path, [path.stat().st_size // 2])
    with pytest.raises(MalformedDataError, match=r"the file is not text: .*a tar archive"):
        read([first], ONE, file_format="text")


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow"])
def test_formats_with_metadata_name_it_too_and_no_codec_that_they_do_not_take(tmp_path, name):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(LINE * 100))
    with pytest.raises(MalformedDataError, match=r"compressed with gzip.*Unpack it"):
        rows_of(path, fileFormat=name)


@pytest.mark.parametrize(
    ("name", "more"), [("csv", {"header": "true"}), ("json", {"badRecordsPath": "/bad"})]
)
@pytest.mark.parametrize(
    ("page", "tag"),
    [("<!DOCTYPE html>\n<p>No", "<!DOCTYPE html'"), ("\ufeff \n<HTML lang='en'>", "<HTML'")],
)
def test_an_html_page_becomes_neither_rows_nor_the_schema(tmp_path, name, page, tag, more):
    path = tmp_path / "data"
    path.write_text(page)
    message = f"the file is not {name}.*an HTML page.*{tag}.*Remove"
    with pytest.raises(MalformedDataError, match=message):
        rows_of(path, fileFormat=name, **more)
    with pytest.raises(MalformedDataError, match=message):
        schema_of(path, fileFormat=name, header=str(name == "csv"))


def test_a_file_of_which_no_record_fits_is_refused_where_records_are_dropped(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(MISFIT * 100)
    with pytest.raises(MalformedDataError, match=r"no record that fits .* 100 malformed"):
        rows_and_dropped(path)
    assert rows_and_dropped(path, acceptUnrelatedFiles="true") == [(0, 100)]
    path.write_bytes(LINE + path.read_bytes())
    assert rows_and_dropped(path) == [(1, 100)]
    # A later part of a file that fits may have malformed records only.
    parts = cut(path, [len(LINE)])
    assert read(parts, ONE, file_format="json", mode="DROPMALFORMED")[0].num_rows == 1


def test_a_share_of_records_that_may_be_dropped_is_kept(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(LINE * 300 + MISFIT * 100)
    with pytest.raises(MalformedDataError, match=r"100 malformed records of 400.*share of 0\.24"):
        rows_and_dropped(path, maxBadRecordShare="0.24")
    for share in ("0.25", "1"):
        assert rows_and_dropped(path, maxBadRecordShare=share) == [(300, 100)]
    path.write_bytes(LINE + MISFIT * 99)
    assert rows_and_dropped(path, maxBadRecordShare="0") == [(1, 99)]


def test_text_that_begins_like_another_kind_is_read(tmp_path):
    path = tmp_path / "data"
    for beginning in ("PAR1", "ORC", "BZh"):
        path.write_text(f"{beginning},text\n1,a\n")
        rows = rows_of(path, fileFormat="csv", header="true")[0]
        assert rows.to_pylist() == [{"id": 1, "text": "a"}]
        path.write_text(f"{beginning}\n")
        with pytest.raises(MalformedDataError, match="malformed record"):
            rows_of(path, fileFormat="json")


def test_a_damaged_file_of_the_codec_that_its_name_says_is_not_told_to_be_one(tmp_path):
    path = tmp_path / "data.json.gz"
    path.write_bytes(gzip.compress(LINE)[:-9])
    with pytest.raises(MalformedDataError) as caught:
        rows_of(path, fileFormat="json")
    assert "the file is not" not in str(caught.value)


@pytest.mark.parametrize("name", ["json", "csv", "xml"])
def test_a_file_of_another_kind_adds_no_columns_where_corrupt_files_are_ignored(tmp_path, name):
    (tmp_path / "data").write_bytes(gzip.compress(LINE))
    texts = {"json": '{"a": 1}', "csv": "a\n1\n", "xml": "<r><ROW><a>1</a></ROW></r>"}
    (tmp_path / "whole").write_text(texts[name])
    options = {"header": "true"} if name == "csv" else {}
    schema = schema_of(tmp_path, fileFormat=name, ignoreCorruptFiles="true", **options)
    assert schema.names == ["a"]


def test_an_open_quote_names_the_option_of_records_over_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('1,"a\nb"\n')
    with pytest.raises(MalformedDataError, match="set multiLine"):
        rows_of(path, pa.schema([*SCHEMA, ("c", pa.string())]), fileFormat="csv")

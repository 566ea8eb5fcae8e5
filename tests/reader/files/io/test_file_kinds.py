"""A file of another kind is named in the error, with the way to read it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.schemas import schema_without_one_given
from pyspark_sluice.enumerator.files.discovery.tree_discovery import all_files
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.api import ReaderContext, SplitFinished

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
TABLE = pa.table({"id": range(100), "text": ["x"] * 100}, SCHEMA)
LINE = b'{"id": 1, "text": "a"}\n'


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", LINE)


def write_arrow(path):
    with pa.ipc.new_file(path, SCHEMA) as writer:
        writer.write_table(TABLE)


WRITERS = {
    "fileFormat=parquet": lambda path: parquet.write_table(TABLE, path),
    "fileFormat=orc": lambda path: orc.write_table(TABLE, str(path)),
    "fileFormat=arrow": write_arrow,
    "compression=gzip": lambda path: path.write_bytes(gzip.compress(LINE)),
    "compression=bzip2": lambda path: path.write_bytes(bz2.compress(LINE)),
    "compression=xz": lambda path: path.write_bytes(lzma.compress(LINE)),
    "Unpack it": write_zip,
}


def rows_of(path, schema=SCHEMA, **options):
    parsed = parse_options({"path": str(path), **options}, streaming=False)
    source = FileSource(parsed, schema)
    [file] = all_files(make_listing(parsed))
    splits = source.cutter().cut_all([file], 2**30)
    return list(source.create_reader(ReaderContext(0, 0, 0)).read(splits))


@pytest.mark.parametrize("way", WRITERS)
@pytest.mark.parametrize("name", ["json", "csv", "xml"])
def test_a_file_of_another_kind_is_named_with_the_way_to_read_it(tmp_path, name, way):
    path = tmp_path / "data"
    WRITERS[way](path)
    with pytest.raises(MalformedDataError) as reading:
        rows_of(path, fileFormat=name)
    assert f"the file is not {name}: {path}; found a" in str(reading.value)
    assert way in str(reading.value)
    with pytest.raises(MalformedDataError) as inferring:
        schema_without_one_given(
            parse_options({"path": str(path), "fileFormat": name}, streaming=False)
        )
    assert str(inferring.value) == str(reading.value)


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow"])
def test_formats_with_metadata_name_it_too_and_no_codec_that_they_do_not_take(tmp_path, name):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(LINE * 100))
    with pytest.raises(MalformedDataError, match=r"compressed with gzip.*Unpack it"):
        rows_of(path, fileFormat=name)


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


def test_what_is_skipped_as_corrupt_says_what_it_is(tmp_path):
    path = tmp_path / "data"
    parquet.write_table(TABLE, path)
    items = rows_of(path, fileFormat="json", ignoreCorruptFiles="true")
    [report] = [item for item in items if isinstance(item, SplitFinished)]
    assert "fileFormat=parquet" in report.skipped


@pytest.mark.parametrize("name", ["json", "csv", "xml"])
def test_a_file_of_another_kind_adds_no_columns_where_corrupt_files_are_ignored(tmp_path, name):
    (tmp_path / "data").write_bytes(gzip.compress(LINE))
    options = {"path": str(tmp_path), "fileFormat": name, "ignoreCorruptFiles": "true"}
    texts = {"json": '{"a": 1}', "csv": "a\n1\n", "xml": "<r><ROW><a>1</a></ROW></r>"}
    (tmp_path / "whole").write_text(texts[name])
    parsed = parse_options(
        {**options, "header": "true"} if name == "csv" else options, streaming=False
    )
    assert schema_without_one_given(parsed).names == ["a"]

"""Text in other encodings than UTF-8: what Spark reads of it is read, and nothing is guessed."""

from __future__ import annotations

import bz2
import codecs
import gzip
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.reader.files.io.compressed import bzip2
from pyspark_sluice.reader.files.testing import cut, read, read_rows, whole

AB = pa.schema([("a", pa.string()), ("b", pa.string())])
A = pa.schema([("a", pa.string())])
VALUE = pa.schema([("value", pa.string())])
CSV_TEXT = 'ä,"b\nc"\nü,\U0001f600d\n'
JSON_TEXT = '{"a":"ä\U0001f600"}'
WIDE = {
    "big endian without a mark": ("UTF-16", "utf-16-be", b""),
    "big endian": ("UTF-16", "utf-16-be", codecs.BOM_UTF16_BE),
    "little endian": ("UTF-16", "utf-16-le", codecs.BOM_UTF16_LE),
    "named big endian": ("UTF-16BE", "utf-16-be", b""),
    "named little endian": ("UTF-16LE", "utf-16-le", b""),
    "32 bits without a mark": ("UTF-32", "utf-32-be", b""),
    "32 bits, big endian": ("UTF-32", "utf-32-be", codecs.BOM_UTF32_BE),
    "32 bits, little endian": ("UTF-32", "utf-32-le", codecs.BOM_UTF32_LE),
}


@pytest.mark.parametrize(("name", "encoding", "mark"), WIDE.values(), ids=list(WIDE))
def test_documents_in_wide_encodings_give_the_rows_of_spark(
    spark_answers, tmp_path, name, encoding, mark
):
    for kind, text, schema in (("csv", CSV_TEXT, AB), ("json", JSON_TEXT, A)):
        path = tmp_path / f"a.{kind}"
        path.write_bytes(mark + text.encode(encoding))
        options = {"encoding": name, "multiLine": "true", "mode": "FAILFAST"}
        ddl = ", ".join(f"{column} string" for column in schema.names)
        expected = spark_answers(partial(_by_spark, path, kind, ddl, options), path, options)
        assert expected[0]["a"].startswith("ä")
        assert read_rows([path], schema, fileFormat=kind, **options) == expected


def _by_spark(path, kind, ddl, options, spark):
    rows = spark.read.schema(ddl).options(**options).format(kind).load(str(path)).collect()
    return [row.asDict() for row in rows]


@pytest.mark.parametrize(("name", "encoding", "mark"), WIDE.values(), ids=list(WIDE))
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lines_in_wide_encodings_are_cut_at_characters(tmp_path, name, encoding, mark, suffix):
    # The bytes of a line feed and of a comma are within characters, too.
    lines = [f"{chr(0x0A0A + n)},{chr(0x2C2C)}{n}" for n in range(40)]
    data = mark + "\n".join(lines).encode(encoding)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    expected = [dict(zip("ab", line.split(","), strict=True)) for line in lines]
    options: dict[str, Any] = {"encoding": name}
    assert read_rows([path], AB, file_format="csv", **options) == expected
    rows = read_rows([path], VALUE, file_format="text", **options)
    assert [row["value"] for row in rows] == lines
    data = mark + "\n".join(f'{{"a":"{n}"}}' for n in "ä中\U0001f600").encode(encoding)
    path.write_bytes(gzip.compress(data) if suffix else data)
    rows = read_rows([path], A, file_format="json", **options)
    assert [row["a"] for row in rows] == list("ä中\U0001f600")


@pytest.mark.parametrize("kind", ["csv", "json", "text"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_is_no_character_of_the_encoding_is_refused_by_name(
    spark_answers, tmp_path, kind, suffix
):
    record = b'{"a":"m\xc3\xa4x"}\n' if kind == "json" else b"m\xc3\xa4x\n"
    path = tmp_path / f"a.{kind}{suffix}"
    path.write_bytes(gzip.compress(record) if suffix else record)
    options: dict[str, Any] = {"encoding": "US-ASCII", "lineSep": "\n", "mode": "PERMISSIVE"}
    # Spark replaces the bytes, or takes the record for malformed; text has no encoding for it.
    ask = partial(_by_spark, path, kind, "a string", options)
    # The bytes of a file that gzip made are others with another zlib.
    (row,) = spark_answers(ask, record, kind, suffix, options)
    assert row["a"] == {"text": "mäx", "csv": "m\ufffd\ufffdx", "json": None}[kind]
    if kind == "text":
        del options["mode"]
    with pytest.raises(MalformedDataError, match=rf"byte {record.index(0xC3)}; .*in ascii"):
        read_rows([path], A, fileFormat=kind, **options)
    _, reports = read([whole(path)], A, fileFormat=kind, ignoreCorruptFiles=True, **options)
    (report,) = reports
    assert isinstance(report, SplitFinished)
    assert "cannot be decoded" in report.skipped


def test_where_that_is_in_a_part_of_compressed_text_is_said_with_where_the_part_begins(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(bzip2, "NEAR_START_BYTES", 0)
    path, first = tmp_path / "a.txt.bz2", bz2.compress(b"a\n" * 9)
    path.write_bytes(first + bz2.compress(b"b\nb\nm\xc3\n"))
    where = f"byte 5 of the content that starts at compressed byte {len(first)}"
    with pytest.raises(MalformedDataError, match=where):
        read(cut(path, [len(first)])[1:], A, file_format="text", encoding="ascii")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.csv", "a.csv.gz", "a.text"])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_lines_in_utf_16_are_recognised_by_their_mark(tmp_path, encoding, name, mode):
    path = tmp_path / name
    kind = name.split(".")[1]
    record = {"json": '{"id":1,"text":"a"}\n', "csv": "1,a\n", "text": "a\n"}[kind]
    data = ("\ufeff" + record * 300).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    schema = VALUE if kind == "text" else AB
    options = {"file_format": kind} if kind == "text" else {"file_format": kind, "mode": mode}
    with pytest.raises(MalformedDataError, match="Set encoding=utf-16"):
        read_rows([path], schema, **options)
    assert len(read_rows([path], schema, **options, encoding="utf-16")) == 300

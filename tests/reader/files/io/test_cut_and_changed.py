"""Files that are cut at a border of their format, or written to while they are read."""

from __future__ import annotations

import gzip
import os
import struct
import zlib

import pyarrow as pa
import pytest
from pyarrow import parquet

from pyspark_sluice.errors import FileChangedError, MalformedDataError, OptionError
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.tests.reader.files.reading import read_rows, version

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def _bgzip_block(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    raw = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(4) + b"\0\xff"
    extra = struct.pack("<HBBHH", 6, 66, 67, 2, len(raw) + 25)
    return head + extra + raw + struct.pack("<II", zlib.crc32(data), len(data))


def test_a_bgzip_file_without_its_end_block_is_cut(tmp_path):
    path = tmp_path / "a.csv.gz"
    blocks = [_bgzip_block(b"%d,x\n" % number * 100) for number in range(9)]
    path.write_bytes(b"".join(blocks) + END)
    assert len(read_rows([path], SCHEMA, file_format="csv")) == 900
    path.write_bytes(b"".join(blocks[:5]))
    with pytest.raises(MalformedDataError, match="ends a bgzip file is missing"):
        read_rows([path], SCHEMA, file_format="csv")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.csv", "a.csv.gz", "a.text"])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_lines_in_utf_16_are_recognised_by_their_mark(tmp_path, encoding, name, mode):
    path = tmp_path / name
    kind = name.split(".")[1]
    record = {"json": '{"id":1,"text":"a"}\n', "csv": "1,a\n", "text": "a\n"}[kind]
    data = ("\ufeff" + record * 300).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    schema = pa.schema([("value", pa.string())]) if kind == "text" else SCHEMA
    options = {"file_format": kind} if kind == "text" else {"file_format": kind, "mode": mode}
    with pytest.raises(MalformedDataError, match="Set encoding=utf-16"):
        read_rows([path], schema, **options)
    assert len(read_rows([path], schema, **options, encoding="utf-16")) == 300


def test_an_open_quote_names_the_option_of_records_over_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('1,"a\nb"\n')
    with pytest.raises(MalformedDataError, match="set multiLine"):
        read_rows([path], pa.schema([*SCHEMA, ("c", pa.string())]), file_format="csv")


def test_a_file_that_is_written_to_with_its_old_times_has_changed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,old\n" * 1000)
    file = version(path)

    def overwrite() -> None:
        status = path.stat()
        with path.open("r+b") as target:
            target.write(b"2,new\n" * 1000)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert version(path) == file

    with SourceFile(file, {}).opened() as source:
        assert source.read_at(0, 6) == b"1,old\n"
        overwrite()
        with pytest.raises(FileChangedError, match="while it was read"):
            source.read_at(3000, 6)
    with SourceFile(file, {}).opened() as source:
        assert source.read_at(0, 6) == b"2,new\n"
    with pytest.raises(FileChangedError, match="while it was read"):  # noqa: SIM117
        with SourceFile(file, {}).native():
            overwrite()


def test_a_release_of_pyarrow_that_drops_rows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"id": [1], "text": ["a"]}, SCHEMA), path)
    assert read_rows([path], SCHEMA, file_format="parquet")
    monkeypatch.setattr(pa, "__version__", "25.0.0")
    with pytest.raises(OptionError, match=r"pyarrow 25\.0\.0"):
        read_rows([path], SCHEMA, file_format="parquet")

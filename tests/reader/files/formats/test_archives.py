"""Members of archives are read like files."""

import bz2
import gzip
import io
import lzma
import random
import sys
import tarfile
import tracemalloc
import zipfile
from functools import partial
from itertools import repeat

import py7zr
import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.schemas import schema_of_rows
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.api import LeftOut, ReaderContext, RemainingBudget
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.io import archives
from pyspark_sluice.reader.files.io.source_file import AsFile
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import cut, read, whole
from pyspark_sluice.tests.reader.files.formats.packers import (
    PACKERS,
    lines,
    seven_zipped,
    tarred,
    zipped,
)
from pyspark_sluice.tests.reader.files.parts import read_parts
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

ONE = pa.schema([("value", pa.string())])
ID = pa.schema([("id", pa.int64())])
TWO = {"a.json": lines(0, 5), "b.json": lines(5, 5)}


@pytest.fixture(
    params=sampled(PACKERS, (".zip", ".tar.gz", ".7z").__contains__, reason="other codecs")
)
def archive(request, tmp_path):
    """Writes an archive, and returns its path."""

    def write(contents):
        path = tmp_path / f"a{request.param}"
        path.write_bytes(PACKERS[request.param](contents))
        return path

    return write


def test_the_member_of_a_row_is_in_its_metadata(archive, tmp_path):
    names = ["z/b=1.json", "./a.json"]
    contents = {name: lines(n, 2) for n, name in enumerate(names)}
    path, plain = archive(contents), tmp_path / "plain.json"
    plain.write_bytes(lines(9, 1))
    fields = pa.struct([("file_name", pa.string()), ("member", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("_metadata", fields)])
    rows, _ = read([whole(path), whole(plain)], schema, file_format="json")
    members = [(row["id"], *row["_metadata"].values()) for row in rows.to_pylist()]
    assert members == [
        (0, path.name, names[0]),
        (1, path.name, names[0]),
        (1, path.name, names[1]),
        (2, path.name, names[1]),
        (9, "plain.json", None),
    ]


@pytest.mark.parametrize("budget", [None, PartBudget(rows=31), PartBudget(files=7)])
def test_small_members_are_parsed_together(archive, tmp_path, monkeypatch, budget):
    contents = {f"{n}.json": lines(2 * n, 2) for n in range(200)} | {"7.json": b"bad"}
    path, parses = archive(contents), []
    parse = JsonFormat.parse

    def counted(self, data, source):
        parses.append(len(data))
        return parse(self, data, source)

    monkeypatch.setattr(JsonFormat, "parse", counted)
    metadata = pa.struct([("member", pa.string()), ("row_index", pa.int64())])
    schema = pa.schema([*ID, ("_metadata", metadata)])
    options = {"file_format": "json", "mode": "DROPMALFORMED", "bad_records_path": str(tmp_path)}
    context = ReaderContext(1, 0, 0)
    if budget is None:
        parts = [read([whole(path)], schema, context, **options)]
    else:
        parts = list(read_parts([whole(path)], schema, repeat(budget, 99), **options))
        assert len(parts) == (-(-398 // 31) if budget.rows else -(-200 // 7))
    rows = [row for table, _ in parts for row in table.to_pylist()]
    ids = [i for i in range(400) if i not in (14, 15)]
    assert [row["id"] for row in rows] == ids
    assert [row["_metadata"]["member"] for row in rows] == [f"{i // 2}.json" for i in ids]
    assert [row["_metadata"]["row_index"] for row in rows] == list(range(398))
    bad = [
        r.batch["path"].to_pylist() for _, reports in parts for r in reports if type(r) is LeftOut
    ]
    assert bad == [[f"{path}!/7.json"]]
    # Under a budget, each part is read again as a later attempt would.
    assert budget or len(parses) < 3


def test_a_part_ends_when_its_bytes_are_spent(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({f"{n}.json": lines(10_000 * n, 10_000) for n in range(8)}))
    size = path.stat().st_size
    budgets = repeat(PartBudget(bytes=size // 4), 99)
    parts = list(read_parts([whole(path)], ID, budgets, file_format="json"))
    assert 4 <= len(parts) <= 6
    assert sum(table.num_rows for table, _ in parts) == 80_000


def test_the_schema_is_inferred_from_members(archive):
    path = archive({"_x": b"{}", "a.json": b'{"a":1}\n', "b.json": b'{"a":1.5,"b":"x"}\n'})
    options = {"path": str(path), "fileFormat": "json", "inferColumnTypes": "true"}
    schema, _ = schema_of_rows(parse_options(options, streaming=False))
    assert schema.names[:2] == ["a", "b"]
    assert schema.field("a").type == pa.float64()


def test_stored_members_and_each_method_of_zip_are_read(tmp_path):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = tmp_path / f"{method}.zip"
        path.write_bytes(zipped(TWO, method))
        splits = cut(path, [40, path.stat().st_size // 2])
        assert read(splits, ID, file_format="json")[0]["id"].to_pylist() == list(range(10))


def test_each_method_of_7z_is_read_and_blocks_share_members(tmp_path):
    lzma2 = {"id": lzma.FILTER_LZMA2, "preset": 0}
    methods = {
        "copy": [{"id": py7zr.FILTER_COPY}],
        "deflate": [{"id": py7zr.FILTER_DEFLATE}],
        "bzip2": [{"id": py7zr.FILTER_BZIP2}],
        "lzma": [{"id": lzma.FILTER_LZMA1, "preset": 0}],
        "bcj": [{"id": lzma.FILTER_X86}, lzma2],
        "bcj of lzma": [{"id": py7zr.FILTER_X86}, {"id": lzma.FILTER_LZMA1, "preset": 0}],
        "delta": [{"id": lzma.FILTER_DELTA, "dist": 4}, lzma2],
    }
    contents = {f"{n}.json": lines(500 * n, 500) for n in range(4)}
    for method, filters in methods.items():
        path = tmp_path / f"{method}.7z"
        path.write_bytes(seven_zipped(contents, filters))
        table, _ = read([whole(path)], ID, file_format="json")
        assert table["id"].to_pylist() == list(range(2_000)), method
        # The first member of the block is not read, and the part begins in the middle of it.
        budgets, options = repeat(PartBudget(rows=220), 99), {"archive_path_filter": "[13].json"}
        parts = read_parts([whole(path)], ID, budgets, file_format="json", **options)
        rows = [row for part, _ in parts for row in part["id"].to_pylist()]
        assert rows == [*range(500, 1_000), *range(1_500, 2_000)], method


def test_a_member_of_7z_that_swells_is_decompressed_in_steps(tmp_path):
    path, size, step = tmp_path / "a.7z", 32 * 1024 * 1024, 64 * 1024
    path.write_bytes(seven_zipped({"a.json": bytes(size)}))
    for member in archives.members(whole(path), ReaderOptions(file_format="json")):
        with member.opened() as file:
            tracemalloc.start()
            try:
                for at in range(0, size, step):
                    assert file.content.read_at(at, step) == bytes(step)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert most < size // 8


def test_7z_without_its_package_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "a.7z"
    path.write_bytes(seven_zipped({"a.json": lines(0, 5)}))
    monkeypatch.setitem(sys.modules, "py7zr", None)
    with pytest.raises(OptionError, match=r"a\.7z.*no package py7zr.*\.\[7z\]"):
        read([whole(path)], ID, file_format="json")


def test_a_codec_that_is_cut_behind_the_end_of_the_archive_loses_no_row(tmp_path):
    path = tmp_path / "a.tar.gz"
    data = PACKERS[".tar.gz"](TWO)
    path.write_bytes(data[:-8])
    assert read([whole(path)], ID, file_format="json")[0].num_rows == 10
    path.write_bytes(data[:-8] + b"\1" * 4 + data[-4:])
    with pytest.raises(MalformedDataError, match="cannot be decompressed as gzip"):
        read([whole(path)], ID, file_format="json")


class Unseekable(io.BytesIO):
    """A pipe: zipfile writes sizes behind the data, as others do."""

    def seek(self, *_):
        raise OSError


def test_sizes_behind_the_data_zip64_and_bytes_around_the_archive_are_read(tmp_path):
    out = Unseekable()
    with (
        zipfile.ZipFile(out, "w") as archive,
        archive.open("a.json", "w", force_zip64=True) as member,
    ):
        member.write(lines(0, 5))
    path = tmp_path / "a.zip"
    # A line feed behind the archive is in many that are published.
    for before, after in ((b"", b""), (b"#!/bin/sh\n", b""), (b"", b"\n")):
        path.write_bytes(before + out.getvalue() + after)
        assert read([whole(path)], ID, file_format="json")[0].num_rows == 5


def test_links_and_directories_are_left_out(tmp_path):
    path, out = tmp_path / "a.tar", io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            entry = tarfile.TarInfo("a.json")
            entry.type, entry.linkname = kind, "b.json"
            archive.addfile(entry)
    path.write_bytes(out.getvalue())
    assert read([whole(path)], ID, file_format="json")[0].num_rows == 0
    path, link = tmp_path / "a.zip", zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "b.json")
        archive.writestr("directory/", b"")
    assert read([whole(path)], ID, file_format="json")[0].num_rows == 0


def test_members_are_selected_by_their_names(archive):
    path = archive({"f/a.txt": b"1", "b.txt": b"2", "b.csv": b"3", "c.txt": b"4", "_d.txt": b"5"})
    for glob, rows in {"*.txt": "124", "b.*": "23", "{f/a,c}.txt": "14", "a.txt": ""}.items():
        table, _ = read([whole(path)], ONE, file_format="text", archive_path_filter=glob)
        assert table["value"].to_pylist() == list(rows), glob


def test_a_binary_file_is_the_archive(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"a": b"x"}))
    schema = pa.schema([("content", pa.binary())])
    rows = read([whole(path)], schema, file_format="binaryFile")[0]["content"].to_pylist()
    assert rows == [path.read_bytes()]


def test_files_and_members_count_together(archive, tmp_path):
    # A member without rows counts, too.
    path = archive({"empty.json": b"", **{f"{n}.json": lines(n, 1) for n in range(5)}})
    plain = [tmp_path / f"{n}.json" for n in range(5, 10)]
    for n, file in enumerate(plain, 5):
        file.write_bytes(lines(n, 1))
    splits = [whole(path), *map(whole, plain)]
    budgets = repeat(PartBudget(files=3), 9)
    parts = [
        table["id"].to_pylist() for table, _ in read_parts(splits, ID, budgets, file_format="json")
    ]
    assert parts == [[0, 1], [2, 3, 4], [5, 6, 7], [8, 9]]


def test_a_member_is_not_opened_before_it_is_read(tmp_path):
    path = tmp_path / "a.zip"
    data = bytearray(zipped(TWO, zipfile.ZIP_STORED))
    data[data.index(b'"id":7') + 5] ^= 1
    path.write_bytes(data)
    context = ReaderContext(1, 0, 0, budget=RemainingBudget(PartBudget(files=1)))
    assert read([whole(path)], ID, context, file_format="json")[0].num_rows == 5


@pytest.mark.parametrize("pack", [partial(zipped, method=zipfile.ZIP_STORED), tarred])
def test_a_stored_member_is_entered_in_its_middle(tmp_path, monkeypatch, pack):
    path = tmp_path / ("a.tar" if pack is tarred else "a.zip")
    path.write_bytes(pack({"a.json": lines(0, 300_000), "b.json": lines(300_000, 5)}))
    reads, size = 0, path.stat().st_size
    read_at = AsFile.read

    def counted(self, count=-1):
        nonlocal reads
        reads += count
        return read_at(self, count)

    monkeypatch.setattr(AsFile, "read", counted)
    budgets = repeat(PartBudget(rows=30_000), 20)
    options = {"file_format": "json", "batch_bytes": 65_536}
    parts = list(read_parts([whole(path)], ID, budgets, **options))
    assert [row for table, _ in parts for row in table["id"].to_pylist()] == list(range(300_005))
    # Each part is read twice, up to the end of a block that its budget cuts.
    assert reads < 4 * size


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_several_splits_share_a_stored_member_if_its_format_is_cut(tmp_path, name):
    path, content = tmp_path / "a.zip", lines(0, 1000)
    packed = gzip.compress(content) if name.endswith("gz") else content
    contents = {"x.json": lines(5000, 3), name: packed, "y.json": b"", "z.json": lines(6000, 3)}
    path.write_bytes(zipped(contents, zipfile.ZIP_STORED))
    size = path.stat().st_size
    chance = random.Random(1)
    for _ in range(6):
        splits = cut(path, chance.sample(range(1, size), 5))
        tables = [read([split], ID, file_format="json")[0] for split in splits]
        found = [row for table in tables for row in table["id"].to_pylist()]
        assert found == [5000, 5001, 5002, *range(1000), 6000, 6001, 6002]
        assert (sum(bool(table.num_rows) for table in tables) > 3) == (packed is content)
        budgets = repeat(PartBudget(rows=99), 99)
        parts = read_parts(splits, ID, budgets, file_format="json")
        assert [row for table, _ in parts for row in table["id"].to_pylist()] == found


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".tar", bytes),
        (".tar.gz", gzip.compress),
        (".tgz", gzip.compress),
        (".tbz2", bz2.compress),
        (".txz", lzma.compress),
    ],
)
def test_archives_that_are_joined_are_read_to_the_last(tmp_path, suffix, pack):
    """As `cat a.tar b.tar` writes them, packed before or after."""
    three = [tarred({f"{n}.json": lines(n, 1)}) for n in range(3)]
    for number, data in enumerate((pack(b"".join(three)), b"".join(map(pack, three)))):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(data)
        rows, _ = read([whole(path)], ID, file_format="json")
        assert rows["id"].to_pylist() == [0, 1, 2]

"""Archives that are damaged, encrypted or bombs are refused by name."""

import io
import lzma
import tarfile
import zipfile

import py7zr
import pyarrow as pa
import pytest

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.reader.files.io import archives
from pyspark_sluice.reader.files.testing import read, whole
from pyspark_sluice.tests.reader.files.formats.packers import (
    PACKERS,
    lines,
    seven_zipped,
    tarred,
    zipped,
)

pytestmark = pytest.mark.slow

ID = pa.schema([("id", pa.int64())])
TWO = {"a.json": lines(0, 5), "b.json": lines(5, 5)}


def changed(archive, mark, distance, byte):
    """The archive with another byte at a distance from the first place of the mark."""
    at = archive.index(mark) + distance
    return archive[:at] + bytes([byte]) + archive[at + 1 :]


def zip_with(local, of_directory, byte):
    """A zip archive whose first member has another byte in its header and in the directory."""
    return changed(changed(zipped(TWO), b"PK\3\4", local, byte), b"PK\1\2", of_directory, byte)


def directory_with(distance, byte):
    return changed(zipped(TWO), b"PK\1\2", distance, byte)


def seven_zipped_by(*methods, **options):
    filters = [method if isinstance(method, dict) else {"id": method} for method in methods]
    return seven_zipped({"a.json": lines(0, 5)}, filters, **options)


def with_a_password(**options):
    methods = (lzma.FILTER_LZMA2, py7zr.FILTER_CRYPTO_AES256_SHA256)
    return seven_zipped_by(*methods, password="x", **options)


def sparse():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        entry = tarfile.TarInfo("a.json")
        entry.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(entry)
    return out.getvalue()


LARGE_DICTIONARY = {"id": lzma.FILTER_LZMA1, "preset": 0, "dict_size": 1 << 29}
LONG_NAMES = {f"{n}" * 30_000: b"" for n in range(100)}
BAD_ZIP = {
    "encrypted": (lambda: zip_with(6, 8, 1), r"a\.zip!/a\.json; found it is encrypted"),
    "method": (lambda: zip_with(8, 10, 99), r"a\.zip!/a\.json.*compression method"),
    "checksum": (
        lambda: changed(zipped(TWO, zipfile.ZIP_STORED), b'"id":3', 5, ord("2")),
        r"a\.zip!/a\.json.*Bad CRC-32",
    ),
    "directory": (lambda: zipped({"a": b"x"})[:-9], "not a zip file"),
    "comment": (lambda: directory_with(32, 52), "1 members, which is not how many it says"),
    "size": (lambda: directory_with(24, 0), r"a\.zip!/a\.json; found a size of 0"),
    "name": (lambda: directory_with(46, 0), "differ"),
    "hidden": (lambda: directory_with(46, ord("_")), r"a\.zip!/_\.json.*differ"),
    "directory entry": (lambda: directory_with(51, ord("/")), r"a\.zip!/a\.jso/.*differ"),
    "no zip": (lambda: lines(0, 5), "not a zip file"),
    "empty": (lambda: b"", "not a zip file"),
    "in zip": (lambda: zipped({"b.zip": zipped({"a": b"x"})}), r"b\.zip; found a zip arch"),
}
BAD_TAR = {
    "header": (lambda: changed(tarred(TWO), b"b.json", 3, 0), r"a\.tar; found bad checksum"),
    "end mark": (lambda: tarred({"a": lines(0, 5)})[:1024], "ends without its end mark"),
    "cut": (lambda: tarred({"a": lines(0, 5)})[:530], r"a\.tar!/a; found it ends 27 bytes early"),
    "sparse": (sparse, "a sparse file"),
    "garbage behind it": (lambda: tarred(TWO) + b"x" * 512, "found behind the end of an archive: "),
    "cut behind it": (
        lambda: tarred(TWO) + tarred({"c": lines(0, 5)})[:1024],
        "ends without its end mark",
    ),
    "gzip": (lambda: tarred({"a.json.gz": b"x" * 30}), r"as gzip: .*a\.tar!/a\.json\.gz"),
}
BAD_7Z = {
    "encrypted": (with_a_password, r"a\.7z!/a\.json; found it is encrypted"),
    "encrypted names": (lambda: with_a_password(header_encryption=True), "found it is encrypted"),
    "method": (lambda: seven_zipped_by(py7zr.FILTER_ZSTD), "found another method of compression"),
    "dictionary": (lambda: seven_zipped_by(LARGE_DICTIONARY), "a dictionary of 536,870,912 bytes"),
    "directory": (
        lambda: seven_zipped(LONG_NAMES),
        r"directory of [\d,]+ bytes; at most 4,194,304",
    ),
    "checksum": (
        lambda: changed(seven_zipped_by(py7zr.FILTER_COPY), b'"id":3', 5, ord("2")),
        r"a\.7z!/a\.json; found a wrong checksum",
    ),
    "damaged directory": (
        lambda: seven_zipped_by(py7zr.FILTER_COPY)[:-1] + b"\1",
        "found a damaged directory",
    ),
    "cut": (lambda: seven_zipped({"a": b"x"})[:-1], "found a damaged directory"),
    "no 7z": (lambda: lines(0, 5), "found "),
    "empty": (lambda: b"", "found "),
}
BAD = {
    **{("a.zip", case): bad for case, bad in BAD_ZIP.items()},
    **{("a.tar", case): bad for case, bad in BAD_TAR.items()},
    **{("a.7z", case): bad for case, bad in BAD_7Z.items()},
    ("a.tgz", "no gzip"): (lambda: tarred({"a": b"x"}), "cannot be decompressed as gzip"),
}


@pytest.mark.parametrize(("name", "case"), BAD)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, name, case):
    data, problem = BAD[name, case]
    path = tmp_path / name
    path.write_bytes(data())
    with pytest.raises(MalformedDataError, match=problem):
        read([whole(path)], ID, file_format="json")
    _, reports = read([whole(path)], ID, file_format="json", ignore_corrupt_files=True)
    assert [bool(r.skipped) for r in reports if isinstance(r, SplitFinished)] == [True]


def test_bombs_are_refused_with_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_SMALL", 1_000)
    monkeypatch.setattr(archives, "MAX_RATIO", 20)
    many = {f"{n}.json": lines(0, 1) for n in range(11)}
    for suffix in (".zip", ".tar.gz", ".7z"):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(PACKERS[suffix]({"a.json": lines(0, 1) * 100_000}))
        with pytest.raises(MalformedDataError, match="expected at most 20 times as many"):
            read([whole(path)], ID, file_format="json")
    monkeypatch.setattr(archives, "MAX_MEMBERS", 10)
    monkeypatch.setattr(archives, "MAX_ENTRIES", 10)
    problems = {".zip": "11 members", ".tar": "more members", ".7z": "11 members"}
    for suffix, problem in problems.items():
        path = tmp_path / f"many{suffix}"
        path.write_bytes(PACKERS[suffix](many))
        with pytest.raises(MalformedDataError, match=f"found {problem}; expected at most 10"):
            read([whole(path)], ID, file_format="json")


def test_members_before_a_damaged_one_are_read(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(changed(zipped(TWO, zipfile.ZIP_STORED), b'"id":7', 5, ord("6")))
    rows, _ = read([whole(path)], ID, file_format="json", ignore_corrupt_files=True)
    assert rows["id"].to_pylist() == list(range(5))

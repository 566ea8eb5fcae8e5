"""Damaged, encrypted and dangerous archives are refused by name."""

from __future__ import annotations

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
from pyspark_sluice.tests.reader.files.formats.packers import (
    PACKERS,
    lines,
    seven_zipped,
    tarred,
    zipped,
)
from pyspark_sluice.tests.reader.files.reading import read, whole

pytestmark = pytest.mark.slow

ID = pa.schema([("id", pa.int64())])


def encrypted():
    data = bytearray(zipped({"a.json": lines(0, 5)}))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def of_unknown_method():
    data = bytearray(zipped({"a.json": lines(0, 5)}))
    data[8] = data[data.index(b"PK\1\2") + 10] = 99
    return bytes(data)


def with_wrong_content():
    data = bytearray(zipped({"a.json": lines(0, 5)}, zipfile.ZIP_STORED))
    data[data.index(b'"id":3') + 5] ^= 1
    return bytes(data)


def changed(position, byte):
    """The first entry of the directory with another byte."""
    data = bytearray(zipped({"a.json": lines(0, 5), "b.json": lines(5, 5)}))
    data[data.index(b"PK\1\2") + position] = byte
    return bytes(data)


def with_another_byte(position):
    data = bytearray(seven_zipped({"a.json": lines(0, 5)}, [{"id": py7zr.FILTER_COPY}]))
    data[position] ^= 1
    return bytes(data)


def with_a_password(**options):
    filters = [{"id": lzma.FILTER_LZMA2}, {"id": py7zr.FILTER_CRYPTO_AES256_SHA256}]
    return seven_zipped({"a.json": lines(0, 5)}, filters, password="x", **options)


def with_a_large_dictionary():
    filters = [{"id": lzma.FILTER_LZMA1, "preset": 0, "dict_size": 1 << 29}]
    return seven_zipped({"a.json": lines(0, 5)}, filters)


def with_long_names():
    return seven_zipped({f"{n}" * 30_000: b"" for n in range(100)})


def with_a_damaged_header():
    data = bytearray(tarred({"a.json": lines(0, 5), "b.json": lines(5, 5)}))
    data[1024 + 3] ^= 1
    return bytes(data)


def sparse():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        entry = tarfile.TarInfo("a.json")
        entry.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(entry)
    return out.getvalue()


BAD = {
    "encrypted": ("a.zip", encrypted, r"a\.zip!/a\.json; found it is encrypted"),
    "method": ("a.zip", of_unknown_method, r"a\.zip!/a\.json.*compression method"),
    "checksum": ("a.zip", with_wrong_content, r"a\.zip!/a\.json.*Bad CRC-32"),
    "directory": ("a.zip", lambda: zipped({"a": b"x"})[:-9], "not a zip file"),
    "comment": ("a.zip", lambda: changed(32, 52), "1 members, which is not how many it says"),
    "size": ("a.zip", lambda: changed(24, 0), r"a\.zip!/a\.json; found a size of 0"),
    "name": ("a.zip", lambda: changed(46, 0), "differ"),
    "hidden": ("a.zip", lambda: changed(46, ord("_")), r"a\.zip!/_\.json.*differ"),
    "directory entry": ("a.zip", lambda: changed(51, ord("/")), r"a\.zip!/a\.jso/.*differ"),
    "no zip": ("a.zip", lambda: lines(0, 5), "not a zip file"),
    "empty": ("a.zip", lambda: b"", "not a zip file"),
    "header": ("a.tar", with_a_damaged_header, "a.tar; found bad checksum"),
    "end mark": ("a.tar", lambda: tarred({"a": lines(0, 5)})[:1024], "ends without its end mark"),
    "cut": (
        "a.tar",
        lambda: tarred({"a": lines(0, 5)})[:530],
        "a.tar!/a; found it ends 27 bytes early",
    ),
    "sparse": ("a.tar", sparse, "a sparse file"),
    "7z encrypted": ("a.7z", with_a_password, r"a\.7z!/a\.json; found it is encrypted"),
    "7z encrypted names": (
        "a.7z",
        lambda: with_a_password(header_encryption=True),
        r"a\.7z; found it is encrypted",
    ),
    "7z method": (
        "a.7z",
        lambda: seven_zipped({"a.json": lines(0, 5)}, [{"id": py7zr.FILTER_ZSTD}]),
        r"a\.7z!/a\.json; found another method of compression",
    ),
    "7z dictionary": ("a.7z", with_a_large_dictionary, "found a dictionary of 536,870,912 bytes"),
    "7z directory": (
        "a.7z",
        with_long_names,
        r"found a directory of [\d,]+ bytes; at most 4,194,304",
    ),
    "7z checksum": (
        "a.7z",
        lambda: with_another_byte(37),
        r"a\.7z!/a\.json; found a wrong checksum",
    ),
    "7z damaged directory": ("a.7z", lambda: with_another_byte(-1), "found a damaged directory"),
    "7z cut": ("a.7z", lambda: seven_zipped({"a": b"x"})[:-1], "found a damaged directory"),
    "no 7z": ("a.7z", lambda: lines(0, 5), "found "),
    "empty 7z": ("a.7z", lambda: b"", "found "),
    "no gzip": ("a.tgz", lambda: tarred({"a": b"x"}), "cannot be decompressed as gzip"),
    "in zip": ("a.zip", lambda: zipped({"b.zip": zipped({"a": b"x"})}), "b.zip; found a zip arch"),
    "gzip in tar": (
        "a.tar",
        lambda: tarred({"a.json.gz": b"x" * 30}),
        r"as gzip: .*a.tar!/a.json.gz",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, case):
    name, data, problem = BAD[case]
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
    for suffix, problem in {
        ".zip": "11 members",
        ".tar": "more members",
        ".7z": "11 members",
    }.items():
        path = tmp_path / f"many{suffix}"
        path.write_bytes(PACKERS[suffix](many))
        with pytest.raises(MalformedDataError, match=f"found {problem}; expected at most 10"):
            read([whole(path)], ID, file_format="json")

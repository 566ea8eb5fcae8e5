"""Writes archives."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import py7zr


def lines(first, count):
    """Return JSON records with the ids from `first` on."""
    return b"".join(b'{"id":%d}\n' % n for n in range(first, first + count))


def zipped(contents, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for name, content in contents.items():
            # Without a time, so that the same contents are the same bytes.
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def tarred(contents):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def seven_zipped(contents, filters=({"id": lzma.FILTER_LZMA2, "preset": 0},), **options):
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=list(filters), **options) as archive:
        for name, content in contents.items():
            archive.writestr(content, "a")
            # py7zr would shorten a name that begins with ./
            archive.header.files_info.files[-1]["filename"] = name
    return out.getvalue()


PACKERS = {
    ".zip": zipped,
    ".tar": tarred,
    ".tar.gz": lambda contents: gzip.compress(tarred(contents), 1, mtime=0),
    ".tar.bz2": lambda contents: bz2.compress(tarred(contents), 1),
    ".7z": seven_zipped,
}

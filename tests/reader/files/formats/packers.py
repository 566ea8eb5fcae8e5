"""Writes archives."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile


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


PACKERS = {
    ".zip": zipped,
    ".tar": tarred,
    ".tar.gz": lambda contents: gzip.compress(tarred(contents), 1, mtime=0),
    ".tgz": lambda contents: gzip.compress(tarred(contents), 1, mtime=0),
    ".tar.bz2": lambda contents: bz2.compress(tarred(contents), 1),
}

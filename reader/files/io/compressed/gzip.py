"""Points at which gzip can be entered, found by rapidgzip in one pass over the file.

Deflate has no marks: where its blocks begin is only known by decompressing all before them, and a
block needs the 32 KiB before it. rapidgzip 0.16 does that at 0.9 GB of content a second and core,
in 65 MB of memory, and checks the sums of all members; so a reader that enters in the middle, which
cannot check them, reads a file that was whole. It runs in a process of its own: its threads end the
process that ends before them.

Reading from a point is isal's, which is faster and gives back memory as it goes; see `StoredFile`.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from .....checkpoint_meta.files.file_split import FileVersion
from .....checkpoint_meta.storage.urls import is_local, local_name
from ..cut_places import AccessPoint
from ..source_file import AsFile, SourceFile

SPACING = 4 * 1024 * 1024
"""Compressed bytes between two points, at least: a point takes some 10 KB."""

MOST = 2000
"""Points of a file, at most: they are kept, and read, as one object."""

PATIENCE = 300.0
"""Seconds for the pass over a file, while which no batch is planned; the coordinator would fail the
query after 600. What takes longer is read whole, as any gzip file is by Spark."""

_FIND = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
import rapidgzip
opening, out = pickle.load(sys.stdin.buffer)
with opening() as source, rapidgzip.open(source, parallelization=1) as file:
    file.block_offsets()
    file.export_index(out)
"""
_WINDOW = 32 * 1024


def find_points(file: FileVersion, storage: Mapping[str, Any]) -> list[AccessPoint]:
    """The points of `file`.

    None where it is no whole gzip file, which its reader will name, or where `PATIENCE` ends.
    """
    # rapidgzip reads a file by its name without Python, and the process imports nothing else.
    opening = (
        partial(nullcontext, local_name(file.path))
        if is_local(file.path)
        else partial(_opened, file, dict(storage))
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "index"
        finder = [sys.executable, "-c", _FIND]
        # What is pickled has to be found there.
        asked = pickle.dumps(sys.path) + pickle.dumps((opening, str(out)))
        try:
            subprocess.run(finder, input=asked, capture_output=True, check=True, timeout=PATIENCE)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return []
        with out.open("rb") as index:
            return list(_spread(_points(index), max(SPACING, file.size // MOST)))


@contextmanager
def _opened(file: FileVersion, storage: Mapping[str, Any]) -> Iterator[AsFile]:
    with SourceFile(file, storage).opened() as source:
        yield AsFile(source, file.size)


def _points(index: BinaryIO) -> Iterator[AccessPoint]:
    """The points in an index of indexed_gzip's format, in order."""
    # Magic, version, a flag, both sizes, spacing and size of windows come before the count.
    head = index.read(35)
    if head[:6] != b"GZIDX\x01":
        raise ValueError("not the index format that is known here")
    (count,) = struct.unpack_from("<I", head, 31)
    entries = [struct.unpack("<QQBB", index.read(18)) for _ in range(count)]
    for behind, content, bits, has_window in entries:
        window = index.read(_WINDOW) if has_window else b""
        bit = 8 * behind - bits
        yield AccessPoint(bit // 8, bit % 8, content, window)


def _spread(points: Iterator[AccessPoint], spacing: int) -> Iterator[AccessPoint]:
    last = 0
    for point in points:
        # Without a window it is the file's beginning, where any reader can start.
        if point.window and point.bit % 2 == 0 and point.start - last >= spacing:
            yield point
            last = point.start

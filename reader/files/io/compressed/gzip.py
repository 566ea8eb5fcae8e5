"""Points at which gzip can be entered, each with the 32 KiB of content that stand before it.

They belong to one version of a file, are found once, by the driver, and travel to the readers: in
the state of a stream, with the partition of a batch read.

rapidgzip finds them in one pass over the file.
Deflate has no marks: where its blocks begin is only known by decompressing all before them, and a
block needs the 32 KiB before it. rapidgzip 0.16 does that at 0.9 GB of content a second and core,
in 65 MB of memory, and checks the sums of all members; so a reader that enters in the middle, which
cannot check them, reads a file that was whole. It runs in a process of its own: its threads end the
process that ends before them.

Reading from a point is isal's, which is faster and gives back memory as it goes. It begins at whole
bytes only, where blocks begin at any bit: empty blocks of ten bits each are put before, so points
are those at even bits.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import pyarrow as pa
from isal import igzip_lib
from pyarrow import ipc
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....checkpoint_meta.storage.urls import local_path
from ..source_file import is_local

if TYPE_CHECKING:
    from .....checkpoint_meta.stores.contract import StateStore

FOLDER = "points"


class Point(NamedTuple):
    """The beginning of a block of deflate."""

    start: int
    """The byte in which it begins: where a split may begin."""

    bit: int
    """The bit of that byte, 0 being the lowest."""

    content: int
    """Bytes of content before it."""

    window: bytes
    """The content just before it, which the block may refer to."""


class Points(ABC):
    """The points of files, by file version."""

    @abstractmethod
    def find(self, file: FileVersion) -> list[Point] | None:
        """The points of `file` in order; None if nobody has looked for them."""

    @abstractmethod
    def keep(self, file: FileVersion, points: list[Point]) -> list[Point]:
        """Keep the points of `file`, and say which ones count: those that were kept first."""


class CarriedPoints(Points):
    """Points in memory, which travel with the work."""

    def __init__(self, known: Mapping[str, bytes] | None = None) -> None:
        self._known = {name: _read(data) for name, data in (known or {}).items()}

    @override
    def find(self, file: FileVersion) -> list[Point] | None:
        return self._known.get(object_of(file))

    @override
    def keep(self, file: FileVersion, points: list[Point]) -> list[Point]:
        self._known[object_of(file)] = points
        return points

    def of(self, splits: Iterable[FileSplit]) -> dict[str, bytes]:
        """What these splits need, for a `CarriedPoints` elsewhere."""
        borders: dict[FileVersion, set[int]] = {}
        for split in splits:
            if not split.is_whole_file:
                borders.setdefault(split.file, set()).update((split.start, split.end))
        found = {}
        for file, wanted in borders.items():
            points = [point for point in self.find(file) or () if point.start in wanted]
            if points:
                found[object_of(file)] = _written(points)
        return found


class StoredPoints(Points):
    """Points in the state of a stream: one immutable object for each file that was cut."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._last: tuple[str, list[Point] | None] = "", None

    @override
    def find(self, file: FileVersion) -> list[Point] | None:
        name = object_of(file)
        if self._last[0] != name or self._last[1] is None:
            try:
                self._last = name, _read(self._store.read(f"{FOLDER}/{name}"))
            except FileNotFoundError:
                self._last = name, None
        return self._last[1]

    @override
    def keep(self, file: FileVersion, points: list[Point]) -> list[Point]:
        try:
            self._store.publish(f"{FOLDER}/{object_of(file)}", _written(points))
        except FileExistsError:
            # Splits may already begin at the points of another process.
            self._last = "", None
            return self.find(file) or points
        return points


def object_of(file: FileVersion) -> str:
    """The name of a file's object below `FOLDER`."""
    return hashlib.sha256(repr(tuple(file)).encode()).hexdigest()[:32] + ".arrow"


def _written(points: list[Point]) -> bytes:
    columns = list(zip(*points, strict=True)) or [()] * 4
    types = (pa.int64(), pa.int8(), pa.int64(), pa.binary())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=list(Point._fields))
    sink = pa.BufferOutputStream()
    # Each window by itself: together they would be as large as the memory they take.
    with ipc.new_file(sink, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(table, max_chunksize=64)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _read(data: bytes) -> list[Point]:
    table = ipc.open_file(pa.BufferReader(data)).read_all()
    return [Point(**row) for row in table.to_pylist()]


SPACING = 4 * 1024 * 1024
"""Compressed bytes between two points, at least: a point takes some 10 KB."""

MOST = 2000
"""Points of a file, at most: they are kept, and read, as one object."""

PATIENCE = 300.0
"""Seconds for the pass over a file, while which no batch is planned; the coordinator would fail the
query after 600. What takes longer is read whole, as any gzip file is by Spark."""

_FIND = """
import pickle, sys
import rapidgzip
path, storage, out = pickle.load(sys.stdin.buffer)
if storage is not None:
    import fsspec
    path = fsspec.open(path, "rb", **storage).open()
with rapidgzip.open(path, parallelization=1) as file:
    file.block_offsets()
    file.export_index(out)
"""
_WINDOW = 32 * 1024
_EMPTY_BLOCK, _EMPTY_BITS = 0b010, 10


def can_find_points() -> bool:
    """True if rapidgzip is installed here."""
    return find_spec("rapidgzip") is not None


def find_points(file: FileVersion, storage: Mapping[str, Any]) -> list[Point]:
    """The points of `file`.

    None where it is no whole gzip file, which its reader will name, or where `PATIENCE` ends.
    """
    local = is_local(file.path)
    path = (local_path(file.path) or file.path) if local else file.path
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "index"
        asked = pickle.dumps((path, None if local else dict(storage), str(out)))
        finder = [sys.executable, "-c", _FIND]
        try:
            subprocess.run(finder, input=asked, capture_output=True, check=True, timeout=PATIENCE)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return []
        with out.open("rb") as index:
            return list(_spread(_points(index), max(SPACING, file.size // MOST)))


def _points(index: BinaryIO) -> Iterator[Point]:
    """The points in an index of indexed_gzip's format, in order."""
    head = index.read(35)
    if head[:6] != b"GZIDX\x01":
        raise ValueError("not the index format that is known here")
    (count,) = struct.unpack_from("<I", head, 31)
    entries = [struct.unpack("<QQBB", index.read(18)) for _ in range(count)]
    for behind, content, bits, has_window in entries:
        window = index.read(_WINDOW) if has_window else b""
        bit = 8 * behind - bits
        yield Point(bit // 8, bit % 8, content, window)


def _spread(points: Iterator[Point], spacing: int) -> Iterator[Point]:
    last = 0
    for point in points:
        if point.window and point.bit % 2 == 0 and point.start - last >= spacing:
            yield point
            last = point.start


class FromPoint:
    """A decoder that begins at a point, and takes the trailer behind the stream as its own."""

    def __init__(self, point: Point) -> None:
        self._inner: Any = igzip_lib.IgzipDecompressor(
            flag=igzip_lib.DECOMP_DEFLATE, zdict=point.window
        )
        self._trailer = b""
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        """True if nothing can come without more bytes."""
        return bool(self._inner.eof or self._inner.needs_input)

    def decompress(self, data: bytes, count: int) -> bytes:
        """At most `count` bytes of content."""
        out: bytes = b""
        if not self._inner.eof:
            out = self._inner.decompress(data, count)
            if not self._inner.eof:
                return out
            data = self._inner.unused_data
        self._trailer += data
        if len(self._trailer) >= 8:
            self.eof, self.unused_data = True, self._trailer[8:]
        return out


def head_of(point: Point, first: int) -> bytes:
    """What a decoder is given instead of `first`, the byte in which the point lies."""
    blocks = point.bit // 2
    bits = sum(_EMPTY_BLOCK << (_EMPTY_BITS * i) for i in range(blocks))
    length = _EMPTY_BITS * blocks
    return (bits | (first >> point.bit) << length).to_bytes((length - point.bit) // 8 + 1, "little")

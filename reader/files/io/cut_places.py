"""Where gzip files are cut: points at which decompression can begin.

A point comes with the 32 KiB of content before it. CutPlaces belong to one version of a
file, are found once, by the driver, and travel to the readers: in the state of a stream, with the
partition of a batch read.
"""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import ipc
from typing_extensions import override

from ....checkpoint_meta.documents.serializer import to_ipc
from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.contract import at_once

if TYPE_CHECKING:
    from ....checkpoint_meta.stores.contract import StateStore

FOLDER = "points"

NEAR_START_BYTES = 1024 * 1024
"""Where a split begins is known in the content if it is within so many compressed bytes."""

KNOWN_CONTENT_BYTES = 900 * 1024
"""Content within so many bytes is in a split of which that is known."""


class AccessPoint(NamedTuple):
    """The beginning of a block of deflate."""

    start: int
    """The byte in which it begins: where a split may begin."""

    bit: int
    """The bit of that byte, 0 being the lowest."""

    content: int
    """Bytes of content before it."""

    window: bytes
    """The content just before it, which the block may refer to."""


class CutPlaces(ABC):
    """The points of files, by file version."""

    @abstractmethod
    def find(self, file: FileVersion) -> list[AccessPoint] | None:
        """The points of `file` in order; None if they were never looked for."""

    @abstractmethod
    def keep(self, file: FileVersion, points: list[AccessPoint]) -> list[AccessPoint]:
        """Keep the points of `file`, and say which ones count: those that were kept first."""


class MemoryCutPlaces(CutPlaces):
    """Cut places in memory, which travel with the work."""

    def __init__(self, stored: Mapping[str, bytes] | None = None) -> None:
        self._known = {name: _read(data) for name, data in (stored or {}).items()}

    @override
    def find(self, file: FileVersion) -> list[AccessPoint] | None:
        return self._known.get(object_of(file))

    @override
    def keep(self, file: FileVersion, points: list[AccessPoint]) -> list[AccessPoint]:
        self._known[object_of(file)] = points
        return points

    def of(self, splits: Iterable[FileSplit]) -> dict[str, bytes]:
        """Return what these splits need, for a `MemoryCutPlaces` elsewhere."""
        boundaries: dict[FileVersion, set[int]] = {}
        for split in splits:
            if not split.is_whole_file:
                boundaries.setdefault(split.file, set()).update((split.start, split.end))
        points_by_object = {}
        for file, wanted in boundaries.items():
            points = [point for point in self.find(file) or () if point.start in wanted]
            if points:
                points_by_object[object_of(file)] = _written(points)
        return points_by_object


class StoredCutPlaces(CutPlaces):
    """In the state of a stream: one immutable object for the points of a file."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        # Splits of one file come in a row, and its points may take megabytes.
        self._last: tuple[str, list[AccessPoint] | None] = "", None

    @override
    def find(self, file: FileVersion) -> list[AccessPoint] | None:
        name = object_of(file)
        # Asked again while there are no points: another process may have stored them since.
        if self._last[0] != name or self._last[1] is None:
            try:
                self._last = name, _read(self._store.read(f"{FOLDER}/{name}"))
            except FileNotFoundError:
                self._last = name, None
        return self._last[1]

    @override
    def keep(self, file: FileVersion, points: list[AccessPoint]) -> list[AccessPoint]:
        try:
            self._store.publish(f"{FOLDER}/{object_of(file)}", _written(points))
        except FileExistsError:
            # Splits may already begin at the points of another process.
            self._last = "", None
            return self.find(file) or points
        return points


def take_over(old: StateStore, new: StateStore) -> None:
    """Copy all of another state's, whose files may be cut already; again, if that was killed."""
    missing = sorted(set(old.list(FOLDER)) - set(new.list(FOLDER)))

    def copy(leaf: str) -> None:
        with contextlib.suppress(FileExistsError):
            new.publish(f"{FOLDER}/{leaf}", old.read(f"{FOLDER}/{leaf}"))

    at_once(copy, missing)


def object_of(file: FileVersion) -> str:
    """The name below `FOLDER` of the object for a file's points."""
    # The version is part of the name, so the points of a file that was replaced are not found.
    return f"{hashlib.sha256(repr(tuple(file)).encode()).hexdigest()[:32]}.arrow"


def _written(points: list[AccessPoint]) -> bytes:
    # A file without points is stored as well, so that it is not looked through again.
    columns = list(zip(*points, strict=True)) or [()] * 4
    types = (pa.int64(), pa.int8(), pa.int64(), pa.binary())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=list(AccessPoint._fields))
    # Each window by itself: together they would be as large as the memory they take.
    return to_ipc(table.schema, table.to_batches(max_chunksize=64), compression="zstd")


def _read(data: bytes) -> list[AccessPoint]:
    table = ipc.open_file(pa.BufferReader(data)).read_all()
    return [AccessPoint(**row) for row in table.to_pylist()]

"""The file source's split: a byte range of one version of one file.

Named tuples, because there are hundreds of thousands of them and nothing is made faster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from xxhash import xxh3_64

from ..storage.contract import FileStatus, difference
from ..storage.urls import is_local, local_name


class FileVersion(NamedTuple):
    """One version of one file, as discovery saw it."""

    path: str
    """Absolute local path, or a full URL for every other file system."""

    size: int
    """Length in bytes."""

    modified: int
    """Modification time, microseconds since the epoch; -1 where the file system has none."""

    etag: str = ""
    """The store's own version mark; empty where it has none. Of a local file that is appended to,
    a `GrowingMark`."""

    @property
    def sample(self) -> int:
        """See `SampledFile`; 0 if the file was not sampled."""
        return 0

    @property
    def digest(self) -> str:
        """Digest of the content, in hex, where `identity=content` has read it; else empty."""
        return ""

    @property
    def is_gone(self) -> bool:
        """True for the version of a file that is gone; see `retraction_of`."""
        return self.etag == GONE_MARK

    @property
    def status(self) -> FileStatus:
        """The version as storage reports it."""
        return FileStatus(*self[1:])

    def difference(self, present: FileStatus) -> tuple[str, str] | None:
        """Return what is present and what was expected; None if no difference is known."""
        return difference(self.status, present, is_local=is_local(self.path))


class SampledFile(FileVersion):
    """A version whose content was sampled (`sampled`) before the first of several parts was read.

    Every reader compares it, so that all parts come from one content. Or its content was read for
    `identity=content`. Listings know neither, so they are no part of the version: a sampled file
    and one that is not are equal.
    """

    sample: int = 0
    digest: str = ""

    @classmethod
    def of(cls, file: FileVersion, sample: int, digest: str = "") -> SampledFile:
        """The same version with this sample, and this digest unless it has one already."""
        copy = cls(*file)
        copy.sample = sample
        copy.digest = digest or file.digest
        return copy


class GrowingMark(NamedTuple):
    """The etag of a growing file's versions: what stays true as long as it is appended to."""

    inode: int
    end: int
    """Up to here the file was taken, or is to be."""

    checksum: int
    """XXH3, 64 bits, of the bytes before `end`, at most `MARKED_BYTES` of them."""

    @property
    def etag(self) -> str:
        """The mark as text."""
        return f"{GROWS}-{self.inode}-{self.end}-{self.checksum:016x}"


MARKED_BYTES = 4096
"""Bytes that a `GrowingMark` looks at. Lines of one width differ in these, if not in their last."""

GROWS, GONE_MARK = "grows", "gone"


def growing_mark(etag: str) -> GrowingMark | None:
    """The mark in an etag; None for a file that is not appended to."""
    if not etag.startswith(GROWS + "-"):
        return None
    _, inode, end, checksum = etag.split("-")
    return GrowingMark(int(inode), int(end), int(checksum, 16))


class FileSplit(NamedTuple):
    """Bytes `start` (inclusive) to `end` (exclusive) of one file version: the unit of work.

    A record, row group or block belongs to the split in which it starts. Equal splits read equal
    rows in equal order, on any host, after any crash.
    """

    file: FileVersion
    start: int
    end: int

    skip: int = 0
    """How much from `start` on was read already: bytes of content in formats of text, else rows.
    In an archive, this much of a member, plus 2**40 for each entry before it.

    Where a file cannot be entered in the middle, this is decoded again and dropped."""

    read_bytes: int = 0
    """About so many of its stored bytes were read with that; for figures and plans only."""

    replaces: int = 0
    """`REPLACES`: rows of earlier versions of the file leave the table in the commit of the batch
    that assigns this split. `RETRACTS`: likewise, and nothing is read; see `retraction_of`. What
    becomes of the split afterwards does not matter, and what is sent back replaces nothing."""

    @property
    def split_id(self) -> str:
        """Derived from content alone, so it means the same thing after every restart."""
        file = self.file
        # The quarantine keeps only ids: `connector/views/files_as_of.py` takes them apart again.
        skip = f"+{self.skip}" if self.skip else ""
        return f"{file.path}@{file.size}-{file.modified}-{file.etag}:{self.start}-{self.end}{skip}"

    @property
    def length(self) -> int:
        """Stored bytes of this split that are not read yet."""
        return self.end - self.start - self.read_bytes

    @property
    def is_whole_file(self) -> bool:
        """True when nothing of the file lies outside this split."""
        return self.start == 0 and self.end == self.file.size and not self.skip


REPLACES, RETRACTS = 1, 2
"""Values of `FileSplit.replaces`."""


def directory_of(path: str) -> str:
    """The directory right in which a file is, as paths of files begin."""
    return path.rpartition("/")[0]


def retraction_of(path: str) -> FileSplit:
    """A split of a file that is gone, or whose rows are not wanted: one nominal byte, never read.

    Its version is that of no file, so a file that comes back is there in another one.
    """
    return FileSplit(FileVersion(path, 1, -1, GONE_MARK), 0, 1, replaces=RETRACTS)


FIGURES = "figures"
"""The sums of a reader: rows, bytes, files, microseconds, droppedRecords, skippedFiles."""

REPLACED = "replaced"
"""A file was there in another version than the one to be read; nothing of either was."""

SCHEMA = "schema"
"""The version of the schema that has the new columns that a reader met; so are the events to
readers called that name it."""

FILE_EVENTS = frozenset({FIGURES, REPLACED, SCHEMA})


def replaced(old: FileVersion, new: FileVersion) -> Mapping[str, Any]:
    """The value of a `REPLACED` event."""
    return {"old": list(old), "new": list(new)}


def versions_of_event(value: Mapping[str, Any]) -> tuple[FileVersion, FileVersion]:
    """The version that was to be read, and the one that was there."""
    return FileVersion._make(value["old"]), FileVersion._make(value["new"])


_PIECES: Final = 8
"""So few that a disk that has to seek for each loses less time than with reading a split."""

_PIECE: Final = 4096


def sample_of(descriptor: int, size: int) -> int:
    """Return a checksum, never 0, of pieces from the first bytes of an open file to the last.

    By it readers of parts of a local file notice if it is replaced. Size and modification time do
    not tell: `cp -p`, `rsync -t` and a clock of whole seconds keep both. Inode and change time say
    too much: chmod, a hard link and a file that comes back from a backup change them, and FUSE and
    network mounts may number a file differently on each host. So the bytes decide, each time the
    file is opened. Too few are sampled to find a change of a single record.
    """
    last, digest = max(0, size - _PIECE), xxh3_64()
    for position in sorted({last * piece // (_PIECES - 1) for piece in range(_PIECES)}):
        digest.update(os.pread(descriptor, min(size, _PIECE), position))
    # In the state it is a signed number of 64 bits.
    return (digest.intdigest() >> 1) or 1


def sampled(file: FileVersion) -> FileVersion:
    """The file with a sample, if it is local. A file with an etag has a better mark already."""
    if file.etag or not is_local(file.path):
        return file
    try:
        with open(local_name(file.path), "rb", buffering=0) as source:
            return SampledFile.of(file, sample_of(source.fileno(), file.size))
    except OSError:
        # Reading the file raises the same error, and the options say what it means.
        return file

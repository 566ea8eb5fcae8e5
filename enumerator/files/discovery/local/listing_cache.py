"""What a local listing need not look at again: directories without a change, files left out.

A file system of this machine moves a directory's times when a name in it comes or goes. So a
directory whose times are those of a pass before holds the names it held then, if

- the file system is known to keep such times, which those of a network or in user space are not;
- the times were some seconds old when the directory was read: within one tick of the clock names
  may come without moving them;
- every file in it was known or permanently left out, so that a pass whose files got lost on the way
  does not hide them.

A query that is started again trusts what an earlier run found, as long as the machine is not
started again, for directories in which nothing but names decided.

A file that is permanently left out is remembered with its reason, in nine bytes for each of
millions, so that it costs no stat again until that pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .....checkpoint_meta.documents.listing_record import DirectoryRow
from ..api import SkippedFile
from ..selection.criteria import CHANGED, REASONS

_LOCAL_DISKS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs")
) | {"tmpfs", "ramfs", "overlay"}
_YOUNGEST = 3_000_000_000
"""Age of a directory's times, in nanoseconds, from which they say something."""

_MOST = 250_000
"""Directories remembered; some 400 bytes each."""

_MOST_AGAIN = 1_000
"""Files to be looked at again, from which on the whole directory is read again instead."""

Trail = tuple[str, ...]
"""Where the links led that were followed on the way to a directory."""

_BY_CONTENT = frozenset((*REASONS, CHANGED))
"""Reasons that may pass while the directory stays as it is."""

_RECENT = 100_000
"""Skipped files kept as Python objects before they are sorted in."""

Times = tuple[int, int, int, int]


class Record(NamedTuple):
    """The content of a directory, as a pass found it."""

    times: Times
    folders: Sequence[tuple[str, Trail]]
    """The directories in it that are entered."""

    again: Sequence[str]
    """Names of files that were left out for now: they cost a stat at each pass."""

    counts: Mapping[str, int]
    """Files permanently left out, by reason."""

    names: Sequence[SkippedFile]
    """The first of these files, as examples."""


class DirectoryCache:
    """The directories of one tree that need not be read again."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._devices = _local_devices()
        self.names_read = 0
        """Names in directories that were stored, and so need not be read again."""

    def is_local(self, status: os.stat_result) -> bool:
        """True if the file system keeps the promises above."""
        return status.st_dev in self._devices

    def record_of(self, path: str, status: os.stat_result) -> Record | None:
        """Return what a pass before has found, if the directory is as it was."""
        record = self._records.get(path)
        return record if record is not None and record.times == times_of(status) else None

    def store(
        self, path: str, record: Record, status: os.stat_result, read_at: int, names: int = 0
    ) -> None:
        """Remember; `read_at`, in nanoseconds, is when reading it began, after `status`.

        `names` is how many names it holds.
        """
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        sure = read_at - changed > _YOUNGEST and self.is_local(status)
        if sure and len(record.again) <= _MOST_AGAIN and len(self._records) < _MOST:
            self._records[path] = record
            self.names_read += names

    def rows(self) -> list[DirectoryRow]:
        """The directories that a later run may trust, too."""
        return [
            (path, one.times, one.folders, one.counts, one.names)
            for path, one in self._records.items()
            if not one.again and _BY_CONTENT.isdisjoint(one.counts)
        ]

    def load(self, rows: Sequence[DirectoryRow]) -> None:
        """Trust what a run before has found on the disks of this machine, since its start."""
        self._records = {
            path: Record(
                times,
                [(folder, tuple(trail)) for folder, trail in folders],
                (),
                counts,
                [SkippedFile(*name) for name in names],
            )
            for path, times, folders, counts, names in rows
            if times[0] in self._devices
        }

    def forget(self) -> None:
        """Drop all records, so that the next pass reads every directory."""
        self._records.clear()
        # Something else may have been mounted since.
        self._devices = _local_devices()


def times_of(status: os.stat_result) -> Times:
    """Return what moves when names come or go: the change time even if tools set the other back."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _local_devices() -> frozenset[int]:
    if not sys.platform.startswith("linux"):
        return frozenset()
    devices = set()
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                # The third field is the device, and the type follows the dash: proc(5).
                fields, _, rest = line.partition(" - ")
                if rest.split(" ", 1)[0] in _LOCAL_DISKS:
                    major, _, minor = fields.split()[2].partition(":")
                    devices.add(os.makedev(int(major), int(minor)))
    # Without the list every directory is read at each pass: slower, and as complete.
    except OSError:
        return frozenset()
    return frozenset(devices)


class SkipCache:
    """Path -> a code. Two paths may meet with a chance of one in 10^19; never in two lives."""

    def __init__(self) -> None:
        # Another text for each life of this object: other paths meet, if any do.
        self._salt = os.urandom(8).hex()
        self._hashes = np.empty(0, np.int64)
        self._codes = np.empty(0, np.uint8)
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def add(self, path: str, code: int) -> None:
        """`code` is 1 to 255; a path is added once."""
        self._recent[hash(path + self._salt)] = code
        # Sorting in copies all there is, so it is done for a quarter more at a time.
        if len(self._recent) >= max(_RECENT, len(self._hashes) // 4):
            self._sort_in()

    def get(self, path: str) -> int:
        """The code, or 0."""
        if not len(self):
            return 0
        key = hash(path + self._salt)
        code = self._recent.get(key, 0)
        if code or not len(self._hashes):
            return code
        at = int(np.searchsorted(self._hashes, key))
        is_stored = at < len(self._hashes) and int(self._hashes[at]) == key
        return int(self._codes[at]) if is_stored else 0

    def _sort_in(self) -> None:
        keys = np.concatenate([self._hashes, np.fromiter(self._recent, np.int64)])
        codes = np.fromiter(self._recent.values(), np.uint8)
        order = np.argsort(keys, kind="stable")
        self._hashes, self._codes = keys[order], np.concatenate([self._codes, codes])[order]
        self._recent = {}

"""Fingerprints of the names of files, in sorted columns: 17 bytes for a file that was seen.

A name is known by the 128 bits of XXH3 over its UTF-8. Among ten million names two share them with
a chance of 10^-25.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest, xxh3_128_digest, xxh3_128_hexdigest

from ..files.file_columns import Flags, Numbers, has_text, numbers_in
from ..files.file_split import GrowingMark, growing_mark

Words: TypeAlias = npt.NDArray[np.uint64]
Octets: TypeAlias = npt.NDArray[np.uint8]

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""The constants of SplitMix64."""

_STEP = 65_536
"""Paths of a column that are looked at together."""


@dataclass(frozen=True, slots=True)
class Names:
    """Fingerprints of names, in the order of the names."""

    high: Words
    low: Words

    def __len__(self) -> int:
        return len(self.high)

    def take(self, chosen: Any) -> Names:
        """Return those at some positions, or where a mask is true."""
        return Names(self.high[chosen], self.low[chosen])

    def order(self) -> npt.NDArray[np.intp]:
        """Positions of the names, sorted by fingerprint; of equal names that of the later one."""
        high = self.high
        order = np.argsort(high)
        sorted_high = high[order]
        if not np.any(sorted_high[1:] == sorted_high[:-1]):
            # The usual case: a stable sort takes five times as long.
            return order
        # Stable, so that of equal names the later one stays behind the earlier one.
        order = np.argsort(high, kind="stable")
        high, low = high[order], self.low[order]
        twice = high[1:] == high[:-1]
        if np.any(twice & (low[1:] != low[:-1])):
            # Sorting by both words takes longer, and is needed only if two names share the first
            # one.
            order = np.lexsort((self.low, self.high))
            high, low = self.high[order], self.low[order]
            twice = high[1:] == high[:-1]
        twice &= low[1:] == low[:-1]
        return order[np.append(~twice, True)] if np.any(twice) else order

    def to_bytes(self) -> bytes:
        """16 bytes a name, in order, as XXH3 writes them."""
        return np.stack([self.high, self.low], axis=1).astype(">u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Names:
        """The inverse of `to_bytes`."""
        words = np.frombuffer(data, ">u8").reshape(-1, 2).astype(np.uint64)
        # Copies, since `searchsorted` would copy an array with gaps at every call.
        return cls(words[:, 0].copy(), words[:, 1].copy())

    @staticmethod
    def join(parts: Sequence[Names]) -> Names:
        """All of `parts`, one after the other."""
        return Names(_joined([p.high for p in parts]), _joined([p.low for p in parts]))


def names_of(paths: Iterable[str]) -> Names:
    """The fingerprints of paths."""
    return Names.from_bytes(b"".join([xxh3_128_digest(path.encode()) for path in paths]))


def file_key(path: str) -> str:
    """The key of a file in a table (`writeFileColumn`): the fingerprint of its path, in hex."""
    return xxh3_128_hexdigest(path.encode())


def file_keys(names: Names) -> list[str]:
    """The `file_key` of each name."""
    text = names.to_bytes().hex()
    return [text[at : at + 32] for at in range(0, len(text), 32)]


def names_by_keys(keys: pa.Array) -> Names:
    """The inverse of `file_keys`."""
    # In columns: a text for each of millions takes long.
    row = pa.ListArray.from_arrays(pa.array([0, len(keys)], pa.int32()), keys.cast(pa.binary()))
    return Names.from_bytes(unhexlify(pc.binary_join(row, b"")[0].as_buffer()))


def names_in(paths: pa.Array) -> Names:
    """The fingerprints of a column of paths; few of them are objects of Python at any time."""
    # As bytes, which texts would have to be made from and turned into again.
    paths = paths.view(pa.binary())
    steps = (paths[at : at + _STEP].to_pylist() for at in range(0, len(paths), _STEP))
    return Names.from_bytes(b"".join([b"".join(map(xxh3_128_digest, step)) for step in steps]))


def versions_of(sizes: Numbers, modified: Numbers, etags: Sequence[str] | None) -> Words:
    """64 bits that tell one version of a file from another, even ones: size, time, the etag.

    Those of a growing file are odd: 32 bits for size and time, then 31 for its identity.
    """
    of_stat = _mixed(_mixed(sizes.astype(np.uint64)) ^ modified.astype(np.uint64))
    if etags is None or not any(etags):
        # Local files have no etag: a pass over all of them in Python is saved.
        return of_stat & ~_ODD
    marks = np.fromiter(map(_mark, etags), np.uint64, len(etags))
    plain = np.where(marks == 0, of_stat, _mixed(of_stat ^ marks)) & ~_ODD
    grows = (marks & _ODD) != 0
    return np.where(grows, (of_stat & _OF_STAT) | (marks & _OF_IDENTITY), plain)


def versions_in(files: pa.RecordBatch) -> Words:
    """`versions_of` rows of `FILES` or `RANGES`."""
    sizes, modified = numbers_in(files, "size"), numbers_in(files, "modified")
    # Those of local files are empty, and a text for each takes longer than all the rest.
    marks = files.column("etag").to_pylist() if has_text(files.column("etag")) else None
    return versions_of(sizes, modified, marks)


def is_growing(version: Words) -> Flags:
    """Return whether a version, or each of several, is that of a growing file."""
    flags: Flags = (version & _ODD) != 0
    return flags


def differ(fingerprints: Words, other: Words) -> Flags:
    """Return which files are there in another version; a growing one, with another size or time."""
    halves = is_growing(fingerprints) | is_growing(other)
    bits = fingerprints ^ other
    flags: Flags = np.where(halves, bits & _OF_STAT, bits) != 0
    return flags


def octets_of(versions: Words) -> Octets:
    """Return 8 bits of each version: of 256 changes they miss one, in a sixteenth of the memory."""
    # Of the half that a growing file has of its size and time, too.
    return (versions >> np.uint64(32)).astype(np.uint8)


def may_be(fingerprint: np.uint64, mark: GrowingMark) -> bool:
    """False if a known version is that of a growing file with another mark."""
    identity = int(fingerprint) & int(_OF_IDENTITY)
    return not identity & 1 or identity == _mark(mark.etag)


_ODD = np.uint64(1)
_OF_STAT = np.uint64(0xFFFFFFFF00000000)
_OF_IDENTITY = np.uint64(0x00000000FFFFFFFF)


def _mark(etag: str) -> int:
    """Even, or odd and of 32 bits for a growing file."""
    if not etag:
        return 0
    digest = xxh3_64_intdigest(etag.encode())
    return digest & int(_OF_IDENTITY) | 1 if growing_mark(etag) else digest & ~1


def _mixed(words: Words) -> Words:
    # SplitMix64 computes modulo 2^64, and numpy warns where a single word overflows.
    with np.errstate(over="ignore"):
        words = words + _MIX[0]
        words = (words ^ (words >> np.uint64(30))) * _MIX[1]
        words = (words ^ (words >> np.uint64(27))) * _MIX[2]
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """Files that were seen, each once, sorted by the fingerprint of their names."""

    names: Names
    version: Words | None
    """See `versions_of`; None if it is not needed."""

    end: Numbers | None
    """Up to which byte the file has been handed to readers or is pending; None likewise."""

    octets: Octets | None = None
    """See `octets_of`; None where versions are kept whole."""

    def __len__(self) -> int:
        return len(self.names)

    def find(self, names: Names) -> npt.NDArray[np.intp]:
        """The position of each of `names`, -1 for those that are not here."""
        if not len(self) or not len(names):
            return np.full(len(names), -1, np.intp)
        if all(map(np.array_equal, (self.names.high, self.names.low), (names.high, names.low))):
            return np.arange(len(self))
        # In order, so that one search finds in the cache what the one before has read.
        order = np.argsort(names.high)
        at = np.empty(len(names), np.intp)
        at[order] = np.searchsorted(self.names.high, names.high[order])
        # A name behind the last one has the position after it, which cannot be looked at.
        at = np.minimum(at, len(self) - 1)
        same = self.names.high[at] == names.high
        is_equal = same & (self.names.low[at] == names.low)
        for row in np.flatnonzero(same & ~is_equal):
            # Two names that share 64 bits: once in a million indexes of ten million names.
            at[row] = self._walk(int(at[row]), names.high[row], names.low[row])
            is_equal[row] = at[row] >= 0
        return np.where(is_equal, at, -1)

    def octets_at(self, rows: npt.NDArray[np.intp]) -> Octets:
        """Return 8 bits of the version of each of these entries."""
        if self.version is not None:
            return octets_of(self.version[rows])
        assert self.octets is not None
        return self.octets[rows]

    def _walk(self, at: int, high: np.uint64, low: np.uint64) -> int:
        while at < len(self) and self.names.high[at] == high:
            if self.names.low[at] == low:
                return at
            at += 1
        return -1

    @staticmethod
    def sort(names: Names, version: Words | None = None, end: Numbers | None = None) -> SeenKeys:
        """Sorted; where a name comes twice the later one counts."""
        order = names.order()
        return SeenKeys(
            names.take(order),
            None if version is None else version[order],
            None if end is None else end[order],
        )

    @staticmethod
    def merge(parts: Sequence[SeenKeys]) -> SeenKeys:
        """One of many, the oldest first; of a file in several of them the newest entry counts."""
        # The order of the parts decides: `sort` keeps the last entry of a name.
        names = Names.join([part.names for part in parts])
        versions = [part.version for part in parts if part.version is not None]
        ends = [part.end for part in parts if part.end is not None]
        return SeenKeys.sort(
            names,
            _joined(versions) if len(versions) == len(parts) else None,
            _joined(ends) if len(ends) == len(parts) else None,
        )

    @property
    def are_files(self) -> Flags:
        """False for contents, which are here besides files (see `content_keys`)."""
        if self.end is None:
            return np.ones(len(self), np.bool_)
        flags: Flags = self.end != CONTENT
        return flags

    @property
    def file_count(self) -> int:
        """The number of files."""
        return int(np.count_nonzero(self.are_files))

    def files(self) -> SeenKeys:
        """Return the entries of files alone."""
        chosen = self.are_files
        if chosen.all() or self.version is None or self.end is None:
            return self
        return SeenKeys(self.names.take(chosen), self.version[chosen], self.end[chosen])

    def contents(self, *, known: bool) -> list[str]:
        """The digests of contents that are known, or of those that are not any more."""
        if self.version is None:
            return []
        return file_keys(self.names.take(~self.are_files & (self.version == np.uint64(known))))

    def bare(self) -> SeenKeys:
        """Names of files and 8 bits of each version, in memory of their own."""
        files = self.files()
        # Columns of a file share one buffer: a view of two of them would keep all four in memory.
        octets = files.octets if files.version is None else octets_of(files.version)
        return SeenKeys(Names(files.names.high.copy(), files.names.low.copy()), None, None, octets)


CONTENT: Final = -1
"""As `end`: the entry is of a content. Its version is 1 while the content is known, then 0."""


def content_keys(contents: Collection[str], *, known: bool) -> SeenKeys:
    """Entries of digests of contents (`FileVersion.digest`), which are or are not known."""
    count = len(contents)
    version, end = np.full(count, known, np.uint64), np.full(count, CONTENT, np.int64)
    return SeenKeys.sort(content_names(contents), version, end)


def content_names(contents: Iterable[str]) -> Names:
    """Digests as names; no path has such a fingerprint, as both have 128 bits."""
    return Names.from_bytes(bytes.fromhex("".join(contents)))


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint64)

"""Which files have been seen: flushed runs, and what was found since the newest of them.

Parts are immutable and the tuple of them is replaced as a whole, so the listing's thread and the
one that flushes and merges read without a lock while the coordinator's thread adds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import override

from ....checkpoint_meta.files.file_columns import Flags, Numbers
from ....checkpoint_meta.files.file_split import GONE_MARK
from ....checkpoint_meta.index.fingerprints import (
    Names,
    Octets,
    SeenKeys,
    Words,
    content_keys,
    content_names,
    names_of,
    octets_of,
    versions_of,
)
from ....checkpoint_meta.index.run import Run, seen_rows
from ..discovery.api import FoundFiles, KnownFiles

_MOST_AHEAD = 16
"""More checkpoints than are ever cut and not handed out."""

_TIMES = 3
"""A part that was found is joined with the one before it, unless that is so many times longer."""


GONE: Final = versions_of(np.array([1]), np.array([-1]), [GONE_MARK])[0]
"""The version of a file that is gone; see `retraction_of`."""


@dataclass(slots=True)
class Portion:
    """Files that became known together; their checkpoint is reported later."""

    files: pa.RecordBatch
    """Rows of `FILES` or `RANGES`."""

    end: Numbers
    discovered: int
    checkpoint: int = 0

    def rows(self) -> pa.RecordBatch:
        """Return the files as rows of `SEEN_FILES`."""
        return seen_rows(self.files, self.end, self.checkpoint, self.discovered)


@dataclass(slots=True)
class Tail:
    """The files that were found and are in no run yet."""

    keys: SeenKeys
    pieces: tuple[Portion, ...]
    run: Run | None = None
    """The run that it went into."""
    is_frozen: bool = False
    """Part of a state that is to be written: joined with nothing younger."""

    def __len__(self) -> int:
        return len(self.keys)


def _octets(files: FoundFiles, unit: int) -> Octets:
    return octets_of(versions_of(files.sizes, files.modified // unit * unit, files.etags))


class Marks:
    """The files that were known at some time, and which of them a pass has come to since."""

    def __init__(self, parts: Sequence[SeenKeys]) -> None:
        self.parts = [(keys, np.zeros(len(keys), np.bool_)) for keys in parts]

    def add(self, names: Names, found: Mapping[int, NDArray[np.intp]]) -> None:
        """The pass has come to these; `found` has their positions in the parts of today, by id."""
        for keys, marks in self.parts:
            at = found.get(id(keys))
            # A part that has become another one since is searched for it: they are few.
            at = keys.find(names) if at is None else at
            marks[at[at >= 0]] = True


class SeenFiles(KnownFiles):
    """Every file ever seen. `add` under the coordinator's lock, the rest from any thread."""

    def __init__(
        self, runs: Iterable[Run] = (), tails: Iterable[Tail] = (), *, details: bool = False
    ) -> None:
        """With `details` what is known of versions and ends is kept in memory, too."""
        self.details = details
        self._lock = threading.Lock()
        self.runs = tuple(map(self._in_memory, runs))
        """Immutable runs in the index, the oldest first."""
        self.tails = tuple(tails)
        """What is in no run yet, the oldest first."""
        self._count = sum(keys.file_count for keys in self.parts())
        self._unstamped: list[Portion] = []
        self._stamped: deque[tuple[int, list[Portion]]] = deque(maxlen=_MOST_AHEAD)
        """Changes of the newest checkpoints, which may be taken back."""

    def _in_memory(self, run: Run) -> Run:
        # Versions and ends take 16 bytes a file, and only onOverwrite asks for them.
        if self.details or run.keys.version is None:
            return run
        return Run(run.keys.bare(), run.attachments)

    # What is known --------------------------------------------------------------------------

    @override
    def __len__(self) -> int:
        return self._count

    @override
    def are_known(self, paths: Sequence[str]) -> Flags:
        return self.contains(names_of(paths))

    def contains(self, names: Names) -> Flags:
        """For each name, whether it is known."""
        is_seen = np.zeros(len(names), np.bool_)
        for keys in self.parts():
            is_seen |= keys.find(names) >= 0
        return is_seen

    @override
    def compare(self, files: FoundFiles) -> tuple[Flags, Flags]:
        names = names_of(files.paths)
        is_seen, octets = np.zeros(len(names), np.bool_), np.zeros(len(names), np.uint8)
        for keys, new, rows in self._newest(names):
            octets[new] = keys.octets_at(rows)
            is_seen |= new
        changed = is_seen & (octets != _octets(files, 1))
        if changed.any():
            # Some requests give an object's time in these, others in seconds.
            changed &= octets != _octets(files, 1_000_000)
        return is_seen, changed

    def details_of(self, names: Names, marks: Marks | None = None) -> tuple[Flags, Words, Numbers]:
        """For each name whether it is known, its newest version and up to where it was taken.

        With `marks` they are marked as well, at no cost: a search takes microseconds a name.
        """
        is_seen = np.zeros(len(names), np.bool_)
        version, end = np.zeros(len(names), np.uint64), np.zeros(len(names), np.int64)
        for keys, new, rows in self._newest(names, marks):
            assert keys.version is not None
            assert keys.end is not None
            version[new], end[new] = keys.version[rows], keys.end[rows]
            is_seen |= new
        return is_seen, version, end

    def are_contents_known(self, contents: Collection[str]) -> Flags:
        """For each digest whether a file with this content was assigned; needs `details`."""
        _, version, _ = self.details_of(content_names(contents))
        known: Flags = version == 1
        return known

    def contents(self) -> list[str]:
        """All contents that are known; needs `details`."""
        return SeenKeys.merge(list(reversed(self.parts()))).contents(known=True)

    def _newest(
        self, names: Names, marks: Marks | None = None
    ) -> Iterator[tuple[SeenKeys, Flags, NDArray[np.intp]]]:
        """The newest entry of each name, by parts: which names it has, and in which rows."""
        is_seen = np.zeros(len(names), np.bool_)
        parts = self.parts()
        found = {id(keys): keys.find(names) for keys in parts}
        if marks is not None:
            marks.add(names, found)
        for keys in parts:
            at = found[id(keys)]
            new = (at >= 0) & ~is_seen
            is_seen |= new
            yield keys, new, at[new]

    def parts(self) -> list[SeenKeys]:
        """Return the keys of all files, those of the newest versions first."""
        with self._lock:
            parts: list[Run | Tail] = [*self.runs, *self.tails]
        # The newest first: of a file that has changed the newest version counts.
        return [part.keys for part in reversed(parts)]

    # Changes --------------------------------------------------------------------------------

    def add(self, keys: SeenKeys, piece: Portion, new: int) -> None:
        """More files, or newer versions of known ones; `new` of them were not known."""
        with self._lock:
            self._unstamped.append(piece)
            self._append(Tail(keys, (piece,)))
            self._count += new

    def add_contents(self, contents: Collection[str], *, known: bool) -> None:
        """These contents are known from now on, or not any more."""
        if contents:
            with self._lock:
                self._append(Tail(content_keys(contents, known=known), ()))

    def _append(self, tail: Tail) -> None:
        # Joined while they are of about one length: few parts to search, and few copies of each
        # entry.
        tails = [*self.tails, tail]
        while len(tails) > 1 and not tails[-2].is_frozen and tails[-2].run is None:
            older, newer = tails[-2:]
            if len(older) > _TIMES * len(newer):
                break
            joined = SeenKeys.merge([older.keys, newer.keys])
            tails[-2:] = [Tail(joined, (*older.pieces, *newer.pieces))]
        self.tails = tuple(tails)

    def stamp(self, checkpoint_id: int) -> None:
        """This checkpoint is the first that knows of what was added since the last call."""
        with self._lock:
            for piece in self._unstamped:
                piece.checkpoint = checkpoint_id
            self._stamped.append((checkpoint_id, self._unstamped))
            self._unstamped = []

    def unstamp(self, checkpoint_id: int) -> None:
        """This checkpoint, the newest, was aborted: the next one is the first."""
        with self._lock:
            while self._stamped and self._stamped[-1][0] >= checkpoint_id:
                self._unstamped = [*self._stamped.pop()[1], *self._unstamped]

    def whole(self) -> tuple[tuple[Run, ...], tuple[Tail, ...]]:
        """All as of now; the tails are copies, which stay as they are when theirs are flushed."""
        with self._lock:
            return self.runs, tuple(Tail(tail.keys, tail.pieces) for tail in self.tails)

    def freeze(self) -> tuple[tuple[Run, ...], tuple[Tail, ...]]:
        """All as of now; later additions are kept apart from it."""
        with self._lock:
            for tail in self.tails:
                tail.is_frozen = True
            return self.runs, self.tails

    def flushed(self, tails: Sequence[Tail], run: Run) -> Run:
        """These tails have become a run."""
        run = self._in_memory(run)
        with self._lock:
            # By identity: comparing two tails would compare their columns.
            kept = [tail for tail in self.tails if not any(tail is done for done in tails)]
            assert len(kept) == len(self.tails) - len(tails)
            # Millions may be found before the first checkpoint: their names are on disk now.
            written = {id(piece) for tail in tails for piece in tail.pieces}
            self._unstamped = [piece for piece in self._unstamped if id(piece) not in written]
            for _, pieces in self._stamped:
                pieces[:] = [piece for piece in pieces if id(piece) not in written]
            for tail in tails:
                tail.run, tail.pieces = run, ()
            self.runs, self.tails = (*self.runs, run), tuple(kept)
        return run

    def merged(self, runs: Sequence[Run], run: Run) -> None:
        """These runs, neighbours, have become one."""
        run = self._in_memory(run)
        with self._lock:
            # Runs may have been flushed behind them while they were merged.
            at = next(i for i, each in enumerate(self.runs) if each is runs[0])
            assert all(a is b for a, b in zip(self.runs[at:], runs, strict=False))
            self.runs = (*self.runs[:at], run, *self.runs[at + len(runs) :])

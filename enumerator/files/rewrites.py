"""Directories that a job writes again: what is new in them, and what is gone, is one batch.

Where `readyMarker` names one file, a pass holds back the new files that it finds. At its end it
looks once more into directories of which files are known: one is finished if the pass has seen all
that is there, and if its marker is not older than its new files. A marker that is older was left by
the job before; after `retractAfter` it counts nevertheless. What is new in a directory that is not
finished is listed again by the next pass, and what is gone from it waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ...checkpoint_meta.files.file_columns import Numbers
from ...checkpoint_meta.files.file_split import directory_of
from ...checkpoint_meta.index.fingerprints import names_of
from .discovery.api import Contents, Discovery, FoundFiles, joined
from .ledger.ledger import Ledger

_MOST: Final = 1_000_000
"""New files that are held back, some 200 bytes each; others of the pass are entered at once."""


class RewrittenDirectories:
    """On the listing's thread."""

    def __init__(self, ledger: Ledger, discovery: Discovery, delay: int) -> None:
        """`delay` in microseconds: from then on a marker counts that is older than a file."""
        self._ledger, self._discovery, self._delay = ledger, discovery, delay
        self._held: list[FoundFiles] = []
        self._count = 0
        self._known: set[int] = set()
        """Hashes of directories in which the pass has come to known files."""
        self._holds = False

    def begin(self) -> None:
        """A pass begins."""
        self._held, self._count, self._known = [], 0, set()
        # With nothing known nothing can be replaced: a first listing is not held in memory.
        self._holds = len(self._ledger.seen) > 0

    @property
    def has_room(self) -> bool:
        """True while new files are held back."""
        return self._holds and self._count < _MOST

    def hold(self, listed: FoundFiles, new: Numbers) -> None:
        """The pass has come to these, of which some are new."""
        kept = set(new.tolist())
        directories = {directory_of(p) for at, p in enumerate(listed.paths) if at not in kept}
        self._known |= set(map(hash, directories))
        if kept:
            self._held.append(_rows(listed, new))
            self._count += len(new)

    def end(
        self, absent: Mapping[str, bool], now: int
    ) -> tuple[FoundFiles, Sequence[str], frozenset[str]]:
        """The pass is complete: which held files are entered, and what is gone if it is not there.

        Args:
            absent: files that the pass has not come to, and whether that is so for long enough; at
                least those, and all of `directories`.
            now: microseconds since the epoch.

        Returns:
            The files, the paths, and the directories in which these two belong together.
        """
        held, self._held = joined(self._held), []
        rows: dict[str, list[int]] = {}
        for at, path in enumerate(held.paths):
            rows.setdefault(directory_of(path), []).append(at)
        is_known = self._ledger.seen.contains(names_of(held.paths))
        replacing = {directory_of(held.paths[at]) for at in np.flatnonzero(is_known).tolist()}
        replacing |= {directory_of(path) for path in absent}
        looked = sorted(replacing | {place for place in rows if hash(place) in self._known})
        contents = self._discovery.look_into(looked, self._ledger.seen) if looked else ()
        unfinished = {
            place
            for place, there in zip(looked, contents, strict=True)
            if not self._is_finished(there, _rows(held, rows.get(place, ())), now)
        }
        taken = [at for place, some in rows.items() if place not in unfinished for at in some]
        gone = [
            path
            for path, is_due in absent.items()
            if (place := directory_of(path)) not in unfinished and (is_due or place in rows)
        ]
        together = frozenset(place for place in replacing - unfinished if place in rows)
        return _rows(held, sorted(taken)), gone, together

    def directories(self) -> frozenset[str]:
        """Those of held files."""
        return frozenset(directory_of(path) for files in self._held for path in files.paths)

    def _is_finished(self, there: Contents, held: FoundFiles, now: int) -> bool:
        new = _rows(there.files, np.flatnonzero(self._ledger.is_new(there.files)))
        if there.waiting or _versions(new) != _versions(held):
            return False
        if not len(held):
            return True
        newest = int(held.modified.max())
        is_old = newest + self._delay <= now
        return there.marked is not None and (there.marked >= newest or is_old)


def _rows(files: FoundFiles, rows: Numbers | Sequence[int]) -> FoundFiles:
    at = np.asarray(rows, np.int64)
    paths = [files.paths[row] for row in at.tolist()]
    etags = None if files.etags is None else [files.etags[row] for row in at.tolist()]
    return FoundFiles(paths, files.sizes[at], files.modified[at], etags)


def _versions(files: FoundFiles) -> set[tuple[str, int, int]]:
    return set(zip(files.paths, files.sizes.tolist(), files.modified.tolist(), strict=True))

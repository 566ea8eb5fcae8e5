"""Files that are known and that complete listings do not come to: since when, and which are gone.

A pass marks what it lists among all files that were known when it began, in one byte for each. What
is not marked is absent; it is gone if it is absent for long enough and then not there when it is
looked for by its path. The state has the times of absent files alone, so that they hold over
restarts; they are lost where no checkpoint was cut after them, and counted again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.files.file_columns import Flags, Numbers, numbers_array
from ...checkpoint_meta.files.file_split import directory_of
from ...checkpoint_meta.index.fingerprints import Names, SeenKeys, names_in
from ...checkpoint_meta.index.run import read_files
from ...checkpoint_meta.stores.contract import StateStore
from .ledger.seen_files import GONE, SeenFiles

_MOST: Final = 100_000
"""Absent files of which the time is kept, 22 bytes each in a checkpoint; others come after them."""


class Absences:
    """On the listing's thread, but for what goes into checkpoints."""

    def __init__(self, seen: SeenFiles, delay: int) -> None:
        """`delay` in microseconds."""
        self._seen, self._delay = seen, delay
        self._known: list[tuple[SeenKeys, Flags]] = []
        """The parts of the index as the pass began, and which of their files it has come to."""
        self._since: tuple[Names, Numbers] = Names.join([]), np.zeros(0, np.int64)
        """Absent files, sorted, and when a complete pass was without each for the first time."""
        self.is_news = False
        """Files are absent of which no checkpoint has the time."""

    def begin(self) -> None:
        """A pass begins."""
        self._known = [(keys, np.zeros(len(keys), np.bool_)) for keys in self._seen.parts()]

    def mark(self, listed: Names) -> None:
        """The pass has come to these."""
        for keys, marks in self._known:
            at = keys.find(listed)
            marks[at[at >= 0]] = True

    def end(
        self, now: int, store: StateStore | None, directories: Collection[str]
    ) -> Mapping[str, bool]:
        """The pass is complete: files that are absent for long enough, or from these directories.

        Returns:
            Their paths, and whether it is long enough. These are not looked for again before they
            are absent for so long once more.

        Raises:
            StateError: an object of the index is gone or damaged.
        """
        absent = self._absent()
        names, times = self._since
        before = SeenKeys.sort(names, end=times)
        at = before.find(absent)
        since = np.full(len(absent), now, np.int64)
        if before.end is not None and len(before):
            since[at >= 0] = before.end[at[at >= 0]]
        # The oldest first: those that do not fit wait for them.
        kept = np.argsort(since, kind="stable")[:_MOST]
        absent, since = absent.take(kept), since[kept]
        is_due = since + self._delay <= now
        found: dict[str, bool] = {}
        if is_due.any() or (directories and len(absent)):
            attachments = None if store is None else Attachments(store, 0)
            found = dict.fromkeys(self._paths_of(absent.take(is_due), attachments), True)
            if directories:
                paths = self._paths_of(absent.take(~is_due), attachments)
                found |= {path: False for path in paths if directory_of(path) in directories}
            # One that is still there is left out by an option: it waits again.
            since[is_due] = now
        self.is_news = self.is_news or bool((at[kept] < 0).any())
        self._since = absent, since
        return found

    def _absent(self) -> Names:
        absent = [
            keys.names.take(~marks & (keys.version != GONE))
            for keys, marks in self._known
            if keys.version is not None
        ]
        self._known = []
        names = SeenKeys.sort(Names.join(absent)).names
        # An older part may have a file that a newer one knows to be gone.
        _, versions, _ = self._seen.details_of(names)
        return names.take(versions != GONE)

    def _paths_of(self, names: Names, attachments: Attachments | None) -> Iterator[str]:
        wanted = SeenKeys.sort(names)
        runs, tails = self._seen.whole()
        stored = (read_files(attachments.read(run.attachments[1])) for run in runs if attachments)
        new = (piece.files for tail in tails for piece in tail.pieces)
        left = np.ones(len(wanted), np.bool_)
        batch: pa.RecordBatch
        for batch in chain(chain.from_iterable(stored), new):
            paths = batch.column("path")
            at = wanted.find(names_in(paths))
            # Of a file that has changed there are several rows.
            rows = np.flatnonzero(at >= 0)
            rows = rows[left[at[rows]]]
            left[at[rows]] = False
            yield from dict.fromkeys(paths.take(numbers_array(rows)).to_pylist())

    # Checkpoints ----------------------------------------------------------------------------

    def cursors(self) -> Mapping[str, Any]:
        """Return the times, as JSON values: since -> fingerprints."""
        self.is_news = False
        names, since = self._since
        return {
            str(time): b64encode(names.take(since == time).to_bytes()).decode()
            for time in sorted({*since.tolist()})
        }

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        """Resume from what `cursors` gave."""
        parts, times = [], []
        for time, text in cursors.items():
            parts.append(Names.from_bytes(b64decode(text)))
            times.append(np.full(len(parts[-1]), int(time), np.int64))
        self._since = Names.join(parts), np.concatenate([*times, np.zeros(0, np.int64)])

"""Files that are known and that complete listings do not come to: since when, and which are gone.

A pass marks what it lists among all files that were known when it began, in one byte for each. What
is not marked is absent; it is gone if it is absent for long enough and then not there when it is
looked for by its path. The times of absent files are an object next to the index, so that they hold
over restarts; they are lost where no checkpoint was cut after them, and counted again. In memory
each absent file takes 24 bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.files.file_columns import Flags, numbers_array
from ...checkpoint_meta.files.file_split import directory_of
from ...checkpoint_meta.index.fingerprints import Names, SeenKeys, names_in
from ...checkpoint_meta.index.run import ABSENT, AbsentFiles, read_files
from .ledger.index_merge import release_free_memory
from .ledger.seen_files import GONE, Marks, SeenFiles

_MOST: Final = 100_000
"""Absent files that are looked for in a pass, the longest absent ones first."""


class Absences:
    """On the listing's thread, but for what goes into checkpoints."""

    def __init__(
        self,
        seen: SeenFiles,
        delay: int,
        attachments: Attachments | None,
        restored: AbsentFiles | None,
    ) -> None:
        """`delay` in microseconds; without `attachments` times are lost at a restart."""
        self._seen, self._delay, self._attachments = seen, delay, attachments
        self._marks = Marks(())
        self._since = restored or AbsentFiles()
        """Absent files, and when a complete pass was without each for the first time; before the
        first pass maybe others that are gone."""
        self._written = self._since.names
        """Those that an object has, and that were absent at the end of the pass before."""
        self._stored = len(self._since.names)
        """Number of files in the object."""
        self._publishing = threading.Lock()
        self.attachment: Attachment | None = None
        """The object that this process has written last."""
        self.is_news = self._is_untold = False
        """Files are absent of which no checkpoint has the time; untold while a pass goes on."""

    def begin(self) -> Marks:
        """A pass begins: what notes the files that it comes to."""
        self._marks = Marks(self._seen.parts())
        return self._marks

    def end(self, now: int, directories: Collection[str]) -> Mapping[str, bool]:
        """The pass is complete: files that are absent for long enough, or from these directories.

        Returns:
            Their paths, and whether it is long enough. These are not looked for again before they
            are absent for so long once more.

        Raises:
            StateError: an object of the index is gone or damaged.
        """
        absent = self._absent()
        at = self._since.find(absent)
        since = np.full(len(absent), now, np.int64)
        since[at >= 0] = self._since.since[at[at >= 0]]
        self._since = AbsentFiles(absent, since)
        self._write(is_news=bool((at < 0).any()))
        due = np.flatnonzero(since + self._delay <= now)
        if len(due) > _MOST:
            due = due[np.argsort(since[due], kind="stable")[:_MOST]]
        is_due = np.zeros(len(absent), np.bool_)
        is_due[due] = True
        found = {
            path: bool(is_due[at])
            for path, at in self._paths_of(absent, None if directories else is_due)
            if is_due[at] or directory_of(path) in directories
        }
        # One that is still there is left out by an option: it waits again.
        since[due] = now
        if len(absent) > _MOST:
            release_free_memory()
        return found

    def _absent(self) -> Names:
        parts, self._marks = list(reversed(self._marks.parts)), Marks(())
        # Contents are in the index, too, and no listing comes to them.
        parts = [(keys, ~marks & keys.are_files) for keys, marks in parts]
        names = Names.join([keys.names.take(left) for keys, left in parts])
        gone = [keys.version[left] == GONE for keys, left in parts if keys.version is not None]
        # An older part may have a file that a newer one knows to be gone: the newest entry counts.
        order = names.order()
        if any(flags.any() for flags in gone):
            order = order[~np.concatenate(gone)[order]]
        return names.take(order)

    def _paths_of(self, names: Names, chosen: Flags | None) -> Iterator[tuple[str, int]]:
        """Yield the path of each of the chosen names, or of all, and its position."""
        wanted = SeenKeys(names, None, None)
        left = np.ones(len(names), np.bool_) if chosen is None else chosen.copy()
        if not left.any():
            return
        runs, tails = self._seen.whole()
        attachments = self._attachments
        stored = (read_files(attachments.read(run.attachments[1])) for run in runs if attachments)
        new = (piece.files for tail in tails for piece in tail.pieces)
        batch: pa.RecordBatch
        for batch in chain(chain.from_iterable(stored), new):
            paths = batch.column("path")
            at = wanted.find(names_in(paths))
            # Of a file that has changed there are several rows.
            rows = np.flatnonzero(at >= 0)
            rows = rows[left[at[rows]]]
            left[at[rows]] = False
            texts = paths.take(numbers_array(rows)).to_pylist()
            yield from dict(zip(texts, at[rows].tolist(), strict=True)).items()

    # Checkpoints ----------------------------------------------------------------------------

    def _write(self, *, is_news: bool) -> None:
        """Write the times if the object lacks some, or has some of files that came back."""
        before, self._written = self._written, self._since.names
        if self._attachments is None:
            return
        # Not for each file that is found to be gone: millions are so in many passes.
        is_half_gone = 2 * len(self._written) < self._stored
        if not (is_news or is_half_gone or self._has_returned(before)):
            return
        with self._publishing:
            (self.attachment,) = self._attachments.publish((ABSENT, self._since.to_bytes()))
        self._stored, self._is_untold = len(self._written), self._is_untold or is_news

    def _has_returned(self, before: Names) -> bool:
        if len(before) == len(self._written):
            return False
        others: Flags = self._since.find(before) < 0
        return bool((self._seen.details_of(before.take(others))[1] != GONE).any())

    def notify_entered(self) -> None:
        """What the pass has found is in the ledger: a checkpoint before would not have it."""
        self.is_news, self._is_untold = self.is_news or self._is_untold, False

    def names_in_use(self) -> Collection[str]:
        """The object that the next checkpoint names."""
        # While one is being written it has no name yet, and must not be taken for garbage.
        with self._publishing:
            return () if self.attachment is None else (self.attachment.name,)

"""How long a reader's commit is looked for before it counts as missing.

By its name, never by a listing: a network file system may show an old listing for a minute. The
wait is bounded, since a `limit` downstream leaves readers that were closed half-way, which say so
where they still can, or that never ran, which nobody can tell.

Not here: what a commit or its absence means (`acknowledgements.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits

_FIRST_DELAY: Final = 0.05
"""Seconds between the first two looks; then twice as long each time."""


class CommitSearch:
    """Finds the reader commits of one state directory."""

    def __init__(self, commits: ReaderCommits, patience: float) -> None:
        """`patience` is how many seconds a commit is looked for that nothing explains."""
        self._commits = commits
        self._patience = patience

    def shown(self, ref: CheckpointRef) -> list[int]:
        """Readers of which a listing shows a commit; there may be more."""
        return self._commits.readers(ref)

    def find(self, ref: CheckpointRef, reader: int) -> ReaderCommit | None:
        """The commit of one reader, if it is there now."""
        return self._commits.find(ref, reader)

    def publish(self, commit: ReaderCommit) -> ReaderCommit:
        """Publish a commit of the driver's, unless the reader was first; the one that counts."""
        return self._commits.publish(commit)

    def missing(
        self, ref: CheckpointRef, readers: Iterable[int], look: Callable[[int], bool]
    ) -> list[int]:
        """Those of `readers` that have no commit, after as much patience as it takes.

        Args:
            ref: a checkpoint that Spark has completed.
            readers: all to which it assigned something.
            look: looks for the commit of one reader by name; true once it is found.
        """
        missing = [reader for reader in readers if not look(reader)]
        deadline, delay = time.monotonic() + self._patience, _FIRST_DELAY
        while missing:
            explained = set(self._commits.abandoned(ref)).issuperset(missing)
            left = deadline - time.monotonic()
            if not explained and left > 0:
                time.sleep(min(delay, left))
                delay *= 2
            # The last look is a real one: no cache of this machine is used.
            self._commits.refresh(ref)
            missing = [reader for reader in missing if not look(reader)]
            if explained or left <= 0:
                break
        return missing

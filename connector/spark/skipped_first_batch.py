"""Finds out whether the sink has skipped the first batch of a query, because it has that number.

Spark's file sink and Delta's transactions remember the numbers of the batches they have. A query
that counts from 0 and writes into their table has its first batches skipped: Spark completes them,
and no task runs. Later batches may be left unread for good reasons (`limit(0)`), which is a warning
there (`enumerator/coordinator/acknowledgements.py`).
"""

from __future__ import annotations

from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.coordinator.commit_search import CommitSearch
from ...errors import StateError, StateMissingError


class FirstBatch:
    """Checks, before the second batch is handed out, that readers ran in the first one."""

    def __init__(
        self, store: StateStore, history: CheckpointHistory, patience: float, *, may_be_unread: bool
    ) -> None:
        """`patience` is how many seconds the commits of readers are looked for."""
        self._store = store
        self._history = history
        self._commits = ReaderCommits(store)
        self._search = CommitSearch(self._commits, patience)
        self._is_known = may_be_unread
        self._seen = NO_CHECKPOINT

    def check(self, done: CheckpointRef) -> None:
        """Called with each checkpoint that Spark has completed.

        Raises:
            StateError: it is the first one that readers were given anything in, and none ran.
        """
        if self._is_known or done == self._seen:
            return
        readers = {reader for reader, _ in self._history.load(done).assigned}
        if readers:
            if self._is_first(done) and not self._was_read(done, readers):
                raise _unread(self._store.location, done)
            self._is_known = True
        self._seen = done

    def _is_first(self, done: CheckpointRef) -> bool:
        # A seed, and what only says that old files count as seen, gave nothing to anybody.
        parent = self._history.load(done).header.parent
        try:
            while parent != NO_CHECKPOINT:
                header = self._history.load(parent).header
                if header.assigned_splits:
                    return False
                parent = header.parent
        except StateMissingError:
            return False  # Deleted long ago.
        return True

    def _was_read(self, done: CheckpointRef, readers: set[int]) -> bool:
        if self._commits.readers(done) or self._commits.abandoned(done):
            return True
        found = self._search.missing(
            done, readers, lambda reader: self._commits.find(done, reader) is not None
        )
        return len(found) < len(readers) or bool(self._commits.abandoned(done))


def _unread(where: str, done: CheckpointRef) -> StateError:
    return StateError(
        "no reader ran in the first batch of this query, although Spark has completed it",
        where,
        f"no reader commit of {done}",
        "a sink that takes the batch",
        "The sink probably has a batch of this number already, from another query, and skipped it. "
        "Nothing was read. Start with a new checkpointLocation, and either write into another "
        "table or continue the old query: prepare that checkpointLocation with `sluice "
        "import-spark` or `sluice fork` and --continue-query. If the query is to read nothing "
        "(limit(0), a foreachBatch that ignores its rows, a join with an empty table), set "
        "allowUnreadFirstBatch=true.",
    )

"""A checkpoint that a new query starts from: the sink must have it."""

from __future__ import annotations

from ...checkpoint_meta.checkpoint_snapshot import committed_on
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.settings import StartingState
from ...errors import OptionError
from .spark_checkpoint import committed_in_log


def savepoint_at(
    store: StateStore, ref: CheckpointRef, history: CheckpointHistory, *, is_in_table: bool = False
) -> StartingState:
    """The savepoint at a retained checkpoint, with what the host's log says of it.

    `is_in_table`: the table has its batch, which the log may not say after a kill.

    Raises:
        OptionError: readers have committed rows that the sink does not have, so a new query that
            starts there would leave them out.
    """
    if is_in_table:
        return StartingState(store, ref, ref.checkpoint)
    lineage = history.header(ref).lineage
    committed = committed_on(
        lambda each: history.header(each).parent, [ref], committed_in_log(store, lineage)
    )
    commits, link = ReaderCommits(store), ref
    while committed is not None and link.checkpoint > committed:
        header = history.header(link)
        if commits.readers(header.identity):
            raise _not_in_sink(store, link, committed)
        link = header.parent
    return StartingState(store, ref, committed)


def _not_in_sink(store: StateStore, ref: CheckpointRef, committed: int) -> OptionError:
    finish = "start the old query again until it has ended its batch"
    return OptionError(
        "a new query would leave out rows that the sink does not have",
        store.location,
        f"rows that readers have committed for {ref}, whose batch is not in commits/",
        f"checkpoint {committed} or an earlier one" if committed else "a batch in commits/",
        f"Name checkpoint {committed}, or {finish}." if committed else f"{finish.capitalize()}.",
    )

"""Makes the first checkpoint of a state directory without a query: what a new query begins after.

One flat document: nothing is assigned in it, nothing is in flight, and what it refers to is in its
own directory. A tool writes it under an epoch that it has claimed, then the seed that names it
(`checkpoint_meta/seed.py`); killed before that it has written nothing that counts.

Not here: what is in a source's state (the source knows), and who may write where (connector).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final, Generic

from ..checkpoint_meta.attachments import AdoptedAttachments, Attachments
from ..checkpoint_meta.checkpoint import Checkpoint, CheckpointHeader, format_of, rows_of
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reader_commit import ReaderCommits
from ..checkpoint_meta.reference import CheckpointRef
from ..checkpoint_meta.state_store import StateStore
from .acknowledgements import Acknowledgements
from .api import EnumeratorSource, SplitEnumerator, SplitT, StateT
from .async_calls import AsyncCalls
from .commit_search import CommitSearch
from .context import CoordinatorContext
from .restore import RestoredState, restore
from .sent_back import SentBackSplits
from .settings import StartingState
from .threads import Threads

_FIRST: Final = 1
"""Id of the checkpoint that is made."""


@dataclass
class StandingState(Generic[SplitT, StateT]):
    """A whole state that no query is at work on."""

    source: EnumeratorSource[SplitT, StateT]
    enumerator: SplitEnumerator[SplitT, StateT]
    sent_back: SentBackSplits
    context: CoordinatorContext[SplitT]
    abandoned_splits: int = 0
    """Of the checkpoint that it was taken of: Spark went on without them."""


def standing_state(
    source: EnumeratorSource[SplitT, StateT], restored: RestoredState[StateT]
) -> StandingState[SplitT, StateT]:
    """What a coordinator would go on with, without one."""
    threads = Threads(600.0, source.name, AsyncCalls)
    context: CoordinatorContext[SplitT] = CoordinatorContext(
        source.split_serializer, threads.calls, threads.wake, True, (None, 1), lambda _: None
    )
    context.inboxes.put_back(restored.waiting)
    # Whether it was tried often enough is for the query to say, which has the option.
    sent_back = SentBackSplits(sys.maxsize, restored.attempts, restored.quarantined)
    enumerator = source.create_enumerator(context, restored.state)
    return StandingState(source, enumerator, sent_back, context)


def state_after(
    savepoint: StartingState,
    source: EnumeratorSource[SplitT, StateT],
    attachments: Attachments | None = None,
) -> StandingState[SplitT, StateT]:
    """The state that a query would begin with which starts from `savepoint`.

    Args:
        savepoint: a checkpoint of another directory, which is only read.
        source: that of the savepoint.
        attachments: of the directory that the state is to be written into, where it is: what it
            refers to is copied.

    Raises:
        StateError: a link of its chain is missing, damaged, newer, or of another source.
    """
    history, commits = CheckpointHistory(savepoint.store), ReaderCommits(savepoint.store)
    read = Attachments(savepoint.store, 0)
    adopted = AdoptedAttachments(savepoint.store, attachments) if attachments else read
    restored = restore(history, savepoint.ref, source, adopted)
    state = standing_state(source, restored)
    lock = Threads(600.0, source.name, AsyncCalls).lock
    search = CommitSearch(commits, 0.0)
    acknowledgements = Acknowledgements(
        source, history, search, lock, state.context, state.enumerator, state.sent_back
    )
    acknowledgements.adopt_all(savepoint, restored.counted)
    state.abandoned_splits = acknowledgements.abandoned_splits
    return state


def plant(
    state: StandingState[Any, Any],
    store: StateStore,
    attachments: Attachments,
    epoch: int,
    created: int,
) -> CheckpointRef:
    """Publish `state` as the first checkpoint of a directory; the name of it.

    Args:
        state: all of it goes in.
        store: the directory, which no query has read from.
        attachments: of that directory.
        epoch: the caller's.
        created: microseconds since the epoch.
    """
    state.enumerator.snapshot_state(_FIRST)
    frozen = state.enumerator.freeze_state()
    assert frozen is not None, "only of sources that keep their whole state"
    written = frozen.write(attachments)
    ref = CheckpointRef(_FIRST, epoch)
    source = state.source
    header = CheckpointHeader(
        format=format_of(in_flight=False, attached=bool(written.attachments)),
        kind="delta",
        checkpoint=ref.checkpoint,
        epoch=ref.epoch,
        enumerator=source.name,
        split_version=source.split_serializer.version,
        state_version=source.state_serializer.version,
        created=created,
        assigned_splits=0,
        state_rows=rows_of(written.rows),
        attempts=dict(state.sent_back.attempts),
        quarantined=list(state.sent_back.quarantined_at_cut()),
        waiting=dict(state.context.inboxes.waiting),
        attachments=list(written.attachments),
    )
    split_schema = source.split_serializer.serialize([]).schema
    checkpoint = Checkpoint(header, split_schema, written.rows[0].schema, (), written.rows)
    CheckpointHistory(store).publish(checkpoint)
    return ref

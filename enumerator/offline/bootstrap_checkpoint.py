"""Makes the first checkpoint of a state directory without a query: what a new query begins after.

One flat document: nothing is assigned in it, nothing is in flight, and what it refers to is in its
own directory. A tool writes it under an epoch that it has claimed, then the seed that names it
(`checkpoint_meta/documents/bootstrap_record.py`); killed before that it has written nothing that
counts.

Not here: what is in a source's state (the source knows), and who may write where (connector).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic

from ...checkpoint_meta.documents.attachments import AdoptedAttachments, Attachments
from ...checkpoint_meta.documents.checkpoint import Checkpoint, CheckpointHeader, rows_of
from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
    new_lineage,
)
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ..api import SplitEnumerator, SplitT, StateT
from ..batch_budget import UNLIMITED
from ..coordinator.acknowledgements import CommitCounter
from ..coordinator.context import CoordinatorContext, Readers
from ..coordinator.in_flight import CheckpointsInFlight, CustomEvent
from ..coordinator.restore import Adoption, RestoredState, restore
from ..coordinator.returned_splits import ReturnedSplits
from ..coordinator.threads import AsyncCalls, Threads
from ..settings import StartingState
from ..source_api import EnumeratorSource

_FIRST: Final = 1
"""Id of the checkpoint that is made."""


@dataclass
class OfflineState(Generic[SplitT, StateT]):
    """A whole state while no query runs."""

    source: EnumeratorSource[SplitT, StateT]
    enumerator: SplitEnumerator[SplitT, StateT]
    returned_splits: ReturnedSplits
    flight: CheckpointsInFlight
    counter: CommitCounter[SplitT]


def offline_state(
    source: EnumeratorSource[SplitT, StateT], restored: RestoredState[StateT]
) -> OfflineState[SplitT, StateT]:
    """The state that a coordinator would resume with, without starting one."""
    # Nothing runs on them: the enumerator is never started.
    threads = Threads(600.0, source.name, AsyncCalls)
    # Nothing is in flight: it collects the events that still wait for their readers.
    flight = CheckpointsInFlight(NO_IDENTITY, 0, UNLIMITED)
    readers = Readers(None, 1, lambda _: None)
    # Whether it was tried often enough is for the query to say, which has the option.
    returned_splits = ReturnedSplits(sys.maxsize, restored.attempts, restored.quarantined)
    context: CoordinatorContext[SplitT] = CoordinatorContext(
        flight,
        source.split_serializer,
        threads,
        readers,
        bounded=True,
        returned_splits=returned_splits,
    )
    enumerator = source.create_enumerator(context, restored.state)
    counter = CommitCounter(source, enumerator, returned_splits, threads.journal)
    state = OfflineState(source, enumerator, returned_splits, flight, counter)
    for name, events in restored.waiting.items():
        _send(state, int(name), events)
    return state


def _send(state: OfflineState[Any, Any], reader: int, events: Sequence[Any]) -> None:
    for event in events:
        state.flight.send(reader, CustomEvent(event))


def state_after(
    savepoint: StartingState,
    source: EnumeratorSource[SplitT, StateT],
    attachments: Attachments | None = None,
) -> OfflineState[SplitT, StateT]:
    """The state that a query would begin with which starts from `savepoint`.

    Args:
        savepoint: a checkpoint of another directory, which is only read.
        source: that of the savepoint.
        attachments: of the directory that the state is to be written into, where it is: what it
            refers to is copied.

    Raises:
        StateError: a link of its chain is missing, damaged, newer, or of another source.
    """
    history = CheckpointHistory(savepoint.store)
    read = Attachments(savepoint.store, 0)
    adopted = AdoptedAttachments(savepoint.store, attachments) if attachments else read
    restored = restore(history, savepoint.ref, source, adopted)
    state = offline_state(source, restored)
    Adoption(savepoint, state.counter, partial(_send, state)).run()
    return state


def publish_bootstrap(
    state: OfflineState[Any, Any],
    store: StateStore,
    attachments: Attachments,
    epoch: int,
    created: int,
) -> CheckpointIdentity:
    """Publish `state` as the first checkpoint of a directory, with a lineage of its own.

    Args:
        state: all of it goes in.
        store: the directory, which no query has read from.
        attachments: of that directory.
        epoch: the caller's.
        created: microseconds since the epoch.
    """
    state.enumerator.snapshot_state(_FIRST)
    frozen = state.enumerator.freeze_state()
    assert frozen is not None, "only for sources that keep their whole state"
    # The runs become durable before the checkpoint that names them: after a crash in between
    # nothing refers to them.
    written = frozen.write(attachments)
    ref = CheckpointRef(_FIRST, epoch)
    source = state.source
    header = CheckpointHeader(
        # Not a base, which replaces a checkpoint: without a parent this is the whole state.
        kind="delta",
        checkpoint=ref.checkpoint,
        epoch=ref.epoch,
        lineage=new_lineage().lineage,
        enumerator=source.name,
        split_version=source.split_serializer.version,
        state_version=source.state_serializer.version,
        created=created,
        assigned_splits=0,
        state_rows=rows_of(written.rows),
        attempts=dict(state.returned_splits.attempts),
        quarantined=list(state.returned_splits.quarantined_at_cut()),
        waiting={
            str(r): state.flight.open_record.events(r)
            for r in sorted(state.flight.open_record.sent)
        },
        attachments=list(written.attachments),
    )
    split_schema = source.split_serializer.serialize([]).schema
    checkpoint = Checkpoint(header, split_schema, written.rows[0].schema, (), written.rows)
    signed = checkpoint.signed()
    CheckpointHistory(store).publish(signed)
    return signed.identity

"""A state while no query runs: compaction, and the checkpoint that a new query begins after.

That checkpoint is one flat document: nothing is assigned in it, nothing is in flight, and what
it refers to is in its own directory. A tool writes it under an epoch that it has claimed, then the
seed that names it (`checkpoint_meta/documents/query_records.py`); killed before that it has
written nothing that counts.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Generic

from ...checkpoint_meta.documents.attachments import AdoptedAttachments, Attachment, Attachments
from ...checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    CustomEvent,
    rows_of,
)
from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
    new_lineage,
)
from ...checkpoint_meta.documents.epochs import (
    check_not_fenced,
    claim_epoch,
    new_nonce,
    open_format,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.retention import CommitsGo, Retention
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateError, StateMissingError
from ..api import SplitEnumerator, SplitT, StateT
from ..batch_budget import UNLIMITED
from ..coordinator.acknowledgements import CommitCounter
from ..coordinator.context import CoordinatorContext, Readers
from ..coordinator.in_flight import CheckpointsInFlight
from ..coordinator.restore import RestoredState, adopt, base_of, restore
from ..coordinator.returned_splits import ReturnedSplits
from ..coordinator.subtask_gateway import Gateways
from ..coordinator.threads import AsyncCalls, Threads
from ..settings import StartingState
from ..source_api import EnumeratorSource

_FIRST: Final = 1
"""Id of the checkpoint that is made."""


@dataclass(frozen=True)
class OfflineClaim:
    """The epoch of a tool that changes a state. A query that begins later fences the tool."""

    store: StateStore
    epoch: int
    nonce: str = ""

    @classmethod
    def take(cls, store: StateStore, purpose: str) -> OfflineClaim:
        """Claim the next epoch of `store`, which fences a query that has begun before."""
        open_format(store)
        nonce = new_nonce()
        return cls(store, claim_epoch(store, purpose, nonce), nonce)

    @cached_property
    def attachments(self) -> Attachments:
        """The attachments that are written under this claim."""
        return Attachments(self.store, self.epoch)

    def check(self) -> None:
        """Raise FencedError if a query has begun."""
        check_not_fenced(self.store, self.epoch, self.nonce)


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
        Gateways(flight),
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
        Gateways(state.flight)[reader].send(CustomEvent(event=event))


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
    adopt(savepoint, state.counter, partial(_send, state))
    return state


def publish_bootstrap(
    state: OfflineState[Any, Any], claim: OfflineClaim, created: int
) -> CheckpointIdentity:
    """Publish `state` as the first checkpoint of a directory, with a lineage of its own.

    Args:
        state: all of it goes in.
        claim: of the directory, which no query has read from.
        created: microseconds since the epoch.
    """
    state.enumerator.snapshot_state(_FIRST)
    frozen = state.enumerator.freeze_state()
    assert frozen is not None, "only for sources that keep their whole state"
    # The runs become durable before the checkpoint that names them: after a crash in between
    # nothing refers to them.
    written = frozen.write(claim.attachments)
    ref = CheckpointRef(_FIRST, claim.epoch)
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
    CheckpointHistory(claim.store).publish(signed)
    return signed.identity


class Compaction:
    """Makes one state directory small, under an epoch that was claimed for it.

    Of the checkpoints that are retained two get a base: the oldest, whose runs are merged, and the
    newest, which refers to the same runs and one more. Then nothing needs what is below the oldest,
    nor the bases between. Each step leaves every retained checkpoint with a chain that can be
    restored: a base is only replaced or dropped where the checkpoints below it are all there.
    So anything that it is killed at, Spark's offset leads to a whole state.

    Fenced like a query: one that begins meanwhile stops it before its next step.
    """

    def __init__(
        self,
        claim: OfflineClaim,
        source: EnumeratorSource[Any, Any],
        commits_go: CommitsGo = list,
    ) -> None:
        self._commits_go = commits_go
        self._store = claim.store
        self._source = source
        self._epoch = claim.epoch
        self._attachments = claim.attachments
        self._check_still_ours = claim.check

    def run(self, newest: CheckpointRef, retained: int, younger_than: int | None = None) -> None:
        """Compact what leads to `newest`.

        Args:
            newest: a checkpoint that is in Spark's log. What descends from it stays as it is.
            retained: so many before it stay.
            younger_than: those cut after it stay, too; microseconds since the epoch.

        Raises:
            FencedError: a query has begun.
            StateError: the state is damaged; nothing is deleted then.
        """
        retention = Retention(
            self._store,
            CheckpointHistory(self._store),
            self._epoch,
            self._check_still_ours,
            self._attachments,
            commits_go=self._without_data_files,
        )
        oldest = retention.oldest(newest, retained, younger_than)
        if oldest is not None and oldest != newest and self._may_write(oldest):
            self._write_base(oldest, {oldest}, merge=True)
        floor = self._floor(newest, oldest)
        between = self._between(newest, floor)
        if between or not self._is_on_top_of(newest, floor):
            self._write_base(newest, {*between, newest}, merge=False)
        for ref in between:
            self._check_still_ours()
            CheckpointHistory(self._store).drop_base(ref)
        retention.prune(newest, retained, younger_than)

    def _without_data_files(
        self, checkpoints: Collection[CheckpointIdentity]
    ) -> Collection[CheckpointIdentity]:
        """Return those whose commits name no other files: only a query knows where to sweep."""
        commits = ReaderCommits(self._store)
        return [
            each
            for each in self._commits_go(checkpoints)
            if not any(c.written_files is not None or c.bad_records for c in commits.of(each))
        ]

    def _may_write(self, ref: CheckpointRef) -> bool:
        """True if the base of `ref` is not there, or can be done without for a moment."""
        if ref not in CheckpointHistory(self._store).bases():
            return True
        history = CheckpointHistory(self._store, {ref})
        try:
            # The proof that it can be done without is to do without it.
            restore(history, ref, self._source, Attachments(self._store, 0))
        except StateError:
            return False
        return True

    def _floor(self, newest: CheckpointRef, oldest: CheckpointRef | None) -> CheckpointRef | None:
        """The base that everything retained rests on; None if that is the very beginning."""
        history = CheckpointHistory(self._store)
        bases, ref = set(history.bases()), newest
        lowest: CheckpointRef | None = None
        while ref != NO_CHECKPOINT:
            if ref in bases and ref != newest:
                lowest = ref
            if ref == oldest and ref in bases:
                return ref
            try:
                ref = history.header(ref).parent
            except StateMissingError:
                # What is gone was deleted because of the lowest base.
                return lowest or newest
        return None

    def _between(
        self, newest: CheckpointRef, floor: CheckpointRef | None
    ) -> Collection[CheckpointRef]:
        history = CheckpointHistory(self._store)
        above = NO_CHECKPOINT if floor is None else floor
        # What a newer incarnation has written is not ours to drop.
        return [ref for ref in history.bases() if above < ref < newest and ref.epoch <= self._epoch]

    def _is_on_top_of(self, newest: CheckpointRef, floor: CheckpointRef | None) -> bool:
        """True if the base of `newest` is there, and has the floor's runs and one more at most."""
        history = CheckpointHistory(self._store)
        if newest not in history.bases():
            return False
        if newest == floor or not self._may_write(newest):
            return True
        below = [] if floor is None else _runs(history.read_base(floor))
        mine = _runs(history.read_base(newest))
        return mine[: len(below)] == below and len(mine) <= len(below) + 2

    def _write_base(
        self, ref: CheckpointRef, passed_over: Collection[CheckpointRef], *, merge: bool
    ) -> None:
        history = CheckpointHistory(self._store, passed_over)
        restored = restore(history, ref, self._source, self._attachments)
        enumerator = offline_state(self._source, restored).enumerator
        while merge and (improve := enumerator.improve_state()):
            improve(self._attachments)
            self._check_still_ours()
        frozen = enumerator.freeze_state()
        assert frozen is not None, "only for sources that keep their whole state"
        written = frozen.write(self._attachments)
        version = self._source.state_serializer.version
        base = base_of(history.load(ref), restored.quarantined, written, version)
        self._check_still_ours()
        # `publish_base` keeps a base that can be read. A crash between dropping and publishing
        # leaves none, which `_may_write` has permitted.
        if ref in history.bases():
            history.drop_base(ref)
        history.publish_base(base)


def _runs(base: Checkpoint) -> list[Attachment]:
    # Two objects each; what has no second one is no run, and may be another one in each base.
    attached = base.header.attachments
    return attached[: len(attached) // 2 * 2]

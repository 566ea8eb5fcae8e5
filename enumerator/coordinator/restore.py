"""Rebuilds an enumerator's state from a chain of checkpoints, and makes bases of chains.

A savepoint is a chain in another directory. A query that starts from it counts every commit that
the savepoint's state has not: its events, the splits sent back, the remainders. What a reader has
no commit for is read by the new query, unless the old one is known to have continued without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic

from typing_extensions import override

from ...checkpoint_meta.checkpoint_snapshot import (
    CheckpointSnapshot,
    in_flight,
    snapshot_of,
    snapshots,
)
from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    CustomEvent,
    QuarantinedSplit,
    quarantined_in,
    rows_of,
)
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import (
    continuations_of,
    entries_of,
    readers_of,
    sent_to,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...errors import StateCorruptError, StateMissingError
from ..api import StateT
from ..large_state import StateDocument, WrittenState
from ..settings import StartingState
from ..source_api import EnumeratorSource
from .acknowledgements import CommitCounter
from .in_flight import continued_by


@dataclass(frozen=True)
class RestoredState(Generic[StateT]):
    """Everything a coordinator needs to go on after a checkpoint."""

    state: StateT | None = None
    """The enumerator's; None before the first checkpoint."""

    attempts: dict[str, int] = field(default_factory=dict)
    waiting: Mapping[str, list[Any]] = field(default_factory=dict)
    """Reader -> custom events that go with its next splits."""

    quarantined: Sequence[QuarantinedSplit] = ()
    deltas: int = 0
    """Documents that were folded in addition to a base."""

    rows: int = 0
    """Rows of state and assignments in those documents."""

    cursors: Mapping[str, Any] = field(default_factory=dict)
    """See `CheckpointHeader.cursors`."""

    attachments: Sequence[Attachment] = ()
    """Objects of this state directory that belong to the state."""

    orders: int = 0
    """See `CheckpointHeader.orders`; of the directory that was restored from."""


def restore(
    history: CheckpointHistory,
    ref: CheckpointRef,
    source: EnumeratorSource[Any, StateT],
    attachments: Attachments,
) -> RestoredState[StateT]:
    """The state as of `ref`: the same for every call, on every host.

    A base of which an object is gone or damaged is skipped for the chain below it, like a base
    that is damaged itself.

    Raises:
        StateError: a link of the chain is missing, damaged, newer, or of another source.
    """
    if ref == NO_CHECKPOINT:
        return RestoredState()
    while True:
        # Each round goes without one more base, so the loop ends.
        links = history.chain(ref)
        try:
            return _restored(links, source, attachments)
        except (StateMissingError, StateCorruptError) as error:
            if links[0].header.kind != "base" or not links[0].header.attachments:
                raise
            history.skip_base(links[0].ref, error)


def _restored(
    links: Sequence[Checkpoint], source: EnumeratorSource[Any, StateT], attachments: Attachments
) -> RestoredState[StateT]:
    for checkpoint in links:
        _check_source(checkpoint.header, source)
    owned = _Owned(attachments)
    documents = [StateDocument.of(checkpoint) for checkpoint in links]
    state = source.restore_state(documents, owned)
    newest = links[-1].header
    deltas = [checkpoint for checkpoint in links if checkpoint.header.kind == "delta"]
    return RestoredState(
        state,
        dict(newest.attempts),
        newest.waiting,
        quarantined_in(links),
        len(deltas),
        sum(delta.header.state_rows + delta.header.assigned_splits for delta in deltas),
        newest.cursors,
        owned.given,
        newest.orders,
    )


class _Owned(Attachments):
    """Remembers in which order a source has taken its attachments over."""

    def __init__(self, inner: Attachments) -> None:
        self._inner = inner
        self.given: list[Attachment] = []

    @override
    def read(self, attachment: Attachment) -> bytes:
        return self._inner.read(attachment)

    @override
    def own(self, *attachments: Attachment) -> tuple[Attachment, ...]:
        owned = self._inner.own(*attachments)
        self.given.extend(owned)
        return owned


def _check_source(header: CheckpointHeader, source: EnumeratorSource[Any, Any]) -> None:
    if header.enumerator != source.name:
        raise StateCorruptError(
            "the state was written by another source",
            str(header.ref),
            header.enumerator,
            source.name,
            "Use the source that created this state, or start with a new checkpointLocation.",
        )
    # Newer versions are refused before a source looks at the columns.
    source.state_serializer.check_version(header.state_version)
    source.split_serializer.check_version(header.split_version)


def folded_state(
    history: CheckpointHistory,
    ref: CheckpointRef,
    source: EnumeratorSource[Any, StateT],
    attachments: Attachments,
) -> WrittenState:
    """The whole state as of `ref`, for sources whose enumerator does not keep it itself."""
    restored = restore(history, ref, source, attachments)
    assert restored.state is not None, f"{ref} has no state"
    rows = source.state_serializer.serialize_all(restored.state)
    return WrittenState(rows, restored.attachments)


def base_of(
    head: Checkpoint,
    quarantined: Sequence[QuarantinedSplit],
    written: WrittenState,
    state_version: int,
) -> Checkpoint:
    """The whole state as of the checkpoint `head` as one document.

    Args:
        head: says what belongs to the protocol, whole: attempts, waiting events, counted commits.
        quarantined: all splits given up on, up to this checkpoint.
        written: the enumerator's state.
        state_version: of the serializer that made its rows.
    """
    header = CheckpointHeader(
        **{
            # With the keys that this release does not know: a later one may need them.
            **head.header.model_dump(),
            "kind": "base",
            "stands_for": head.identity.checksum,
            "state_version": state_version,
            # A base is state alone. What its checkpoint assigned is assigned in that state already.
            "assigned_splits": 0,
            "state_rows": rows_of(written.rows),
            "quarantined": list(quarantined),
            "released": [],
            "sent": {},
            "budgets": {},
            "attachments": list(written.attachments),
        }
    )
    return Checkpoint(header, head.split_schema, written.rows[0].schema, (), written.rows)


def adopt(
    savepoint: StartingState,
    counter: CommitCounter[Any],
    send_again: Callable[[int, Sequence[Any]], None],
) -> None:
    """Count what the savepoint's state has not counted. Under the new query's lock."""
    history, ref = CheckpointHistory(savepoint.store), savepoint.ref
    commits = ReaderCommits(savepoint.store)
    is_complete = snapshot_of(history, commits, ref, savepoint.committed).is_complete
    links = snapshots(
        history,
        commits,
        [link.ref for link in in_flight(history, ref)],
        by_name=True,
        proven=ref.checkpoint if is_complete else 0,
        committed=savepoint.committed,
    )

    def adopt_part(link: CheckpointSnapshot, reader: int) -> None:
        source = counter.source
        serializer, find = source.split_serializer, commits.find
        entries = entries_of(link.checkpoint, reader, serializer, find)
        part = [split for _, split in entries]
        commit = link.verdict(reader)
        if commit is not None:
            # What a later reader has gone on with is that one's, as far as the savepoint goes.
            read = (other.checkpoint for other in links if other.verdict(reader) is not None)
            sent = chain.from_iterable(continuations_of(each, reader) for each in read)
            counter.count(commit, part, continued_by(sent, link.ref))
            return
        # An unread continuation is dropped where what it continues comes back with the
        # commit that it resumes from. Where that is counted already, the continuation has it.
        comes_back = {other.ref for other in links if reader not in other.counted}
        splits = [s for origin, s in entries if s is not None and origin not in comes_back]
        if link.is_complete:
            counter.abandon(reader, link.ref, len(splits))
            splits = [split for split in splits if source.is_unbounded(split)]
        else:
            stream = sent_to(link.checkpoint, reader)
            send_again(reader, [s.event for s in stream if isinstance(s, CustomEvent)])
        if splits:
            counter.enumerator.add_splits_back(splits, reader)

    for link in reversed(links):
        for reader in readers_of(link.checkpoint):
            if reader not in link.counted:
                adopt_part(link, reader)

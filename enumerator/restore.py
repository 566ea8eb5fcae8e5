"""Rebuilds an enumerator's state from a chain of checkpoints, and compacts chains into bases.

Not here: reading and writing the chain (`checkpoint_meta/history.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from ..checkpoint_meta.checkpoint import Checkpoint, CheckpointHeader, QuarantinedSplit, rows_of
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from ..errors import StateCorruptError
from .api import EnumeratorSource

StateT = TypeVar("StateT")


@dataclass(frozen=True)
class RestoredState(Generic[StateT]):
    """Everything a coordinator needs to go on after a checkpoint."""

    state: StateT | None = None
    """The enumerator's; None before the first checkpoint."""

    attempts: dict[str, int] = field(default_factory=dict)
    waiting: Mapping[str, list[Any]] = field(default_factory=dict)
    """Reader -> custom events that go with its next splits."""

    quarantined: Sequence[QuarantinedSplit] = ()
    counted: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """See `CheckpointHeader.counted`: the commits that are still to be counted are the others."""

    chain_length: int = 0
    """Documents that were folded."""


def restore(
    history: CheckpointHistory, ref: CheckpointRef, source: EnumeratorSource[Any, StateT]
) -> RestoredState[StateT]:
    """The state as of `ref`: the same for every call, on every host.

    Raises:
        StateError: a link of the chain is missing, damaged, newer, or of another source.
    """
    if ref == NO_CHECKPOINT:
        return RestoredState()
    state: StateT | None = None
    quarantined: list[QuarantinedSplit] = []
    attempts: dict[str, int] = {}
    chain = history.chain(ref)
    for checkpoint in chain:
        state = _advance(source, state, checkpoint)
        attempts = dict(checkpoint.header.attempts)
        quarantined.extend(checkpoint.header.quarantined)
    newest = chain[-1].header
    return RestoredState(state, attempts, newest.waiting, quarantined, newest.counted, len(chain))


def _advance(
    source: EnumeratorSource[Any, StateT], state: StateT | None, checkpoint: Checkpoint
) -> StateT | None:
    header = checkpoint.header
    if header.enumerator != source.name:
        raise StateCorruptError(
            "the state was written by another source",
            str(header.ref),
            header.enumerator,
            source.name,
            "Use the source that began this state, or start with a new checkpointLocation.",
        )
    serializer = source.state_serializer
    # A snapshot of nothing has no rows in the file, but it is still a snapshot.
    batches = checkpoint.state or [_empty(checkpoint.state_schema)]
    changes = [serializer.read(header.state_version, batch) for batch in batches]
    for earlier in changes[:-1]:
        state = source.advance_state(state, earlier, ())
    return source.advance_state(state, changes[-1], assigned_splits(source, checkpoint))


def assigned_splits(source: EnumeratorSource[Any, Any], checkpoint: Checkpoint) -> list[Any]:
    """The splits a checkpoint assigned, over all readers."""
    version = checkpoint.header.split_version
    read = source.split_serializer.read
    return [split for _, batch in checkpoint.assigned for split in read(version, batch)]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def base_of(
    history: CheckpointHistory, ref: CheckpointRef, source: EnumeratorSource[Any, StateT]
) -> Checkpoint:
    """The whole state as of `ref` as one document: what the chain folds to."""
    restored = restore(history, ref, source)
    head = history.load(ref)
    if restored.state is None:
        message = f"{ref} has no state"
        raise AssertionError(message)
    rows = source.state_serializer.serialize_all(restored.state)
    header = CheckpointHeader(
        **{
            **head.header.model_dump(),
            "kind": "base",
            "state_version": source.state_serializer.version,
            "assigned_splits": 0,
            "state_rows": rows_of(rows),
            "quarantined": list(restored.quarantined),
            "events": {},
        }
    )
    return Checkpoint(header, head.split_schema, rows[0].schema, (), rows)

"""What one checkpoint sends to one reader, and how values are frozen when they are sent.

A reader's stream is its splits, continuations and events in the order in which they were sent. Its
part is the same without the events. A reader commit names the entries of the part by their index,
so an entry that resolves to nothing keeps its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from ...errors import ProtocolError
from .checkpoint import Checkpoint, Continuation, CustomEvent, PartBudget, Sent
from .checkpoint_ref import CheckpointIdentity, CheckpointRef
from .reader_commit import ReaderCommit
from .serializer import VersionedSerializer

T = TypeVar("T")

_DEEPEST = 100
"""Levels of a value that is sent; the serializer of headers permits some more."""

FindCommit: TypeAlias = Callable[[CheckpointIdentity, int], ReaderCommit | None]
"""The commit of a reader for a checkpoint, if it is there."""


def plain_json(value: Any, recipient: str) -> Any:
    """A copy of `value` that is equal to what every later reading of the state returns.

    Args:
        value: to be sent; what its sender changes in it later is not seen.
        recipient: what it is and for whom, for the error.

    Raises:
        ProtocolError: JSON does not return `value` as it is.
    """
    fault = _not_json(value, "value")
    if not fault:
        # Keys are sorted as in a checkpoint: a replay iterates over them in the same order.
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        try:
            return json.loads(text.encode())
        except ValueError as error:
            fault = str(error)
    raise ProtocolError(
        "an event cannot be stored as it is",
        recipient,
        fault,
        "a JSON value: None, bool, int, finite float, str, list, or dict with str keys",
        "Convert the value before sending it, such as a tuple to a list.",
    )


def _not_json(value: Any, path: str, depth: int = 0) -> str:
    # Of the exact type: an enumeration or a tuple would come back as something else.
    kind = type(value)
    if depth > _DEEPEST:
        return f"more than {_DEEPEST} levels"
    if kind is list:
        faults = (_not_json(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value))
        return next(filter(None, faults), "")
    if kind is dict:
        keys = (f"{path} has the key {key!r}" for key in value if type(key) is not str)
        faults = (_not_json(item, f"{path}[{k!r}]", depth + 1) for k, item in value.items())
        return next(chain(keys, filter(None, faults)), "")
    if kind is float and not math.isfinite(value):
        return f"{path} is {value}"
    is_plain = value is None or kind in (bool, int, float, str)
    return "" if is_plain else f"{path} is of the type {kind.__name__}"


def readers_of(checkpoint: Checkpoint) -> list[int]:
    """The readers that have a part in it, ascending. Events alone make no part."""
    streams = checkpoint.header.sent.items()
    continued = (int(r) for r, sent in streams if any(isinstance(s, Continuation) for s in sent))
    return sorted({*checkpoint.owners, *continued})


def stream_of(
    sent: Sequence[Sent], splits: Sequence[T]
) -> Iterator[T | Continuation | CustomEvent]:
    """A reader's stream, with its splits in the place of their numbers."""
    rest = iter(splits)
    for entry in sent or [len(splits)]:
        if isinstance(entry, int):
            yield from (next(rest) for _ in range(entry))
        else:
            yield entry


def sent_to(checkpoint: Checkpoint, reader: int) -> Sequence[Sent]:
    """The reader's stream as the header has it; empty for splits alone."""
    return checkpoint.header.sent.get(str(reader), ())


def continuations_of(checkpoint: Checkpoint, reader: int) -> Sequence[Continuation]:
    """The continuations in the reader's part."""
    return [sent for sent in sent_to(checkpoint, reader) if isinstance(sent, Continuation)]


def budget_of(checkpoint: Checkpoint, reader: int) -> PartBudget | None:
    """Return what the reader may spend on its part; None without a limit."""
    return checkpoint.header.budgets.get(str(reader))


def splits_of(
    checkpoint: Checkpoint, reader: int, serializer: VersionedSerializer[Sequence[T]]
) -> list[T]:
    """The splits assigned to the reader."""
    version = checkpoint.header.split_version
    batches = [batch for owner, batch in checkpoint.assigned if owner == reader]
    return [split for batch in batches for split in serializer.read(version, batch)]


def undecided(origin: CheckpointRef, reader: int) -> ProtocolError:
    """The error where a continuation is read before its reader has committed `origin`."""
    return ProtocolError(
        "the continuation of a split is read before its reader has committed the part before it",
        f"{origin}, reader {reader}",
        "no reader commit",
        "that commit: it is published before the continuation is read",
    )


def resolved(
    continuation: Continuation,
    commit: ReaderCommit | None,
    serializer: VersionedSerializer[Sequence[T]],
) -> list[T | None]:
    """Resolve a continuation after the commit of its origin; without one nothing is known.

    For one split there is one entry, None if nothing is left: commits name splits by index.
    """
    left = {} if commit is None else commit.remainders(serializer)
    if continuation.index is None:
        return [left[index] for index in sorted(left)]
    return [left.get(continuation.index)]


def entries_of(
    checkpoint: Checkpoint,
    reader: int,
    serializer: VersionedSerializer[Sequence[T]],
    find: FindCommit,
) -> list[tuple[CheckpointRef | None, T | None]]:
    """The reader's part, with the origin of what continues another part."""
    part: list[tuple[CheckpointRef | None, T | None]] = []
    lineage = checkpoint.header.lineage
    splits = splits_of(checkpoint, reader, serializer)
    for entry in stream_of(sent_to(checkpoint, reader), splits):
        if isinstance(entry, Continuation):
            # Of the same reader: a continuation goes to the one that reads the split.
            commit = find(entry.identity_of_origin(lineage), reader)
            part += [(entry.origin, split) for split in resolved(entry, commit, serializer)]
        elif not isinstance(entry, CustomEvent):
            part.append((None, entry))
    return part


def part_length(checkpoint: Checkpoint, reader: int, find: FindCommit) -> int | None:
    """The number of entries in the reader's part; None if a commit that decides it is not there."""
    lineage = checkpoint.header.lineage
    length: int = sum(batch.num_rows for owner, batch in checkpoint.assigned if owner == reader)
    for entry in continuations_of(checkpoint, reader):
        if entry.index is not None:
            length += 1
        elif (commit := find(entry.identity_of_origin(lineage), reader)) is not None:
            length += len(commit.unfinished) + len(commit.not_begun.indexes)
        else:
            return None
    return length


def part_of(
    checkpoint: Checkpoint,
    reader: int,
    serializer: VersionedSerializer[Sequence[T]],
    find: FindCommit,
) -> list[T | None]:
    """The reader's part; None where a continuation resolves to nothing, or has no commit yet."""
    return [split for _, split in entries_of(checkpoint, reader, serializer, find)]

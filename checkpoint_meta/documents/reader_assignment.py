"""What one checkpoint gives to one reader, with every continuation resolved that can be.

A part is the splits assigned to the reader, in order, then its continuations. A reader commit
names them by their index in that order, so an entry that turns out to be nothing keeps its place.

Not here: who reads a part (reader) and what its commit means (enumerator).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from ...errors import ProtocolError
from .checkpoint import Checkpoint, Continuation
from .checkpoint_ref import CheckpointRef
from .reader_commit import ReaderCommit
from .serializer import VersionedSerializer

T = TypeVar("T")

FindCommit: TypeAlias = Callable[[CheckpointRef, int], ReaderCommit | None]
"""The commit of a reader for a checkpoint, if it is there."""


def readers_of(checkpoint: Checkpoint) -> list[int]:
    """The readers that have a part in it, ascending."""
    continued = map(int, checkpoint.header.continuations)
    return sorted({*(reader for reader, _ in checkpoint.assigned), *continued})


def continuations_of(checkpoint: Checkpoint, reader: int) -> Sequence[Continuation]:
    """The continuations in the reader's part."""
    return checkpoint.header.continuations.get(str(reader), ())


def splits_of(
    checkpoint: Checkpoint, reader: int, serializer: VersionedSerializer[Sequence[T]]
) -> list[T]:
    """The splits assigned to the reader."""
    version = checkpoint.header.split_version
    batches = [batch for of, batch in checkpoint.assigned if of == reader]
    return [split for batch in batches for split in serializer.read(version, batch)]


def undecided(origin: CheckpointRef, reader: int) -> ProtocolError:
    """The error where a continuation is read before its reader has committed `origin`."""
    return ProtocolError(
        "the continuation of a split is read before its reader has committed the part before it",
        f"{origin}, reader {reader}",
        "no reader commit",
        "that commit: it is published before the continuation is read",
    )


def part_of(
    checkpoint: Checkpoint,
    reader: int,
    serializer: VersionedSerializer[Sequence[T]],
    find: FindCommit,
) -> list[T | None]:
    """The reader's part; None where a continuation resolves to nothing, or has no commit yet."""
    part: list[T | None] = [*splits_of(checkpoint, reader, serializer)]
    for continuation in continuations_of(checkpoint, reader):
        # Of the same reader: a continuation goes to the one that reads the split.
        commit = find(continuation.origin, reader)
        left = {} if commit is None else commit.remainders(serializer)
        # None keeps the place: commits name their splits by index.
        part.append(left.get(continuation.index))
    return part

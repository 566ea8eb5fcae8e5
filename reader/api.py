"""The contract of a reader: what a source does inside a Spark task.

Not here: publishing of reader commits (`task.py`) and any file format (`formats/`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import pyarrow as pa

from ..checkpoint_meta.documents.continuation import Continuation
from ..checkpoint_meta.documents.split import Split
from ..checkpoint_meta.stores.contract import StateStore

SplitT = TypeVar("SplitT", bound=Split)


@dataclass(frozen=True, slots=True)
class SplitFinished:
    """The split was read to its end; all its rows have been yielded before this report."""

    split_id: str
    rows: int
    """How many rows were yielded for it."""

    bytes: int = 0
    """Bytes of input read, as stored (compressed length for compressed files)."""

    seconds: float = 0.0
    """Wall time spent on this split; a packed split gets its share by bytes."""

    dropped_records: int = 0
    """Malformed records that the configured mode dropped."""

    skipped: str = ""
    """Why the split (or what was left of it) was skipped by configuration; empty if it was not."""


@dataclass(frozen=True, slots=True)
class SplitUnfinished(Generic[SplitT]):
    """The split was read in part; `remainder` starts at the next row to read."""

    split_id: str
    rows: int
    remainder: SplitT


@dataclass(frozen=True, slots=True)
class SplitReturned:
    """The split cannot be read and is returned whole. No row of it has been yielded."""

    split_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReaderEvent:
    """A message from a reader to its enumerator, delivered exactly once with the reader commit."""

    type: str
    value: Any
    """What the message says: any JSON value."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Input that configuration leaves out of the rows, to be recorded with the reader commit."""

    kind: Literal["bad_records", "bad_files"]
    batch: pa.RecordBatch
    """Rows in the columns of `SCHEMA_LEFT_OUT`."""


SCHEMA_LEFT_OUT = pa.schema(
    [(name, pa.string()) for name in ("path", "position", "record", "reason")]
)

Report = SplitFinished | SplitUnfinished[Any] | SplitReturned | ReaderEvent | LeftOut


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """What a reader may know of its task."""

    checkpoint_id: int
    """The checkpoint being read; 0 in a batch read."""

    reader: int
    """Index of this reader, 0 to parallelism - 1."""

    attempt: int
    """Spark's attempt number of the task."""

    may_return: bool = False
    """True if the reader may report `SplitReturned` instead of raising."""

    must_finish: bool = False
    """True on a replay of acknowledged work: every failure has to be raised."""

    until: Mapping[str, Any] = field(default_factory=dict)
    """Split id -> the remainder an earlier attempt acknowledged: read exactly up to its start."""

    continued: Mapping[str, Continuation] = field(default_factory=dict)
    """Split id -> how far a continued split may be read now: its bounds and its stop."""

    events: Sequence[Any] = ()
    """Custom events that the enumerator sent to this reader for this checkpoint, in order."""

    shape: Mapping[str, Any] = field(default_factory=dict)
    """On a replay of acknowledged work: what shaped the rows then (options), where recorded."""

    store: StateStore | None = None
    """The state of the query, for objects of the source's own; None in a batch read."""


class SplitReader(ABC, Generic[SplitT]):
    """Reads the splits that one checkpoint assigned to one reader.

    Built on an executor for one attempt of one task, used once, then closed. Everything it needs
    is in the splits and the context: nothing may be carried over from an earlier reader.
    """

    @abstractmethod
    def read(self, splits: Sequence[SplitT]) -> Iterator[pa.RecordBatch | Report]:
        """Yield batches, and one report for every split after the last row of it.

        Two readers built from equal splits yield equal rows in equal order. Small splits may
        share a batch; then their reports follow that batch. Raises `SplitReadError` for a split
        that cannot be read, unless the context allows to return it.
        """

    def close(self) -> None:
        """Release open resources. Not guaranteed to be called after a kill."""
        return

"""The contract of a reader, which reads splits inside a Spark task."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

import pyarrow as pa

from ..checkpoint_meta.documents.checkpoint import Continuation, PartBudget
from ..checkpoint_meta.documents.serializer import Split
from ..checkpoint_meta.stores.contract import StateStore

SplitT = TypeVar("SplitT", bound=Split)

UNKNOWN_ROWS: Final = -1
"""In a number of rows."""


@dataclass(frozen=True, slots=True)
class SplitFinished:
    """The split was read to its end. All its rows were yielded before this report."""

    split_id: str
    rows: int
    """Number of rows yielded for it."""

    bytes: int = 0
    """Bytes of input read, as stored (compressed length for compressed files)."""

    seconds: float = 0.0
    """Wall time spent on this split. For packed splits, time is divided in proportion to bytes."""

    dropped_records: int = 0
    """Number of malformed records that were dropped because of `mode`."""

    skipped: str = ""
    """Why an option skipped the split or its remainder; empty if it was not skipped."""

    filtered_rows: int = 0
    """Number of rows that an option dropped, also without decoding them; UNKNOWN_ROWS if the file
    was not opened."""


@dataclass(frozen=True, slots=True)
class SplitUnfinished(Generic[SplitT]):
    """The split was read in part. `remainder` starts at the next row to read."""

    split_id: str
    rows: int
    remainder: SplitT
    bytes: int = 0
    """Bytes of input read, as stored."""

    seconds: float = 0.0
    dropped_records: int = 0
    filtered_rows: int = 0


@dataclass(frozen=True, slots=True)
class SplitReturned:
    """The split cannot be read and is returned whole. No row of it has been yielded."""

    split_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PartEnded:
    """The budget of the part is spent. Of this split and those after it nothing was read.

    The last report on splits: the splits that it covers have no other.
    """

    split_id: str


@dataclass(frozen=True, slots=True)
class ReaderEvent:
    """A message from a reader to its enumerator, delivered exactly once, with the reader commit."""

    type: str
    value: Any
    """The content of the message: any JSON value."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Input that an option excludes from the rows, recorded with the reader commit."""

    kind: Literal["bad_records", "bad_files"]
    batch: pa.RecordBatch
    """Rows with the schema `SCHEMA_LEFT_OUT`."""


SCHEMA_LEFT_OUT = pa.schema(
    [(name, pa.string()) for name in ("path", "position", "record", "reason")]
)

SplitReport = SplitFinished | SplitUnfinished[Any] | SplitReturned
Report = SplitReport | PartEnded | ReaderEvent | LeftOut


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event of the enumerator, and its place in the order in which it was sent."""

    value: Any
    """Equal to the JSON value that was sent."""

    before: int
    """How many of the splits given to `SplitReader.read` were sent before it."""


class RemainingBudget:
    """The rest of one part's budget. Shared by all readers of one task."""

    def __init__(
        self, budget: PartBudget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Without a budget nothing is ever spent."""
        limits = budget or PartBudget()
        self.rows, self.bytes, self.files = limits.rows, limits.bytes, limits.files
        """Rows, stored bytes and files that may still be read; None means no limit."""
        self.begun_files = 0
        """Files, and members of archives, that were begun."""
        self.is_limited = budget is not None
        self._clock = clock
        self.seconds = limits.seconds
        self._end = None if limits.seconds is None else clock() + limits.seconds
        self.has_begun = False
        """True once a record was read."""
        self._rows_read = self._records_read = 0

    def take(self, rows: int, stored: int = 0, records: int | None = None) -> None:
        """Account for records that were read.

        `records` is the number of records that these rows were filtered from.
        """
        self.has_begun = True
        self._rows_read += rows
        self._records_read += rows if records is None else records
        self.rows = None if self.rows is None else self.rows - rows
        self.bytes = None if self.bytes is None else self.bytes - stored

    def begin_file(self, files: int = 1) -> None:
        """Account for a file or a member of an archive, before anything of it is read."""
        self.begun_files += files
        self.files = None if self.files is None else max(0, self.files - files)

    def has_room(self, rows: int, stored: int = 0) -> bool:
        """True if so many rows more fit, and so many stored bytes."""
        return (self.rows is None or rows <= self.rows) and (
            self.bytes is None or stored <= self.bytes
        )

    @property
    def records_left(self) -> int | None:
        """Return about how many records give the rows that may still be read; None: no limit."""
        if self.rows is None:
            return None
        # After the last one, the first that is not read any more says where the rest begins.
        if self._records_read == self._rows_read:
            return max(1, self.rows)
        if not self._rows_read:
            return max(self.rows, self._records_read)
        # A little less than by their share so far: what is too much would be decoded twice.
        return max(1, self.rows * self._records_read * 9 // (self._rows_read * 10))

    @property
    def is_spent(self) -> bool:
        """True if the part ends at the next record border."""
        if not (self.is_limited and self.has_begun):
            return False
        is_late = self._end is not None and self._clock() >= self._end
        return (
            is_late
            or (self.rows is not None and self.rows <= 0)
            or (self.bytes is not None and self.bytes <= 0)
        )


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """The task of a reader, as far as the reader knows it."""

    checkpoint_id: int
    """The checkpoint being read; 0 in a batch read."""

    reader: int
    """Index of this reader, 0 to parallelism - 1."""

    attempt: int
    """Spark's attempt number of the task."""

    may_return: bool = False
    """True if the reader may report `SplitReturned` instead of raising."""

    must_finish: bool = False
    """True on a replay of acknowledged work: the reader must raise every failure."""

    until: Mapping[str, Any] = field(default_factory=dict)
    """Split id -> the remainder that an earlier attempt acknowledged; read up to its start."""

    continued: Mapping[str, Continuation] = field(default_factory=dict)
    """Split id -> how far to read a continued split in this checkpoint: its limits and its stop."""

    budget: RemainingBudget = field(default_factory=RemainingBudget)
    """What is left of the part's budget: the reader takes from it, and stops where it is spent."""

    events: Sequence[ReceivedEvent] = ()
    """Custom events that the enumerator sent to this reader for this checkpoint, in order."""

    shape: Mapping[str, Any] = field(default_factory=dict)
    """On a replay of acknowledged work: the options of the first attempt, if recorded."""

    store: StateStore | None = None
    """The store of the query's state, for objects of this source; None in a batch read."""


class SplitReader(ABC, Generic[SplitT]):
    """Reads the splits that one checkpoint assigned to one reader.

    Sluice creates a reader on an executor for one attempt of one task, uses it once and closes it.
    A reader must depend only on its splits and its context, not on earlier readers.
    """

    @abstractmethod
    def read(self, splits: Sequence[SplitT]) -> Iterator[pa.RecordBatch | Report]:
        """Yield batches, and one report for each split after its last row, up to `PartEnded`.

        Two readers of equal splits must yield equal rows in the same order. Small splits may share
        a batch; then their reports follow that batch. If a split cannot be read, raise
        `SplitReadError`, or yield `SplitReturned` if `context.may_return` is true.
        """

    def close(self) -> None:
        """Release open resources. Not called if the process is killed."""
        return

"""One attempt of one Spark task: reads an assignment, then acknowledges it.

The reader commit is published after the last row and before the task ends, so that Spark counts a
task only if its commit is durable. The first commit wins for ever: an attempt that finds one
follows its verdicts split by split, and one that finds it too late must agree with it or fail.

Not here: how splits are read (`api.py` and what implements it), what a commit looks like.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

import pyarrow as pa

from ..checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ..checkpoint_meta.documents.continuation import Continuation
from ..checkpoint_meta.documents.landed_file import LandedFile
from ..checkpoint_meta.documents.reader_commit import (
    Abandonment,
    ReaderCommit,
    ReaderCommits,
    ReturnedSplit,
    UnfinishedSplit,
)
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..errors import ProtocolError, SluiceError
from .api import (
    ReaderContext,
    ReaderEvent,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitT,
    SplitUnfinished,
)
from .landing.file_rows import SCHEMA, rows_about
from .replay_errors import cannot_repeat, other_way, too_late


@dataclass(frozen=True)
class Assignment(Generic[SplitT]):
    """What one checkpoint gives to one reader."""

    ref: CheckpointRef
    reader: int
    splits: Sequence[SplitT]
    events: Sequence[Any] = ()
    continuations: Sequence[Continuation] = ()
    """Go after the splits; each starts where this reader's commit for its origin ends."""

    waived: frozenset[str] = frozenset()
    """Ids of splits that cannot be read (again) and were given up by an order: left out."""

    lineage: str = ""
    """Of the query."""

    @property
    def place(self) -> str:
        """As errors name it."""
        return f"{self.ref}, reader {self.reader}"


@dataclass(frozen=True)
class Attempt:
    """Which attempt of which query this is."""

    number: int = 0
    query_id: str = ""


@dataclass
class _Outcome:
    """What the reader reported so far, by index of the split."""

    rows: list[int]
    bytes: list[int]
    microseconds: list[int]
    unfinished: list[UnfinishedSplit] = field(default_factory=list)
    returned: list[ReturnedSplit] = field(default_factory=list)
    dropped: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    events: list[tuple[str, Any]] = field(default_factory=list)

    def give_up(self, indexes: Sequence[int], earlier: ReaderCommit | None) -> None:
        """Nothing is read of some splits; the verdict of an earlier attempt on them stays."""
        if earlier is None:
            self.skipped |= dict.fromkeys(indexes, _WAIVED)
            return
        for index in indexes:
            self.rows[index] = earlier.rows[index]
        self.unfinished += [part for part in earlier.unfinished if part.index in indexes]


class Landing(Protocol):
    """Takes the rows of one assignment instead of Spark, which gets a row for each data file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows, in order."""

    def finish(self) -> Sequence[LandedFile]:
        """The files that hold all rows, complete and durable."""

    def discard(self) -> None:
        """Remove what was written, as far as possible. Not called after a kill."""


@dataclass(frozen=True)
class Lander(Generic[SplitT]):
    """How rows go into data files instead of Spark."""

    begin: Callable[[Assignment[SplitT]], Landing]
    rows: pa.Schema = SCHEMA
    """The columns that Spark gets, about the files."""


class ReaderTask(Generic[SplitT]):
    """Reads assignments of one source and acknowledges each of them once."""

    def __init__(
        self,
        make_reader: Callable[[ReaderContext], SplitReader[SplitT]],
        serializer: VersionedSerializer[Sequence[SplitT]],
        commits: ReaderCommits,
        event_types: frozenset[str],
        may_return: bool,
        shape: Mapping[str, Any] | None = None,
        lander: Lander[SplitT] | None = None,
    ) -> None:
        """`shape` is what shapes rows now: written into commits, and never a secret.

        `lander` is given where rows go into data files.
        """
        self._lander = lander
        self._make_reader = make_reader
        self._serializer = serializer
        self._commits = commits
        self._event_types = event_types
        self._may_return = may_return
        self._shape = dict(shape or {})

    def read(self, assignment: Assignment[SplitT], attempt: Attempt) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the assignment in order, then publish the reader commit.

        Abandoned half-way it acknowledges nothing, since Spark did not want the rest, and leaves
        a record of that where it still can.

        Rows that are landed are written into data files first, then the commit that lists them is
        published, and then there is a row for each file of the commit that counts: nothing that
        Spark does with those rows makes anything be read or written again.

        Raises:
            SplitReadError: a split cannot be read.
            ReplayError: an earlier attempt acknowledged what this one cannot repeat.
        """
        earlier = self._commits.find(assignment.ref, assignment.reader)
        if earlier is not None and earlier.abandoned:
            return  # Spark completed the checkpoint without this reader.
        if earlier is not None and (earlier.landed is None) != (self._lander is None):
            raise other_way(assignment.place, was_landed=earlier.landed is not None)
        if self._lander is None:
            yield from self._read(assignment, attempt, earlier)
            return
        counted = earlier or self._landed(assignment, attempt, self._lander.begin(assignment))
        yield from rows_about(
            counted.landed or (),
            assignment.ref,
            assignment.reader,
            self._lander.rows,
            assignment.lineage,
        )

    def _landed(
        self, assignment: Assignment[SplitT], attempt: Attempt, landing: Landing
    ) -> ReaderCommit:
        steps = self._steps(assignment, attempt, None)
        mine: ReaderCommit | None = None
        try:
            while mine is None:
                try:
                    batch = next(steps)
                except StopIteration as end:
                    mine = end.value
                    break
                try:
                    landing.write(batch)
                except Exception as error:  # noqa: BLE001 - the reader is closed by it, not abandoned
                    steps.throw(error)
            files = landing.finish()
        except BaseException:
            landing.discard()
            raise
        # If this fails, the commit may have been published, so its files have to stay.
        counted = self._commits.publish(mine.model_copy(update={"landed": files}))
        if {file.path for file in files}.isdisjoint(file.path for file in counted.landed or ()):
            landing.discard()
        if counted.abandoned:
            raise too_late(assignment.place)
        return counted

    def _read(
        self, assignment: Assignment[SplitT], attempt: Attempt, earlier: ReaderCommit | None
    ) -> Iterator[pa.RecordBatch]:
        mine = yield from self._steps(assignment, attempt, earlier)
        self._acknowledge(assignment, mine, earlier)

    def _steps(
        self, assignment: Assignment[SplitT], attempt: Attempt, earlier: ReaderCommit | None
    ) -> Generator[pa.RecordBatch, None, ReaderCommit]:
        """The rows, and then what this attempt has to say of them."""
        part = self._part(assignment)
        context = self._context(assignment, part, attempt, earlier)
        given_up = [i for i, s in enumerate(part) if s and s.split_id in assignment.waived]
        left = {*given_up, *(earlier.returned_indexes if earlier else ())}
        indexes = {s.split_id: i for i, s in enumerate(part) if s is not None}
        splits = [s for i, s in enumerate(part) if s is not None and i not in left]
        outcome = _empty(len(part))
        outcome.returned.extend(earlier.returned if earlier else ())
        outcome.give_up(given_up, earlier)
        open_ids = {split.split_id for split in splits}
        try:
            # Earlier options and a new schema may not even make a reader.
            with contextlib.closing(self._make_reader(context)) as reader:
                for item in reader.read(splits):
                    if isinstance(item, pa.RecordBatch):
                        yield item
                    else:
                        self._note(item, outcome, indexes, open_ids)
        except GeneratorExit:
            if earlier is None:
                self._abandon(assignment, attempt, len(splits) - len(open_ids))
            raise
        except Exception as error:
            if earlier is None:
                raise
            # Without its remedy, which is of no use where rows were acknowledged.
            text = str(error).removesuffix(getattr(error, "remedy", "")).rstrip()
            found = f"{type(error).__name__}: {text}"
            raise cannot_repeat(assignment.place, self._changed(earlier), found) from error
        if open_ids:
            raise ProtocolError(
                f"the reader gave no report on {len(open_ids)} of its splits",
                assignment.place,
                f"nothing on {min(open_ids)}",
                "one report for each split",
            )
        return self._commit(assignment, attempt, outcome)

    def _part(self, assignment: Assignment[SplitT]) -> list[SplitT | None]:
        """The splits, then what continuations resolve to; None for one that comes to nothing."""
        part: list[SplitT | None] = [*assignment.splits]
        for continuation in assignment.continuations:
            commit = self._commits.wait_for(continuation.origin, assignment.reader)
            if commit is None:
                raise ProtocolError(
                    "a continuation is read before its reader has committed what it continues",
                    assignment.place,
                    f"no commit of this reader for {continuation.origin}",
                    "that commit, by the attempt that read it",
                )
            part.append(commit.remainders(self._serializer).get(continuation.index))
        return part

    def _abandon(self, assignment: Assignment[SplitT], attempt: Attempt, reported: int) -> None:
        record = Abandonment(
            checkpoint=assignment.ref.checkpoint,
            epoch=assignment.ref.epoch,
            reader=assignment.reader,
            attempt=attempt.number,
            query_id=attempt.query_id,
            reported=reported,
        )
        # It only spares the driver a wait, and closing a reader must not raise. A process
        # that is ending has no threads left that could talk to an object store.
        if sys.is_finalizing():
            return
        with contextlib.suppress(OSError, SluiceError):
            self._commits.abandon(record)

    def _context(
        self,
        assignment: Assignment[SplitT],
        part: Sequence[SplitT | None],
        attempt: Attempt,
        earlier: ReaderCommit | None,
    ) -> ReaderContext:
        agreed = earlier.remainders(self._serializer) if earlier else {}
        going_on = zip(part[len(assignment.splits) :], assignment.continuations, strict=True)
        return ReaderContext(
            checkpoint_id=assignment.ref.checkpoint,
            reader=assignment.reader,
            attempt=attempt.number,
            may_return=self._may_return and earlier is None,
            must_finish=earlier is not None,
            until={
                s.split_id: agreed[i] for i, s in enumerate(part) if s is not None and i in agreed
            },
            continued={split.split_id: of for split, of in going_on if split is not None},
            events=assignment.events,
            shape=earlier.shape if earlier else {},
            store=self._commits.store,
        )

    def _note(
        self, report: Report, outcome: _Outcome, indexes: dict[str, int], open_ids: set[str]
    ) -> None:
        if isinstance(report, ReaderEvent):
            if report.type not in self._event_types:
                raise ProtocolError(
                    "the reader sent an event of a type that is not registered",
                    "",
                    repr(report.type),
                    f"one of {sorted(self._event_types)}",
                )
            outcome.events.append((report.type, report.value))
            return
        if report.split_id not in open_ids:
            raise ProtocolError(
                "the reader reported twice on a split, or on one it was not given",
                "",
                report.split_id,
                "one report for each split of the assignment",
            )
        open_ids.discard(report.split_id)
        index = indexes[report.split_id]
        if isinstance(report, SplitFinished):
            outcome.rows[index] = report.rows
            outcome.bytes[index] = report.bytes
            outcome.microseconds[index] = int(report.seconds * 1_000_000)
            if report.dropped_records:
                outcome.dropped[index] = report.dropped_records
            if report.skipped:
                outcome.skipped[index] = report.skipped
        elif isinstance(report, SplitUnfinished):
            outcome.rows[index] = report.rows
            columns = self._serializer.serialize([report.remainder]).to_pydict()
            outcome.unfinished.append(UnfinishedSplit(index=index, remainder=columns))
        elif isinstance(report, SplitReturned):
            outcome.returned.append(ReturnedSplit(index=index, reason=report.reason))

    def _commit(
        self, assignment: Assignment[SplitT], attempt: Attempt, outcome: _Outcome
    ) -> ReaderCommit:
        return ReaderCommit(
            checkpoint=assignment.ref.checkpoint,
            epoch=assignment.ref.epoch,
            reader=assignment.reader,
            attempt=attempt.number,
            query_id=attempt.query_id,
            rows=outcome.rows,
            input_bytes=outcome.bytes,
            microseconds=outcome.microseconds,
            split_version=self._serializer.version,
            unfinished=sorted(outcome.unfinished, key=lambda part: part.index),
            returned=sorted(outcome.returned, key=lambda split: split.index),
            dropped_records=outcome.dropped,
            skipped=outcome.skipped,
            events=outcome.events,
            finished=int(time.time() * 1_000_000),
            shape=self._shape,
        )

    def _acknowledge(
        self, assignment: Assignment[SplitT], mine: ReaderCommit, earlier: ReaderCommit | None
    ) -> None:
        counted = earlier or self._commits.publish(mine)
        if counted.abandoned:
            raise too_late(assignment.place)
        index = mine.first_difference(counted)
        if index is not None:
            part = self._part(assignment)
            known = part[index] if index < len(part) else None
            split = known.split_id if known is not None else f"split {index}"
            found = f"{split}: {mine.verdict(index)}"
            raise cannot_repeat(
                assignment.place, self._changed(counted), found, counted.verdict(index)
            )

    def _changed(self, earlier: ReaderCommit) -> str:
        # Options are read as they were recorded; the schema is Spark's, and its plan is made.
        recorded = earlier.shape.get("schema")
        return "" if recorded in (None, self._shape.get("schema")) else "schema"


_WAIVED = "given up by an order"


def _empty(splits: int) -> _Outcome:
    return _Outcome([0] * splits, [0] * splits, [0] * splits)

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
from dataclasses import dataclass
from typing import Any, Generic

import pyarrow as pa

from ..checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ..checkpoint_meta.documents.continuation import Continuation
from ..checkpoint_meta.documents.reader_commit import Abandonment, ReaderCommit, ReaderCommits
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..errors import ProtocolError, SluiceError
from .api import LeftOut, ReaderContext, ReaderEvent, Report, SplitReader, SplitT
from .landing.file_rows import SCHEMA, rows_about
from .outcome import Outcome
from .replay_errors import cannot_repeat, other_way, too_late
from .written_files import Landing, Recording


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
    """Lineage of the query that the task belongs to."""

    @property
    def place(self) -> str:
        """As errors name it."""
        return f"{self.ref}, reader {self.reader}"


@dataclass(frozen=True)
class Attempt:
    """Which attempt of which query this is."""

    number: int = 0
    query_id: str = ""


@dataclass(frozen=True)
class Lander(Generic[SplitT]):
    """How rows go into data files instead of Spark."""

    begin: Callable[[Assignment[SplitT]], Landing]
    rows: pa.Schema = SCHEMA
    """The columns that Spark gets, about the files."""


class ReaderTask(Generic[SplitT]):
    """Reads assignments of one source and acknowledges each of them once."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that differs between sources and queries
        self,
        make_reader: Callable[[ReaderContext], SplitReader[SplitT]],
        serializer: VersionedSerializer[Sequence[SplitT]],
        commits: ReaderCommits,
        event_types: frozenset[str],
        may_return: bool,
        shape: Mapping[str, Any] | None = None,
        lander: Lander[SplitT] | None = None,
        recorder: Callable[[Assignment[SplitT]], Recording] | None = None,
    ) -> None:
        """`shape` is what shapes rows now: written into commits, and never a secret.

        `lander` is given where rows go into data files, `recorder` where what is left out of the
        rows is recorded.
        """
        self._recorder = recorder
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
        # What an earlier attempt has acknowledged it has recorded, too.
        recording = self._recorder(assignment) if self._recorder and earlier is None else None
        steps = self._steps(assignment, attempt, earlier, recording)
        if self._lander is None:
            yield from self._read(assignment, steps, earlier, recording)
            return
        counted = earlier or self._landed(
            assignment, steps, self._lander.begin(assignment), recording
        )
        yield from rows_about(
            counted.landed or (),
            assignment.ref,
            assignment.reader,
            self._lander.rows,
            assignment.lineage,
        )

    def _landed(
        self,
        assignment: Assignment[SplitT],
        steps: Generator[pa.RecordBatch, None, ReaderCommit],
        landing: Landing,
        recording: Recording | None,
    ) -> ReaderCommit:
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
            if recording is not None:
                recording.discard()
            raise
        # If this fails, the commit may have been published, so its files have to stay.
        counted = self._publish(mine.model_copy(update={"landed": files}), recording)
        if {file.path for file in files}.isdisjoint(file.path for file in counted.landed or ()):
            landing.discard()
        if counted.abandoned:
            raise too_late(assignment.place)
        return counted

    def _publish(self, mine: ReaderCommit, recording: Recording | None) -> ReaderCommit:
        """The commit that counts; what was recorded under it is durable, and there once."""
        counted = self._commits.publish(mine)
        if recording is not None:
            recording.settle(counted.written)
        return counted

    def _read(
        self,
        assignment: Assignment[SplitT],
        steps: Generator[pa.RecordBatch, None, ReaderCommit],
        earlier: ReaderCommit | None,
        recording: Recording | None,
    ) -> Iterator[pa.RecordBatch]:
        mine = yield from steps
        self._acknowledge(assignment, mine, earlier, recording)

    def _steps(
        self,
        assignment: Assignment[SplitT],
        attempt: Attempt,
        earlier: ReaderCommit | None,
        recording: Recording | None,
    ) -> Generator[pa.RecordBatch, None, ReaderCommit]:
        """The rows, and then what this attempt has to say of them."""
        try:
            mine = yield from self._all_steps(assignment, attempt, earlier, recording)
            files = recording.finish() if recording else ()
        except BaseException:
            if recording is not None:
                recording.discard()
            raise
        return mine.model_copy(update={"bad_records": files}) if files else mine

    def _all_steps(
        self,
        assignment: Assignment[SplitT],
        attempt: Attempt,
        earlier: ReaderCommit | None,
        recording: Recording | None,
    ) -> Generator[pa.RecordBatch, None, ReaderCommit]:
        part = self._part(assignment)
        context = self._context(assignment, part, attempt, earlier)
        given_up = [i for i, s in enumerate(part) if s and s.split_id in assignment.waived]
        left = {*given_up, *(earlier.returned_indexes if earlier else ())}
        indexes = {s.split_id: i for i, s in enumerate(part) if s is not None}
        splits = [s for i, s in enumerate(part) if s is not None and i not in left]
        outcome = Outcome.of(len(part))
        outcome.returned.extend(earlier.returned if earlier else ())
        outcome.give_up(given_up, earlier)
        open_ids = {split.split_id for split in splits}
        try:
            # Earlier options and a new schema may not even make a reader.
            with contextlib.closing(self._make_reader(context)) as reader:
                for item in reader.read(splits):
                    if isinstance(item, pa.RecordBatch):
                        yield item
                    elif isinstance(item, LeftOut) and recording is not None:
                        recording.write(item)
                    elif not (isinstance(item, LeftOut) and earlier is not None):
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
        self, report: Report, outcome: Outcome, indexes: dict[str, int], open_ids: set[str]
    ) -> None:
        if isinstance(report, LeftOut):
            raise ProtocolError(
                "the reader leaves records out of the rows, and nothing is to record them",
                "",
                report.kind,
                "rows and reports only, without badRecordsPath",
            )
        if isinstance(report, ReaderEvent):
            outcome.note_event(report, self._event_types)
            return
        if report.split_id not in open_ids:
            raise ProtocolError(
                "the reader reported twice on a split, or on one it was not given",
                "",
                report.split_id,
                "one report for each split of the assignment",
            )
        open_ids.discard(report.split_id)
        outcome.note(report, indexes[report.split_id], self._serializer)

    def _commit(
        self, assignment: Assignment[SplitT], attempt: Attempt, outcome: Outcome
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
        self,
        assignment: Assignment[SplitT],
        mine: ReaderCommit,
        earlier: ReaderCommit | None,
        recording: Recording | None,
    ) -> None:
        counted = earlier or self._publish(mine, recording)
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

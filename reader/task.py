"""One attempt of one Spark task: reads an assignment, then acknowledges it.

The reader commit is published after the last row and before the task ends, so that Spark counts a
task only if its commit is durable. The first commit wins for ever: an attempt that finds one
follows its verdicts split by split, and one that finds it too late must agree with it or fail.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import pyarrow as pa

from ..checkpoint_meta.documents.checkpoint import Continuation, CustomEvent, PartBudget, Sent
from ..checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ..checkpoint_meta.documents.epochs import check_not_fenced
from ..checkpoint_meta.documents.layout import EPOCHS
from ..checkpoint_meta.documents.reader_assignment import resolved, stream_of, undecided
from ..checkpoint_meta.documents.reader_commit import (
    Abandonment,
    ReaderCommit,
    ReaderCommits,
    about,
)
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..checkpoint_meta.documents.written_file import Removal
from ..errors import ProtocolError, SluiceError
from .acknowledgement import Outcome, Replay
from .api import (
    LeftOut,
    PartEnded,
    ReaderContext,
    ReaderEvent,
    ReceivedEvent,
    RemainingBudget,
    Report,
    SplitReader,
    SplitT,
)
from .written_files import Recording, RowsWriter, rows_about


@dataclass(frozen=True)
class Assignment(Generic[SplitT]):
    """One checkpoint's assignment to one reader."""

    checkpoint: CheckpointIdentity
    reader: int
    splits: Sequence[SplitT]
    sent: Sequence[Sent] = ()
    """The stream with numbers of splits in their places; empty for splits alone."""

    waived: frozenset[str] = frozenset()
    """Ids of splits that cannot be read (again) and were given up by an order: left out."""

    claim: int = 0
    """Epoch that must still be the newest once the commit is published; 0 if that is not asked."""

    budget: PartBudget | None = None
    """What the first attempt may spend; a later one reads what the first has acknowledged."""

    batch_start: int = 0
    """Id of the checkpoint after which the batch begins; 0 if it is not known."""

    origin: str = ""
    """Text of the batch's `BatchOrigin`."""

    @property
    def stream(self) -> Iterator[SplitT | Continuation | CustomEvent]:
        """Splits, continuations and events in the order in which they were sent."""
        return stream_of(self.sent, self.splits)

    @property
    def place(self) -> str:
        """As errors name it."""
        return f"{self.checkpoint.ref}, reader {self.reader}"


@dataclass(frozen=True)
class Attempt:
    """One attempt of one query."""

    number: int = 0
    query_id: str = ""


@dataclass(frozen=True)
class DirectWrite(Generic[SplitT]):
    """The parts that put rows into data files instead of Spark."""

    begin: Callable[[Assignment[SplitT]], RowsWriter]
    described: Callable[[pa.Schema], Mapping[str, Any]]
    """Spark's JSON of the struct with the columns of the rows in the files; goes into commits."""

    removals: Callable[[Assignment[SplitT]], Sequence[Removal]] = lambda _: ()
    """Rows of earlier batches that leave the table, as the assignment alone says."""

    looks: bool = False  # see `TABLE_LOOKS`


@dataclass(frozen=True)
class ReaderTask(Generic[SplitT]):
    """Reads assignments of one source and acknowledges each of them once."""

    make_reader: Callable[[ReaderContext], SplitReader[SplitT]]
    serializer: VersionedSerializer[Sequence[SplitT]]
    commits: ReaderCommits
    event_types: frozenset[str]
    may_return: bool
    shape: Mapping[str, Any] = field(default_factory=dict)
    """What shapes rows now: written into commits, and never a secret."""

    writes: DirectWrite[SplitT] | None = None
    """Given where rows go into data files."""

    recorder: Callable[[Assignment[SplitT]], Recording] | None = None
    """Given where what is left out of the rows is recorded."""

    def read(self, assignment: Assignment[SplitT], attempt: Attempt) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the assignment in order, then publish the reader commit.

        Abandoned half-way it acknowledges nothing, since Spark does not read the rest, and leaves
        a record of that where it still can.

        Under a direct write rows go into data files first, then the commit that lists them is
        published, and then there is a row for each file of the commit that counts: nothing that
        Spark does with those rows makes anything be read or written again.

        Raises:
            SplitReadError: a split cannot be read.
            ReplayError: an earlier attempt acknowledged what this one cannot repeat.
            FencedError: another query has begun over the same state.
        """
        # Spark reads a partition again after failures, to speculate, and for each action of a sink.
        earlier = self.commits.find(assignment.checkpoint, assignment.reader)
        if earlier is not None and earlier.abandoned:
            return  # Spark completed the checkpoint without this reader.
        replay = Replay(assignment.place, self.shape, earlier)
        replay.check_direct_write(writes=self.writes is not None)
        # What an earlier attempt has acknowledged it has recorded, too.
        recording = self.recorder(assignment) if self.recorder and earlier is None else None
        run = _Run(self, assignment, attempt, replay, recording)
        if self.writes is None:
            yield from run.read()
            # A query that begins claims the state, then looks for commits. This is the other order,
            # so of two queries that begin at once one finds the other.
            self._check_claim(assignment)
            return
        # With a commit nothing is written again: its files are there, and durable.
        counted = earlier or run.write(self.writes)
        self._check_claim(assignment)
        origin, looks = assignment.origin, self.writes.looks
        yield from rows_about(counted, assignment.checkpoint, origin, looks=looks)

    def _check_claim(self, assignment: Assignment[SplitT]) -> None:
        if assignment.claim:
            # A client of a network file system may remember for a while that no newer claim was
            # there.
            self.commits.store.refresh(EPOCHS)
            check_not_fenced(self.commits.store, assignment.claim)


@dataclass(frozen=True)
class _Run(Generic[SplitT]):
    """One attempt at one assignment."""

    task: ReaderTask[SplitT]
    assignment: Assignment[SplitT]
    attempt: Attempt
    replay: Replay
    recording: Recording | None

    def read(self) -> Iterator[pa.RecordBatch]:
        mine = yield from self._steps()
        counted = self.replay.earlier or self._publish(mine)
        self.replay.check_wanted(counted)
        index = mine.first_difference(counted)
        if index is not None:
            part = self._part()
            assigned = part[index] if index < len(part) else None
            split = assigned.split_id if assigned is not None else f"split {index}"
            raise self.replay.cannot_repeat(
                counted, f"{split}: {mine.verdict(index)}", counted.verdict(index)
            )

    def write(self, writes: DirectWrite[SplitT]) -> ReaderCommit:
        # First: what cannot be removed is an error before a row is written.
        removals = writes.removals(self.assignment)
        writer, steps = writes.begin(self.assignment), self._steps()
        try:
            while True:
                try:
                    batch = next(steps)
                except StopIteration as end:
                    mine: ReaderCommit = end.value
                    break
                try:
                    writer.write(batch)
                except Exception as error:  # noqa: BLE001 - the reader is closed by it, not abandoned
                    steps.throw(error)
            files = writer.finish()
        except BaseException:
            writer.discard()
            if self.recording is not None:
                self.recording.discard()
            raise
        # If this fails, the commit may be there, so its files have to stay.
        update = {
            "written_files": files,
            "written_schema": writes.described(writer.schema),
            "removals": removals,
        }
        counted = self._publish(mine.model_copy(update=update))
        own = {file.path for file in files}
        if own.isdisjoint(file.path for file in counted.written_files or ()):
            writer.discard()
        self.replay.check_wanted(counted)
        return counted

    def _publish(self, mine: ReaderCommit) -> ReaderCommit:
        """The commit that counts; what was recorded under it is durable, and there once."""
        counted = self.task.commits.publish(mine)
        if self.recording is not None:
            self.recording.settle(counted.written)
        return counted

    def _steps(self) -> Generator[pa.RecordBatch, None, ReaderCommit]:
        """The rows, and then what this attempt has to say of them."""
        try:
            mine = yield from self._all_steps()
            files = self.recording.finish() if self.recording else ()
        except BaseException:
            if self.recording is not None:
                self.recording.discard()
            raise
        return mine.model_copy(update={"bad_records": files}) if files else mine

    def _all_steps(self) -> Generator[pa.RecordBatch, None, ReaderCommit]:
        earlier = self.replay.earlier
        part = self._part()
        given_up = [i for i, s in enumerate(part) if s and s.split_id in self.assignment.waived]
        left = {*given_up, *(earlier.unread_indexes if earlier else ())}
        splits = [s for i, s in enumerate(part) if s is not None and i not in left]
        open_splits = {s.split_id: i for i, s in enumerate(part) if s is not None and i not in left}
        outcome = Outcome.of(len(part))
        outcome.abandon(given_up, earlier)
        try:
            # Earlier options and a new schema may not even make a reader.
            context = self._context(part, left)
            with contextlib.closing(self.task.make_reader(context)) as reader:
                for item in reader.read(splits):
                    if isinstance(item, pa.RecordBatch):
                        yield item
                    else:
                        self._record_report(item, outcome, open_splits, part)
        except GeneratorExit:
            if earlier is None:
                self._abandon(len(splits) - len(open_splits))
            raise
        except Exception as error:
            if earlier is None:
                raise
            # Without its remedy, which is of no use where rows were acknowledged.
            text = str(error).removesuffix(getattr(error, "remedy", "")).rstrip()
            found = f"{type(error).__name__}: {text}"
            raise self.replay.cannot_repeat(earlier, found) from error
        if open_splits:
            raise ProtocolError(
                f"the reader gave no report on {len(open_splits)} of its splits",
                self.assignment.place,
                f"nothing on {min(open_splits)}",
                "one report for each split",
            )
        return self._commit(outcome)

    def _part(self) -> list[SplitT | None]:
        """Splits, and what continuations resolve to; None for one that comes to nothing."""
        return [split for entry in self.assignment.stream for split in self._splits_in(entry)]

    def _splits_in(self, entry: SplitT | Continuation | CustomEvent) -> list[SplitT | None]:
        if isinstance(entry, CustomEvent):
            return []
        if not isinstance(entry, Continuation):
            return [entry]
        # This host may see a commit a little later than the one that published it.
        origin = entry.identity_of_origin(self.assignment.checkpoint.lineage)
        commit = self.task.commits.wait_for(origin, self.assignment.reader)
        if commit is None:
            raise undecided(entry.origin, self.assignment.reader)
        return resolved(entry, commit, self.task.serializer)

    def _abandon(self, reported: int) -> None:
        record = Abandonment(**self._source_of_record(), reported=reported)
        # It only spares the driver a wait, and closing a reader must not raise. A process
        # that is ending has no threads left that could talk to an object store.
        if sys.is_finalizing():
            return
        with contextlib.suppress(OSError, SluiceError):
            self.task.commits.abandon(record)

    def _context(self, part: Sequence[SplitT | None], left: set[int]) -> ReaderContext:
        earlier, assignment = self.replay.earlier, self.assignment
        agreed = earlier.remainders(self.task.serializer) if earlier else {}
        continued: dict[str, Continuation] = {}
        events: list[ReceivedEvent] = []
        index = before = 0
        for entry in assignment.stream:
            if isinstance(entry, CustomEvent):
                events.append(ReceivedEvent(entry.event, before))
                continue
            for split in self._splits_in(entry):
                if split is not None and isinstance(entry, Continuation):
                    continued[split.split_id] = entry
                before += split is not None and index not in left
                index += 1
        return ReaderContext(
            checkpoint_id=assignment.checkpoint.ref.checkpoint,
            reader=assignment.reader,
            attempt=self.attempt.number,
            # What was acknowledged may have been counted, so no split of it can go back any more.
            may_return=self.task.may_return and earlier is None,
            must_finish=earlier is not None,
            until={
                s.split_id: agreed[i] for i, s in enumerate(part) if s is not None and i in agreed
            },
            continued=continued,
            budget=RemainingBudget(None if earlier else assignment.budget),
            events=events,
            shape=earlier.shape if earlier else {},
            store=self.task.commits.store,
        )

    def _record_report(
        self,
        report: Report,
        outcome: Outcome,
        open_splits: dict[str, int],
        part: Sequence[SplitT | None],
    ) -> None:
        if isinstance(report, LeftOut):
            if self.recording is not None:
                self.recording.write(report)
            if self.recording is not None or self.replay.earlier is not None:
                return
            raise ProtocolError(
                "the reader reported a record that it left out, but nothing records those",
                "",
                report.kind,
                "rows and reports only, without badRecordsPath",
            )
        if isinstance(report, ReaderEvent):
            if report.type not in self.task.event_types:
                raise ProtocolError(
                    "the reader sent an event of an unregistered type",
                    "",
                    repr(report.type),
                    f"one of {sorted(self.task.event_types)}",
                )
            outcome.events.append((report.type, report.value))
            return
        if isinstance(report, PartEnded):
            first = open_splits.get(report.split_id, len(part))
            rest = {name: i for name, i in open_splits.items() if i >= first}
            outcome.end_before(rest.values(), part, self.task.serializer)
            for name in rest:
                del open_splits[name]
            return
        index = open_splits.pop(report.split_id, None)
        if index is None:
            raise ProtocolError(
                "the reader reported a split twice, or a split that it was not assigned",
                "",
                report.split_id,
                "one report for each split of the assignment",
            )
        outcome.note(report, index, self.task.serializer)

    def _source_of_record(self) -> dict[str, Any]:
        assignment, attempt = self.assignment, self.attempt
        return {
            **about(assignment.checkpoint),
            "reader": assignment.reader,
            "batch_start": assignment.batch_start,
            "attempt": attempt.number,
            "query_id": attempt.query_id,
        }

    def _commit(self, outcome: Outcome) -> ReaderCommit:
        return ReaderCommit(
            **self._source_of_record(),
            rows=outcome.rows,
            input_bytes=outcome.bytes,
            microseconds=outcome.microseconds,
            split_version=self.task.serializer.version,
            unfinished=sorted(outcome.unfinished, key=lambda part: part.index),
            not_begun=outcome.not_begun,
            returned=sorted(outcome.returned, key=lambda split: split.index),
            dropped_records=outcome.dropped,
            filtered_rows=outcome.filtered,
            skipped=outcome.skipped,
            events=outcome.events,
            finished=int(time.time() * 1_000_000),
            shape=dict(self.task.shape),
        )

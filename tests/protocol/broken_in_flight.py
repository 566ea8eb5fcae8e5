"""Planted bugs of gateways and of what is done with several checkpoints in flight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, Continuation
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    continuations_of,
    readers_of,
    splits_of,
)
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.cut import CheckpointCutter
from pyspark_sluice.enumerator.coordinator.in_flight import (
    CheckpointRecord,
    CheckpointsInFlight,
    Stage,
)
from pyspark_sluice.enumerator.coordinator.subtask_gateway import SubtaskGateway


class GatewayNeverCloses(Coordinator[Any, Any]):
    """Resolves a continuation without its reader's commit: where that was to stop."""

    def assignments(self, start: CheckpointRef, end: CheckpointRef) -> list[Checkpoint]:
        return [self._resolved(found) for found in super().assignments(start, end)]

    def _resolved(self, checkpoint: Checkpoint) -> Checkpoint:
        assigned, serializer = list(checkpoint.assigned), self._source.split_serializer
        for reader in readers_of(checkpoint):
            for continuation in continuations_of(checkpoint, reader):
                file = FileVersion(continuation.split.split("@")[0], 0, 0)
                split = FileSplit(file, self._told_end(continuation, reader), continuation.stop)
                assigned.append((reader, serializer.serialize([split])))
        header = checkpoint.header.model_copy(update={"sent": {}})
        return replace(checkpoint, header=header, assigned=assigned)

    def _told_end(self, continuation: Continuation, reader: int) -> int:
        origin = self.history.load(continuation.origin)
        ends = [split.end for split in splits_of(origin, reader, self._source.split_serializer)]
        ends += [earlier.stop for earlier in continuations_of(origin, reader)]
        assert continuation.index is not None
        return int(ends[continuation.index])


class OpensOnTheFirstCommit(SubtaskGateway):
    """The first reader that commits opens the gateways of all."""

    part = "gateways.gateway"

    def open(self, ref: CheckpointRef) -> bool:
        is_news = super().open(ref)
        record = self._flight.find(ref)
        if record is not None:
            record.committed.update(record.readers)
        return is_news


class OpensTheNextOne(SubtaskGateway):
    """A commit of n opens n+1 for the same reader as well."""

    part = "gateways.gateway"

    def open(self, ref: CheckpointRef) -> bool:
        is_news = super().open(ref)
        for record in self._flight.ahead[:1]:
            record.committed.add(self.reader)
        return is_news


class CutOmitsHeldEvents(CheckpointCutter[Any, Any]):
    """A checkpoint has only what its readers may have at the cut."""

    part = "cutter"

    def cut(self, created: int) -> CheckpointRecord:
        record = self._flight.open_record
        for reader in list(record.sent):
            if SubtaskGateway(reader, self._flight).held_under(record) is not None:
                del record.sent[reader]
        return super().cut(created)


class CutTakesHeldEventsTwice(CheckpointCutter[Any, Any]):
    """A checkpoint has what is held, and so does the next one."""

    part = "cutter"

    def cut(self, created: int) -> CheckpointRecord:
        before = self._flight.open_record
        held = {
            reader: list(events)
            for reader, events in before.sent.items()
            if SubtaskGateway(reader, self._flight).held_under(before) is not None
        }
        record = super().cut(created)
        self._flight.open_record.sent.update(held)
        return record


class RecordsNotRotated(CheckpointsInFlight):
    """The cut copies what was sent, and leaves it to the next one as well."""

    part = "flight"

    def cut(self, checkpoint: Checkpoint) -> CheckpointRecord:
        record = super().cut(checkpoint)
        self.open_record.sent = {reader: list(events) for reader, events in record.sent.items()}
        return record


class AbortOfTheLast(CheckpointCutter[Any, Any]):
    """Takes back the last checkpoint that was cut, not the given one and all after it."""

    part = "cutter"

    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        last = self._flight.ahead[-1].ref
        assert last is not None
        aborted = super().abort(last)
        # What is left is forgotten, as if it had been taken back.
        left = self._flight.ahead
        for record in left:
            self._flight._records.remove(record)
        return [*aborted, *reversed(left)]


class AbortForgotten(CheckpointsInFlight):
    """What was cut and is not handed out is dropped, and what was sent under it."""

    part = "flight"

    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        aborted = super().abort(ref)
        self.open_record.sent.clear()
        return aborted


class CountedAfterTheCut(CheckpointsInFlight):
    """A checkpoint claims commits of those before it that come only after its cut."""

    part = "flight"

    @property
    def counted(self) -> dict[str, list[int]]:
        return {}


class CountedBeforeTheCutAndAfter(CheckpointsInFlight):
    """A checkpoint does not say which commits of those before it are in it."""

    part = "flight"

    @property
    def counted(self) -> dict[str, list[int]]:
        return {name: [] for name in super().counted}


class RestoreForgetsWhatWasHeld(Coordinator[Any, Any]):
    """A restored record has no continuations: what they go on with comes back, too."""

    def _records(self, *arguments: Any) -> list[CheckpointRecord]:
        records = super()._records(*arguments)
        for record in records:
            for reader, events in record.sent.items():
                gone = record.continuations(reader)
                record.sent[reader] = [event for event in events if event not in gone]
        return records


class EventsWithoutTask(CheckpointsInFlight):
    """Writes events for readers that have nothing to read, and no task to get them."""

    part = "flight"

    def cut(self, checkpoint: Checkpoint) -> CheckpointRecord:
        record = super().cut(checkpoint)
        checkpoint.header.sent.update(
            {str(r): self.open_record.stream(r) for r in self.open_record.sent}
        )
        self.open_record.sent = {}
        return record


class RemainderToBoth(CheckpointsInFlight):
    """What a continuation goes on with is assigned again as well."""

    part = "flight"

    def continued(self, ref: CheckpointRef, reader: int) -> set[int]:
        return set()


class _Absent(SubtaskGateway):
    """Nothing is ever held."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        return None


class GatewayNeverOpens(SubtaskGateway):
    """A cut closes the gateways for ever."""

    part = "gateways.gateway"

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        is_first = record.stage is Stage.OPEN or record.checkpoint.header.parent in among
        return None if is_first or record.checkpoint.header.parent_checkpoint == 0 else record


class _OpensForAnother(SubtaskGateway):
    """The commit of any other reader opens a gateway."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        earlier = super().held_under(record, among)
        return None if earlier is not None and earlier.committed - {self.reader} else earlier


class _OpensAtHandOut(SubtaskGateway):
    """What Spark has is not waited for: its end is taken for a commit of each reader."""

    def held_under(
        self, record: CheckpointRecord, among: Collection[CheckpointRef] = ()
    ) -> CheckpointRecord | None:
        earlier = super().held_under(record, among)
        return None if earlier is not None and earlier.stage >= Stage.HANDED_OUT else earlier

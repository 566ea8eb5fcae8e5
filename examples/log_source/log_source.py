"""An append-only partitioned log as a source of its own: unbounded splits, read in slices.

Think of a message broker. A directory holds partitions, files `<name>.log` that only ever grow by
whole lines. Every partition is one split that never ends: a reader takes at most `slice` lines of
it in a batch, and no more bytes than the batch had room for, and reports where it stopped; the
remainder stays with the same reader. New partitions are found while the query runs.

    spark.readStream.format("sluice").option("source", "log_source:LogSource")
        .option("sourceOptions", '{"slice": 1000}').option("checkpointLocation", ck)
        .schema("partition string, position long, line string").load("/logs")

What the protocol gives for it: exactly-once positions, because where a reader stopped is part of
its reader commit; continuations, because what a partition has grown by is assigned to its reader
while that is still reading, and starts where its own commit says; restore, because positions are
the enumerator's whole state.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.sources import (
    BatchBudget,
    JsonSerializer,
    ReaderContext,
    Report,
    Source,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitReader,
    SplitUnfinished,
    VersionedSerializer,
)

SUFFIX = ".log"


@dataclass(frozen=True)
class LogSplit:
    """A partition from `position` on. Unbounded, unless a run has to end (`stop`)."""

    partition: str
    position: int
    """Byte offset of the next line to read."""

    stop: int | None = None
    """Byte offset before which this run ends; None for a stream."""

    most: int | None = None
    """At most so many bytes now; None without `maxBytesPerTrigger`."""

    @property
    def split_id(self) -> str:
        """A partition at a position."""
        return f"{self.partition}@{self.position}"


@dataclass(frozen=True)
class PartitionState:
    """What the enumerator knows of one partition."""

    position: int
    owner: int
    """Reader that the partition stays with."""

    reading: str = ""
    """Id of the split as a reader has it; empty while no reader does."""

    granted: int = 0
    """Up to where batches have had room for it."""


LogState = tuple[int, Mapping[str, PartitionState]]
"""(parallelism, partition -> state)."""


class LogEnumerator(SplitEnumerator[LogSplit, LogState]):
    """Knows how far each partition has been assigned, and how long it is."""

    def __init__(
        self,
        context: SplitEnumeratorContext[LogSplit],
        directory: str,
        interval: float,
        state: LogState | None,
    ) -> None:
        self._context = context
        self._directory = directory
        self._interval = interval
        self._written_for, partitions = state or (0, {})
        self._partitions = dict(partitions)
        self._ends: dict[str, int] = {}
        self._has_discovered = False

    @override
    def start(self) -> None:
        self._context.call_async(self._lengths, self._measured)

    def _lengths(self) -> dict[str, int]:
        with os.scandir(self._directory) as entries:
            return {e.name: e.stat().st_size for e in entries if e.name.endswith(SUFFIX)}

    def _measured(self, ends: dict[str, int] | None, error: BaseException | None) -> None:
        if ends is None:
            raise error or AssertionError
        for name in sorted(ends.keys() - self._partitions.keys()):
            self._partitions[name] = PartitionState(0, -1)
        self._ends = ends
        self._has_discovered = True
        self._context.request_planning()
        if not self._context.bounded:
            self._context.call_async(self._lengths, self._measured, self._interval)

    @property
    @override
    def has_discovered(self) -> bool:
        return self._has_discovered

    @override
    def plan_batch(self, budget: BatchBudget) -> None:
        self._give_owners()
        for name, known in sorted(self._partitions.items()):
            end, start = self._ends.get(name, 0), known.granted if known.reading else known.position
            if start >= end or budget.is_full:
                continue
            stop = end if self._context.bounded else None
            # Without a limit a reader may take what has come since, too.
            size = end - start if budget.bytes_left is None else min(budget.bytes_left, end - start)
            most = None if budget.bytes_left is None else size
            split = LogSplit(name, known.position, stop, most)
            reading = known.reading or split.split_id
            if not known.reading:
                self._context.assign_splits({known.owner: [split]})
            elif not self._context.continue_split(known.owner, reading, max_bytes=most):
                continue
            self._partitions[name] = replace(known, reading=reading, granted=start + size)
            budget.take(name, size)

    def _give_owners(self) -> None:
        # With another parallelism than the state was written for, all are spread again.
        readers = self._context.parallelism
        if self._written_for not in (0, readers):
            self._partitions = {
                name: replace(known, owner=-1) for name, known in self._partitions.items()
            }
        self._written_for = readers
        load = [0] * readers
        for known in self._partitions.values():
            if known.owner >= 0:
                load[known.owner] += 1
        for name, known in sorted(self._partitions.items()):
            if known.owner < 0:
                owner = load.index(min(load))
                load[owner] += 1
                self._partitions[name] = replace(known, owner=owner)

    @override
    def add_splits_back(self, splits: Sequence[LogSplit], reader: int) -> None:
        for split in splits:
            known = self._partitions[split.partition]
            self._partitions[split.partition] = replace(known, position=split.position, reading="")

    @override
    def snapshot_state(self, checkpoint_id: int) -> LogState:
        return self._written_for, dict(self._partitions)

    @override
    def backlog(self) -> Mapping[str, Any]:
        behind = {n: self._ends.get(n, 0) - known.position for n, known in self._partitions.items()}
        return {"partitions": len(behind), "bytesBehind": sum(max(0, b) for b in behind.values())}


class LogReader(SplitReader[LogSplit]):
    """Reads at most `slice_lines` lines of each partition, and what the batch had room for."""

    def __init__(
        self,
        directory: str,
        slice_lines: int,
        limit: int | None,
        schema: pa.Schema,
        context: ReaderContext,
    ) -> None:
        """`limit` is that of the batch: a line that is longer comes alone."""
        self._directory = directory
        self._slice_lines = slice_lines
        self._limit = limit
        self._schema = schema
        self._until = context.until
        self._continued = context.continued

    @override
    def read(self, splits: Sequence[LogSplit]) -> Iterator[pa.RecordBatch | Report]:
        for split in splits:
            # An earlier attempt that has committed has decided where this slice ends.
            agreed = self._until.get(split.split_id)
            positions, lines, end = self._slice(self._bounds_of(split), bounded=agreed is None)
            names = [split.partition] * len(lines)
            yield pa.record_batch([names, positions, lines], schema=self._schema)
            left = replace(split, position=end, most=None)
            yield SplitUnfinished(split.split_id, len(lines), left)

    def _bounds_of(self, split: LogSplit) -> LogSplit:
        agreed, continued = self._until.get(split.split_id), self._continued.get(split.split_id)
        if agreed is not None:
            return replace(split, stop=agreed.position, most=None)
        return split if continued is None else replace(split, most=continued.bytes)

    def _slice(self, split: LogSplit, *, bounded: bool) -> tuple[list[int], list[str], int]:
        positions: list[int] = []
        lines: list[str] = []
        position = split.position
        with open(os.path.join(self._directory, split.partition), "rb") as file:
            file.seek(position)
            while not (bounded and len(lines) == self._slice_lines):
                line = file.readline()
                after = position + len(line)
                if not line.endswith(b"\n") or (split.stop is not None and after > split.stop):
                    break
                is_first_of_all = not lines and split.most == self._limit
                too_long = split.most is not None and after > split.position + split.most
                if too_long and not is_first_of_all:
                    break
                positions.append(position)
                lines.append(line[:-1].decode())
                position = after
        return positions, lines, position


class LogSource(Source[LogSplit, LogState]):
    """Named by `.option("source", "log_source:LogSource")`."""

    @property
    @override
    def name(self) -> str:
        return "log"

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[LogSplit], state: LogState | None
    ) -> LogEnumerator:
        interval = self.options.discovery_interval / 1000
        return LogEnumerator(context, self.options.path, interval, state)

    @override
    def create_reader(self, context: ReaderContext) -> LogReader:
        slice_lines = int(self.options.source_options.get("slice", 1000))
        limit = self.options.max_bytes_per_trigger
        return LogReader(self.options.path, slice_lines, limit, self.schema, context)

    @override
    def is_unbounded(self, split: LogSplit) -> bool:
        return True

    @property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[LogSplit]]:
        return JsonSerializer(
            1,
            lambda split: [split.partition, split.position, split.stop, split.most],
            lambda _, value: LogSplit(*value),
        )

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[LogState]:
        return _StateSerializer()


class _StateSerializer(VersionedSerializer[LogState]):
    """One row a partition; the parallelism is in each."""

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: LogState) -> pa.RecordBatch:
        parallelism, partitions = value
        rows = sorted(partitions.items())
        columns = {
            "parallelism": pa.array([parallelism] * len(rows), pa.int32()),
            "partition": pa.array([name for name, _ in rows], pa.string()),
            "position": pa.array([known.position for _, known in rows], pa.int64()),
            "owner": pa.array([known.owner for _, known in rows], pa.int32()),
            "reading": pa.array([known.reading for _, known in rows], pa.string()),
            "granted": pa.array([known.granted for _, known in rows], pa.int64()),
        }
        return pa.record_batch(columns)

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> LogState:
        rows = batch.to_pylist()
        partitions = {
            row["partition"]: PartitionState(
                row["position"], row["owner"], row["reading"], row["granted"]
            )
            for row in rows
        }
        return (rows[0]["parallelism"] if rows else 0), partitions

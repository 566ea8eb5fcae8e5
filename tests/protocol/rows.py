"""A source whose rows can be counted by hand: row i of file f is the pair (f, i), one byte each.

The real file enumerator finds and cuts the files. Around it are two ledgers that are part of the
state, one for each direction of events: what readers told, and what was sent to them.

Besides files there are lanes, which grow. A lane is one split that never ends; while a reader has
it, growth is granted by an event to that reader, once. So an event that does not arrive together
with its lane costs rows: that is what gateways are for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.serializer import FileSplitSerializer, VersionedSerializer
from pyspark_sluice.checkpoint_meta.splits import FileSplit, FileVersion
from pyspark_sluice.enumerator.api import (
    EnumeratorSource,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from pyspark_sluice.enumerator.files.enumerator import DiscoveryPolicy, FileSplitEnumerator
from pyspark_sluice.enumerator.files.slicing import SplitCutter
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.enumerator.files.state import advance
from pyspark_sluice.enumerator.room import BatchRoom
from pyspark_sluice.errors import MalformedDataError, SourceUnavailable
from pyspark_sluice.reader.api import (
    ReaderContext,
    ReaderEvent,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitUnfinished,
)

Row = tuple[str, int]

LANE = "lane"


def is_lane(path: str) -> bool:
    """True for the split of a lane; all others are of files."""
    return path.startswith(LANE)


SCHEMA = pa.schema([("file", pa.string()), ("row", pa.int64())])


@dataclass
class World:
    """The directory that is ingested."""

    files: list[FileVersion] = field(default_factory=list)
    lanes: dict[str, int] = field(default_factory=dict)
    """Lane -> rows so far."""
    listing_failures: int = 0

    def land(self, rows: int, modified: int) -> None:
        """One more file."""
        self.files.append(FileVersion(f"f{len(self.files)}", rows, modified))

    def grow(self, lane: int, rows: int) -> None:
        """More rows in a lane, which may be new."""
        name = f"{LANE}{lane}"
        self.lanes[name] = self.lanes.get(name, 0) + rows

    def list_unknown(self, known: Container[str]) -> list[FileVersion]:
        """A FileLister."""
        if self.listing_failures > 0:
            self.listing_failures -= 1
            raise SourceUnavailable("the bucket does not answer")
        return [file for file in self.files if file.path not in known]

    def rows(self) -> list[Row]:
        """The model: a plain list of everything that has landed."""
        files = [(file.path, i) for file in self.files for i in range(file.size)]
        return files + [(name, i) for name, size in self.lanes.items() for i in range(size)]


@dataclass
class Lane:
    """What the enumerator knows of a lane."""

    position: int = 0
    """First row that is not assigned; meaningless while a reader has the lane."""
    granted: int = 0
    """After the last row that a split or an event has granted."""
    owner: int | None = None
    """The reader that has it."""


@dataclass
class Ledger:
    """The enumerator's state; `told` holds what is new, the others everything."""

    files: Sequence[FileSplit] = ()
    told: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)


class LedgerSerializer(VersionedSerializer[Ledger]):
    @property
    def version(self) -> int:
        return 1

    def serialize(self, value: Ledger) -> pa.RecordBatch:
        files = [(s.file.path, s.file.size, s.file.modified, s.start, s.end) for s in value.files]
        lanes = {name: [x.position, x.granted, x.owner] for name, x in value.lanes.items()}
        text = json.dumps([files, value.told, value.sent, lanes], sort_keys=True)
        return pa.record_batch({"json": pa.array([text])})

    def deserialize(self, version: int, batch: pa.RecordBatch) -> Ledger:
        files, told, sent, lanes = json.loads(batch.column("json")[0].as_py())
        splits = [FileSplit(FileVersion(f[0], f[1], f[2]), f[3], f[4]) for f in files]
        return Ledger(splits, told, sent, {name: Lane(*of) for name, of in lanes.items()})


class LedgerEnumerator(SplitEnumerator[FileSplit, Ledger]):
    def __init__(
        self,
        context: SplitEnumeratorContext[FileSplit],
        inner: FileSplitEnumerator,
        world: World,
        state: Ledger | None,
    ) -> None:
        self._context = context
        self._world = world
        self.inner = inner
        state = state or Ledger()
        self.told = list(state.told)
        self._new = 0
        self.sent = dict(state.sent)
        self.lanes = {name: replace(lane) for name, lane in state.lanes.items()}
        self._sizes: dict[str, int] = {}
        self.wanted: list[int] = []
        self.notified: list[tuple[str, int]] = []

    def start(self) -> None:
        self.inner.start()
        self._context.call_async(lambda: dict(self._world.lanes), self._measured)

    def _measured(self, sizes: dict[str, int] | None, error: BaseException | None) -> None:
        if sizes is None:
            raise error or AssertionError
        self._sizes = sizes
        wanted, self.wanted = self.wanted, []
        for reader in wanted:
            if reader < self._context.parallelism:
                number = self.sent[str(reader)] = self.sent.get(str(reader), 0) + 1
                self._context.send_event(reader, number)
        for name, size in sorted(sizes.items()):
            lane = self.lanes.setdefault(name, Lane())
            if lane.owner is None or lane.granted >= size:
                continue
            if lane.owner < self._context.parallelism:
                lane.granted = size
                self._context.send_event(lane.owner, [name, size])
        if not self._context.bounded:
            self._context.call_async(lambda: dict(self._world.lanes), self._measured)

    def plan_batch(self, room: BatchRoom) -> None:
        for name, size in sorted(self._sizes.items()):
            lane = self.lanes[name]
            if lane.owner is None and lane.position < size and not room.is_full:
                lane.granted = size
                self._assign_lane(name, lane, int(name[len(LANE) :]) % self._context.parallelism)
                room.take(name, 1)
        self.inner.plan_batch(room)

    def _assign_lane(self, name: str, lane: Lane, reader: int, end: int | None = None) -> None:
        lane.owner = reader
        stop = lane.granted if end is None else end
        split = FileSplit(FileVersion(name, 0, 0), lane.position, stop)
        self._context.assign_splits({reader: [split]})

    def is_decided(self, room: BatchRoom) -> bool:
        return self.inner.is_decided(room)

    def add_splits_back(self, splits: Sequence[FileSplit], reader: int) -> None:
        files = [split for split in splits if not is_lane(split.file.path)]
        if files:
            self.inner.add_splits_back(files, reader)
        for split in splits:
            if not is_lane(split.file.path):
                continue
            lane = self.lanes[split.file.path]
            lane.position, lane.owner = split.start, None
            if lane.granted > split.end and reader < self._context.parallelism:
                # The event that grants the rest is under way to this reader: the lane follows it.
                self._assign_lane(split.file.path, lane, reader, split.end)

    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        self.told.append(value)
        self._new += 1

    def snapshot_state(self, checkpoint_id: int) -> Ledger:
        told = self.told[len(self.told) - self._new :]
        self._new = 0
        lanes = {name: replace(lane) for name, lane in self.lanes.items()}
        return Ledger(self.inner.snapshot_state(checkpoint_id), told, dict(self.sent), lanes)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.notified.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.notified.append(("aborted", checkpoint_id))

    @property
    def is_settled(self) -> bool:
        return self.inner.is_settled


class _AnyByte:
    def may_cut_anywhere(self, file: FileVersion) -> bool:
        return True

    def blocks(self, file: FileVersion) -> None:
        return None


class RowSource(EnumeratorSource[FileSplit, Ledger]):
    """The driver's half."""

    def __init__(self, world: World, max_split: int = 3) -> None:
        self._world = world
        self._max_split = max_split

    @property
    def name(self) -> str:
        return "rows"

    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: Ledger | None
    ) -> LedgerEnumerator:
        inner = FileSplitEnumerator(
            context,
            self._world.list_unknown,
            SplitCutter(_AnyByte(), self._max_split),
            SplitSpreader(target_bytes=2, open_cost_bytes=1, cores=2),
            DiscoveryPolicy(interval=0.0, attempts=3),
            cores=2,
            state=state.files if state else None,
        )
        return LedgerEnumerator(context, inner, self._world, state)

    @property
    def split_serializer(self) -> FileSplitSerializer:
        return FileSplitSerializer()

    @property
    def state_serializer(self) -> LedgerSerializer:
        return LedgerSerializer()

    @property
    def reader_event_types(self) -> frozenset[str]:
        return frozenset({"told"})

    @property
    def snapshots_are_changes(self) -> bool:
        return True

    def advance_state(
        self, state: Ledger | None, changes: Ledger, assigned: Sequence[FileSplit]
    ) -> Ledger:
        state = state or Ledger()
        of_files = [split for split in assigned if not is_lane(split.file.path)]
        files = advance(state.files, changes.files, of_files)
        return Ledger(files, [*state.told, *changes.told], changes.sent, changes.lanes)


READ = "read"
RETURN = "return"
FAIL = "fail"
PART = "part"


class RowReader(SplitReader[FileSplit]):
    """The executors' half: does with its splits what a script says, one word a split."""

    def __init__(
        self, context: ReaderContext, script: Sequence[str] = (), tell: str | None = None
    ) -> None:
        self._context = context
        self._script = list(script)
        self._tell = tell

    def read(self, splits: Sequence[FileSplit]) -> Iterator[pa.RecordBatch | Report]:
        for index, split in enumerate(splits):
            read = self._read_lane if is_lane(split.file.path) else self._read
            yield from read(split, self._word(index))
        if self._tell is not None:
            yield ReaderEvent("told", self._tell)

    def _word(self, index: int) -> str:
        word = self._script[index] if index < len(self._script) else READ
        if word == FAIL or not self._context.must_finish:
            return word
        return READ

    def _read_lane(self, split: FileSplit, word: str) -> Iterator[pa.RecordBatch | Report]:
        name, end = split.file.path, split.end
        for event in self._context.events:
            if isinstance(event, list) and event[0] == name:
                end = max(end, event[1])
        stop = split.start + (end - split.start) // 2 if word == PART else end
        remainder = self._context.until.get(split.split_id, split._replace(start=stop, end=end))
        for row in range(split.start, remainder.start):
            yield batch_of([(name, row)])
        if word == FAIL:
            raise MalformedDataError("the disk crackles", split.split_id)
        yield SplitUnfinished(split.split_id, remainder.start - split.start, remainder)

    def _read(self, split: FileSplit, word: str) -> Iterator[pa.RecordBatch | Report]:
        if word == RETURN and self._context.may_return:
            yield SplitReturned(split.split_id, "the disk crackles")
            return
        end = split.end
        remainder = self._context.until.get(split.split_id)
        if remainder is not None:
            end = remainder.start
        elif word == PART:
            end = split.start + split.length // 2
            remainder = split.from_position(end)
        for row in range(split.start, end):
            yield batch_of([(split.file.path, row)])
        if word == FAIL:
            raise MalformedDataError("the disk crackles", split.split_id)
        rows = end - split.start
        if remainder is not None:
            yield SplitUnfinished(split.split_id, rows, remainder)
        else:
            yield SplitFinished(split.split_id, rows)


def reader_maker(
    script: Sequence[str] = (), tell: str | None = None
) -> Callable[[ReaderContext], RowReader]:
    """What a ReaderTask builds its readers with."""
    return lambda context: RowReader(context, script, tell)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array([file for file, _ in rows]), pa.array([row for _, row in rows], pa.int64())],
        schema=SCHEMA,
    )


def rows_in(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(batch.column("file").to_pylist(), batch.column("row").to_pylist(), strict=True))

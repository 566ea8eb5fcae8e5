"""A source whose rows can be counted by hand: row i of file f is the pair (f, i), one byte each.

The real file enumerator finds and cuts the files. Around it are two ledgers that are part of the
state, one for each direction of events: what readers told, and what was sent to them.

Next to files there are lanes, which grow. A lane is one split that never ends, and its reader may
stop before the end it was given. What grows while a reader has the lane is granted by a
continuation, which is cut while it is held. Where that starts only the reader's own commit says, so
one that is resolved too early costs rows or repeats some: that is what gateways are for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.checkpoint_meta.documents.serializer import VersionedSerializer
from pyspark_sluice.checkpoint_meta.files.file_columns import CHANGES, FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FIGURES, FileSplit, FileVersion
from pyspark_sluice.enumerator.api import SplitEnumerator, SplitEnumeratorContext
from pyspark_sluice.enumerator.batch_budget import BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter, SplitSpreader
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.ledger.file_state import FileState, FileStateSerializer, fold
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.large_state import FrozenState, StateDocument, WrittenState
from pyspark_sluice.enumerator.source_api import EnumeratorSource
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import AnyByte, Listed

Row = tuple[str, int]

LANE = "lane"


def is_lane(path: str) -> bool:
    """True for the split of a lane; all others are of files."""
    return path.startswith(LANE)


MERGING = MergePolicy(flush_at=3, fan_in=2, longest=6)
"""Runs of few files, so that a run of the simulation merges some."""

POLICY = FilePolicy(
    interval=0.0, attempts=3, max_pending=10, portion=8, ledger=LedgerPolicy(merging=MERGING)
)
"""A pass comes in several portions, and rests."""


@dataclass
class World:
    """The directory that is ingested."""

    files: list[FileVersion] = field(default_factory=list)
    lanes: dict[str, int] = field(default_factory=dict)
    """Lane -> rows so far."""
    listing_failures: int = 0
    gone: list[FileVersion] = field(default_factory=list)
    """Files that were cleaned up."""
    poisoned: set[str] = field(default_factory=set)
    """Files that nobody can read."""
    event_failures: int = 0
    """Events of readers that the enumerator fails to take in."""
    wanted: list[int] = field(default_factory=list)
    """Readers that the next look at the lanes sends an event, whose numbers begin with 1."""

    def land(self, rows: int, modified: int) -> None:
        """One more file."""
        number = len(self.files) + len(self.gone)
        self.files.append(FileVersion(f"f{number}", rows, modified))

    def grow(self, lane: int, rows: int) -> None:
        """More rows in a lane, which may be new."""
        name = f"{LANE}{lane}"
        self.lanes[name] = self.lanes.get(name, 0) + rows

    def listed(self) -> Iterator[FileVersion]:
        """One listing."""
        if self.listing_failures > 0:
            self.listing_failures -= 1
            raise SourceUnavailable("the bucket does not answer")
        yield from tuple(self.files)

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
    """After the last row that a split or a continuation has granted."""
    owner: int | None = None
    """The reader that has it."""
    split: str = ""
    """Id of the split as it was assigned to the owner."""


@dataclass
class Ledger:
    """The enumerator's state; `told` holds what is new, the others everything."""

    files: FileState = field(default_factory=FileState)
    told: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)


_COLUMNS = pa.schema([*CHANGES, ("json", pa.string())])


def rows_of_state(files: Sequence[pa.RecordBatch], ledger: Ledger) -> list[pa.RecordBatch]:
    """One row for all that is not of files, then the rows of files."""
    lanes = {name: list(astuple(x)) for name, x in ledger.lanes.items()}
    text = json.dumps([ledger.told, ledger.sent, lanes], sort_keys=True)
    row = {"path": "", "size": 0, "modified": 0, "etag": "", "start": 0, "end": 0, "json": text}
    row |= {"known": False, "withdrawn": False}
    batches = [pa.RecordBatch.from_pylist([row], schema=_COLUMNS)]
    for changes in files:
        columns = [*changes.columns, pa.nulls(changes.num_rows, pa.string())]
        batches.append(pa.record_batch(columns, schema=_COLUMNS))
    return batches


class LedgerSerializer(VersionedSerializer[Ledger]):
    @property
    def version(self) -> int:
        return 1

    def serialize(self, value: Ledger) -> pa.RecordBatch:
        return pa.concat_batches(self.serialize_all(value))

    def serialize_all(self, value: Ledger) -> list[pa.RecordBatch]:
        return rows_of_state(FileStateSerializer().serialize_all(value.files), value)

    def deserialize(self, version: int, batch: pa.RecordBatch) -> Ledger:
        texts = batch.column("json")
        files = batch.filter(texts.is_null()).drop_columns(["json"])
        ledger = Ledger(FileState([files]))
        for text in texts.drop_null().to_pylist():
            told, ledger.sent, lanes = json.loads(text)
            ledger.told += told
            ledger.lanes = {name: Lane(*of) for name, of in lanes.items()}
        return ledger


@dataclass
class FrozenRows(FrozenState):
    """The whole state as of one cut."""

    files: FrozenState
    rest: Ledger

    def write(self, attachments: Attachments) -> WrittenState:
        written = self.files.write(attachments)
        return WrittenState(rows_of_state(written.rows, self.rest), written.attachments)


class LedgerEnumerator(SplitEnumerator[FileSplit, Ledger]):
    def __init__(
        self,
        context: SplitEnumeratorContext[FileSplit],
        inner: FileSplitEnumerator,
        world: World,
        state: Ledger | None,
        interval: float = 0.0,
    ) -> None:
        self._context = context
        self._world = world
        self._interval = interval
        self.inner = inner
        state = state or Ledger()
        self.told = list(state.told)
        self._new = 0
        self.sent = dict(state.sent)
        self.lanes = {name: replace(lane) for name, lane in state.lanes.items()}
        self._sizes: dict[str, int] = {}
        self.notified: list[tuple[str, int]] = []

    def start(self) -> None:
        self.inner.start()
        self._context.call_async(lambda: dict(self._world.lanes), self._measured)

    def _measured(self, sizes: dict[str, int] | None, error: BaseException | None) -> None:
        if sizes is None:
            raise error or AssertionError
        self._sizes = sizes
        self._context.request_planning()
        wanted, self._world.wanted = self._world.wanted, []
        for reader in wanted:
            if reader < self._context.parallelism:
                number = self.sent[str(reader)] = self.sent.get(str(reader), 0) + 1
                self._context.send_event(reader, number)
        for name in sizes:
            self.lanes.setdefault(name, Lane())
        if not self._context.bounded:
            call = self._context.call_async
            # A lane has to grow while a reader has it, and a batch is short.
            interval = min(self._interval, 0.1) if self._world.lanes else self._interval
            call(lambda: dict(self._world.lanes), self._measured, interval)

    def plan_batch(self, budget: BatchBudget) -> None:
        for name, size in sorted(self._sizes.items()):
            lane = self.lanes[name]
            if lane.owner is None and lane.position < size and not budget.is_full:
                reader = int(name[len(LANE) :]) % self._context.parallelism
                split = FileSplit(FileVersion(name, 0, 0), lane.position, size)
                self._context.assign_splits({reader: [split]})
                self._grant(name, size, budget)
                lane.owner, lane.split = reader, split.split_id
            elif lane.granted < size and not budget.is_full and self._goes_on(lane, size):
                self._grant(name, size, budget)
        self.inner.plan_batch(budget)

    def _goes_on(self, lane: Lane, size: int) -> bool:
        if lane.owner is None or lane.owner >= self._context.parallelism:
            return False
        return self._context.continue_split(lane.owner, lane.split, max_rows=2, stop=size)

    def _grant(self, name: str, size: int, budget: BatchBudget) -> None:
        self.lanes[name].granted = size
        budget.take(name, 1)

    def is_decided(self, budget: BatchBudget) -> bool:
        return self.inner.is_decided(budget)

    def add_splits_back(self, splits: Sequence[FileSplit], reader: int) -> None:
        files = [split for split in splits if not is_lane(split.file.path)]
        if files:
            self.inner.add_splits_back(files, reader)
        for split in splits:
            if not is_lane(split.file.path):
                continue
            lane = self.lanes[split.file.path]
            lane.position, lane.owner = split.start, None

    def requeue_splits(self, splits: Sequence[FileSplit]) -> None:
        self.inner.requeue_splits(splits)

    def forget_splits(self, splits: Sequence[FileSplit]) -> None:
        self.inner.forget_splits(splits)

    def add_events_back(self, events: Sequence[Any], reader: int) -> None:
        self.sent[str(reader)] -= len(events)

    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        if event_type == FIGURES:
            self.inner.handle_reader_event(reader, event_type, value)
            return
        if self._world.event_failures:
            self._world.event_failures -= 1
            raise SourceUnavailable("the enumerator fails in the middle of a commit")
        self.told.append(value)
        self._new += 1

    def snapshot_state(self, checkpoint_id: int) -> Ledger:
        told = self.told[len(self.told) - self._new :]
        self._new = 0
        lanes = {name: replace(lane) for name, lane in self.lanes.items()}
        return Ledger(self.inner.snapshot_state(checkpoint_id), told, dict(self.sent), lanes)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.inner.notify_checkpoint_complete(checkpoint_id)
        self.notified.append(("complete", checkpoint_id))

    def freeze_state(self) -> FrozenRows:
        lanes = {name: replace(lane) for name, lane in self.lanes.items()}
        rest = Ledger(FileState(), list(self.told), dict(self.sent), lanes)
        return FrozenRows(self.inner.freeze_state(), rest)

    @property
    def can_improve_state(self) -> bool:
        return self.inner.can_improve_state

    def part_budgets(self, checkpoint_id: int, readers: Sequence[int]) -> Mapping[int, PartBudget]:
        return self.inner.part_budgets(checkpoint_id, readers)

    def cursors(self) -> Mapping[str, Any]:
        return self.inner.cursors()

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        self.inner.resume_from(cursors)

    def improve_state(self) -> Callable[[Attachments], None] | None:
        return self.inner.improve_state()

    def attachments_in_use(self) -> Collection[str]:
        return self.inner.attachments_in_use()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.inner.notify_checkpoint_aborted(checkpoint_id)
        self.notified.append(("aborted", checkpoint_id))

    @property
    def wants_checkpoint(self) -> bool:
        return self.inner.wants_checkpoint

    @property
    def has_discovered(self) -> bool:
        return self.inner.has_discovered


class RowSource(EnumeratorSource[FileSplit, Ledger]):
    """The driver's half."""

    def __init__(self, world: World, max_split: int = 3, policy: FilePolicy = POLICY) -> None:
        self._world = world
        self._max_split = max_split
        self._policy = policy

    @property
    def name(self) -> str:
        return "rows"

    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: Ledger | None
    ) -> LedgerEnumerator:
        inner = FileSplitEnumerator(
            context,
            Listed(self._world.listed, chunk=2),
            SplitCutter(AnyByte(), self._max_split),
            SplitSpreader(target_bytes=2, open_cost_bytes=1, cores=2),
            self._policy,
            state=state.files if state else None,
        )
        return LedgerEnumerator(context, inner, self._world, state, self._policy.interval)

    @property
    def split_serializer(self) -> FileSplitSerializer:
        return FileSplitSerializer()

    @property
    def state_serializer(self) -> LedgerSerializer:
        return LedgerSerializer()

    def is_unbounded(self, split: FileSplit) -> bool:
        return is_lane(split.file.path)

    @property
    def reader_event_types(self) -> frozenset[str]:
        return frozenset({"told", FIGURES})

    @property
    def snapshots_are_changes(self) -> bool:
        return True

    def restore_state(self, chain: Sequence[StateDocument], attachments: Attachments) -> Ledger:
        whole, of_files = Ledger(), []
        for document in chain:
            changes = [LedgerSerializer().deserialize(1, batch) for batch in document.state]
            for change in changes:
                whole.told += change.told
                whole.sent, whole.lanes = change.sent or whole.sent, change.lanes or whole.lanes
            of_files.append(
                replace(
                    document,
                    state=[batch for change in changes for batch in change.files.changes],
                    assigned=[_of_files(batch) for batch in document.assigned],
                )
            )
        whole.files = fold(of_files, attachments)
        return whole


def _of_files(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array([not is_lane(p) for p in batch.column("path").to_pylist()]))

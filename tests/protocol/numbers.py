"""The smallest source: numbers, one a split, whole snapshots. For cases told step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointRef,
    identities_in,
)
from pyspark_sluice.checkpoint_meta.documents.layout import READERS
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    ReaderCommit,
    ReaderCommits,
    about,
)
from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer, VersionedSerializer
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import FaultyStateStore, MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.api import SplitEnumerator, SplitEnumeratorContext
from pyspark_sluice.enumerator.batch_budget import BatchBudget
from pyspark_sluice.enumerator.source_api import EnumeratorSource
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.tests.protocol.opened import opened


@dataclass(frozen=True)
class Number:
    """A split."""

    value: int

    @property
    def split_id(self) -> str:
        return f"n{self.value}"


class NumberEnumerator(SplitEnumerator[Number, Sequence[int]]):
    """Assigns number n to reader n modulo the parallelism, as far as `offer` lets it."""

    def __init__(
        self, context: SplitEnumeratorContext[Number], state: Sequence[int] | None, size: int = 1
    ) -> None:
        self.context = context
        self.size = size
        self.pending = list(state or ())
        self.added: list[int] = []
        self.heard: list[tuple[int, str, Any]] = []
        self.returned: list[tuple[int, list[int]]] = []
        self.notified: list[tuple[str, int]] = []
        self.snapshot_error: Exception | None = None
        self.discovered = True
        self.closed = False
        self.come_to: Mapping[str, Any] = {}

    def cursors(self) -> Mapping[str, Any]:
        return self.come_to

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        self.come_to = cursors

    def start(self) -> None:
        """Nothing to discover."""

    def add_reader(self, reader: int) -> None:
        self.added.append(reader)

    def plan_batch(self, budget: BatchBudget) -> None:
        while self.pending and not budget.is_full:
            value = self.pending.pop(0)
            budget.take(str(value), self.size)
            self.context.assign_splits({value % self.context.parallelism: [Number(value)]})

    def add_splits_back(self, splits: Sequence[Number], reader: int) -> None:
        self.returned.append((reader, [split.value for split in splits]))
        self.pending.extend(split.value for split in splits)

    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        self.heard.append((reader, event_type, value))

    def snapshot_state(self, checkpoint_id: int) -> Sequence[int]:
        if self.snapshot_error is not None:
            raise self.snapshot_error
        return list(self.pending)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.notified.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.notified.append(("aborted", checkpoint_id))

    @property
    def has_discovered(self) -> bool:
        return self.discovered

    def close(self) -> None:
        self.closed = True


class NumberSource(EnumeratorSource[Number, Sequence[int]]):
    """Starts with the numbers given; goes on with those its state says are pending."""

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self._numbers = numbers
        self.size = 1
        """Bytes of each number."""
        self.creation_error: Exception | None = None

    @property
    def name(self) -> str:
        return "numbers"

    def create_enumerator(
        self, context: SplitEnumeratorContext[Number], state: Sequence[int] | None
    ) -> NumberEnumerator:
        if self.creation_error is not None:
            raise self.creation_error
        return NumberEnumerator(context, self._numbers if state is None else state, self.size)

    @property
    def split_serializer(self) -> VersionedSerializer[Sequence[Number]]:
        return JsonSerializer(1, lambda n: n.value, lambda _, value: Number(value))

    @property
    def state_serializer(self) -> VersionedSerializer[Sequence[int]]:
        return JsonSerializer(1, lambda n: n, lambda _, value: value)

    @property
    def reader_event_types(self) -> frozenset[str]:
        return frozenset({"hello"})


@dataclass
class Harness:
    """One coordinator after another over one state, driven by hand."""

    numbers: Sequence[int] = ()
    settings: CoordinatorSettings = field(
        default_factory=lambda: CoordinatorSettings(parallelism=2, discovery_timeout=0.0)
    )
    state: MemoryStateStore = field(default_factory=MemoryStateStore)

    def __post_init__(self) -> None:
        # Readers of the harness acknowledge at once or never.
        self.settings = replace(self.settings, commit_patience=0.0)
        self.source = NumberSource(self.numbers)
        self.commits = ReaderCommits(self.state)
        self.restart()

    def restart(self, **changes: Any) -> None:
        """A new driver process; the old one stays as it was."""
        self.settings = replace(self.settings, **changes)
        self.store = FaultyStateStore(self.state)
        # As in production: an object that is there already is ours if its content is.
        store = RetryingStateStore(self.store, attempts=1)
        self.coordinator: Coordinator[Number, Sequence[int]] = Coordinator(
            self.source, store, self.settings, lambda: 0.0, HandCrankedCalls
        )

    def start(self, ref: CheckpointRef = NO_CHECKPOINT) -> None:
        """Open the state without cutting anything."""
        self.coordinator._open(ref)

    @property
    def enumerator(self) -> NumberEnumerator:
        found = opened(self.coordinator).enumerator
        assert isinstance(found, NumberEnumerator)
        return found

    @property
    def calls(self) -> HandCrankedCalls:
        found = self.coordinator._threads.calls
        assert isinstance(found, HandCrankedCalls)
        return found

    def offer(self, *numbers: int) -> None:
        """More work."""
        self.enumerator.pending.extend(numbers)

    def plan_ahead(self, *numbers: int) -> None:
        """More work, and the background thread assigns it."""
        self.offer(*numbers)
        self.calls.tick()

    def assigned(self, ref: CheckpointRef) -> dict[int, list[int]]:
        """Reader -> numbers of one checkpoint, out of the durable state."""
        found: dict[int, list[int]] = {}
        for reader, batch in self.coordinator.history.load(ref).assigned:
            splits = self.source.split_serializer.read(1, batch)
            found.setdefault(reader, []).extend(split.value for split in splits)
        return found

    def acknowledge(self, ref: CheckpointRef, reader: int, **more: Any) -> ReaderCommit:
        """What a reader task does at its end."""
        count = len(self.assigned(ref)[reader])
        zeros = [0] * count
        # A batch of its own, unless the test says otherwise.
        more.setdefault("batch_start", self.coordinator.history.load(ref).header.parent_checkpoint)
        return self.commits.publish(
            ReaderCommit(
                **about(self.coordinator.history.load(ref).identity),
                reader=reader,
                attempt=0,
                rows=[1] * count,
                input_bytes=zeros,
                microseconds=zeros,
                **more,
            )
        )

    def acknowledge_all(self, ref: CheckpointRef) -> None:
        for reader in self.assigned(ref):
            self.acknowledge(ref, reader)

    def inbox(self) -> dict[int, list[int]]:
        """Sent to readers since the last cut, held or not."""
        read, record = (
            self.source.split_serializer.read,
            opened(self.coordinator).flight.open_record,
        )
        return {
            reader: [split.value for batch in record.splits(reader) for split in read(1, batch)]
            for reader in record.readers
        }

    def abandoned(self) -> list[tuple[int, list[int]]]:
        """(reader, numbers) of what the driver has published as abandoned, oldest first."""
        return [
            (commit.reader, self.assigned(commit.ref)[commit.reader])
            for checkpoint in identities_in(self.state.list(READERS))
            for commit in self.commits.of(checkpoint)
            if commit.abandoned
        ]

    def held(self) -> dict[int, int]:
        """Reader -> checkpoint under which the newest of what was sent to it is held."""
        gateways = opened(self.coordinator).gateways
        found = {reader: gateways[reader].held_under(record) for record, reader in gateways.held()}
        return {reader: of.ref.checkpoint for reader, of in found.items() if of}


def after_eight_batches() -> tuple[Harness, CheckpointRef]:
    """Ten numbers in batches of one, of which the state retains one; the last that was read."""
    settings = CoordinatorSettings(
        BatchLimits(files=1), 1, retained_checkpoints=1, deltas_per_base=2, discovery_timeout=0.0
    )
    query, ref = Harness(range(10), settings), NO_CHECKPOINT
    for _ in range(8):
        ref, before = query.coordinator.latest(ref), ref
        query.acknowledge(ref, 0)
        query.coordinator.commit(before)
        query.calls.tick()
        query.calls.run_calls()
    return query, ref

"""What holds at every step of the simulation (I1 and I2 are asserted where they happen)."""

from __future__ import annotations

from collections import Counter

from hypothesis.stateful import (
    invariant,
)

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.tests.protocol.opened import opened

from .query import Query
from .rows import Row, is_lane
from .spark_model import rows_of


class Invariants(Query):
    """Invariants I3 to I5 of the protocol, seen from outside and, for I3, from inside too."""

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        due = self.due()
        twice = [row for row, times in self.spark.accounted().items() if times > due[row]]
        assert not twice, f"I3: more than once in the sink: {twice}"

    @invariant()
    def events_arrive_in_order_without_gaps(self) -> None:
        arrived: dict[int, list[object]] = {}
        for ref in self.spark.offsets:
            for reader, events in self.spark.events[ref].items():
                assert reader in self.spark.plans[ref], "an event for a reader without a task"
                numbers = [event for event in events if isinstance(event, int)]
                arrived.setdefault(reader, []).extend(numbers)
        for events in arrived.values():
            assert events == list(range(1, len(events) + 1)), f"events out of order: {arrived}"

    def _is_alive(self) -> bool:
        coordinator = self.coordinator
        if coordinator._opened is None or self.run.store.dead:
            return False
        return coordinator._threads.failure is None

    @invariant()
    def everything_a_base_refers_to_is_there(self) -> None:
        """Walks all references, of bases that no chain leads to as well."""
        objects = self.objects.objects
        for name in [name for name in objects if name.startswith("bases/")]:
            if name not in self.referred:
                header = Checkpoint.from_bytes(objects[name], name).header
                self.referred[name] = [f"index/{a.name}" for a in header.attachments]
            for wanted in self.referred[name]:
                assert wanted in objects, f"{name} refers to {wanted}, which is gone"

    @invariant()
    def every_split_is_in_one_place(self) -> None:
        """I3, seen from inside: pending, held, or tracked for the next checkpoint."""
        if not self._is_alive():
            return
        with_coordinator = self._rows_with_the_coordinator()
        assert max(with_coordinator.values(), default=0) <= 1, "I3: a row in two places"
        assigned, back, surely_back = self._rows_assigned()
        again = Counter(row for rows in self.ordered for row in rows)
        for row in with_coordinator:
            assert assigned[row] <= back[row] + again[row], f"I3: {row} is assigned and pending"
        flight = opened(self.coordinator).flight
        running = flight.running and flight.running.ref
        if not flight.ahead and running in (None, *self.spark.offsets):
            ledger = self.enumerator.inner.ledger
            paths = [file.path for file in self.world.files]
            known = ledger.seen.are_known(paths).tolist()
            assert len(ledger.seen) == sum(known)
            for file in [
                f for f, is_known in zip(self.world.files, known, strict=True) if is_known
            ]:
                for row in rows_of((file.path, 0, file.size)):
                    found = with_coordinator[row] or assigned[row] > surely_back[row]
                    assert found, f"I3: {row} is nowhere"

    def _rows_with_the_coordinator(self) -> Counter[Row]:
        coordinator = self.coordinator
        flight = opened(coordinator).flight
        serializer = FileSplitSerializer()
        splits = list(self.enumerator.inner.ledger.pending)
        batches = [
            batch
            for reader in flight.open_record.sent
            for batch in flight.open_record.splits(reader)
        ]
        for batch in batches:
            splits.extend(serializer.deserialize(1, batch))
        ranges = [
            (split.file.path, split.start, split.end)
            for split in splits
            if not is_lane(split.file.path)
        ]
        return Counter(row for split in ranges for row in rows_of(split))

    def _rows_assigned(self) -> tuple[Counter[Row], Counter[Row], Counter[Row]]:
        """Rows assigned on the chain; those sent back by now; those counted as sent back."""
        assigned: Counter[Row] = Counter()
        back: Counter[Row] = Counter()
        surely_back: Counter[Row] = Counter()
        given_up = [row for batch in self.spark.sink for row in batch.given_up]
        open_ = [record.ref for record in opened(self.coordinator).flight.cut_records]
        for number, ref in enumerate(self.spark.offsets):
            for reader, ranges in self.spark.plans[ref].items():
                verdicts = self.spark.commits.of(ref, reader)
                for index, (file, start, end) in enumerate(ranges):
                    if is_lane(file):
                        continue
                    assigned.update(rows_of((file, start, end)))
                    if verdicts is None:
                        continue
                    first = start if index in verdicts.returned else end
                    first = verdicts.remainders.get(index, first)
                    rows = rows_of((file, first, end))
                    back.update(rows)
                    if number < self.spark.committed and ref not in open_:
                        surely_back.update(rows)
        surely_back.subtract(given_up)
        return assigned, back, surely_back

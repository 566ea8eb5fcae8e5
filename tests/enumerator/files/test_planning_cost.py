"""What planning touches grows with the files that are planned, and no faster.

Counted without a clock: calls, and the members of the sets that set operations walk over.
"""

from __future__ import annotations

import sys

import pytest

from pyspark_sluice.enumerator import batch_budget
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchLimits
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.pending import FileOrder
from pyspark_sluice.tests.enumerator.files.bench import HOUR, Bench, file, in_event_time

FEW, MANY, READERS = 2_000, 20_000, 4


class Count:
    """Calls of any function, and members that a set operation walks over."""

    def __init__(self) -> None:
        self.total = 0

    def call(self, _frame, event, _argument):
        self.total += event in ("call", "c_call")

    def counting(self, kind: type) -> type:
        """`set` or `frozenset`, whose operations on all members are counted."""
        count = self

        def counted(name):
            operation = getattr(kind, name)

            def walk(own, *others):
                count.total += len(own) + sum(map(len, others))
                result = operation(own, *others)
                return counting(result) if type(result) is kind else result

            return walk

        walks = ("__or__", "__and__", "__sub__", "__xor__", "__ior__", "__iter__", "copy", "union")
        names = [name for name in walks if hasattr(kind, name)]
        counting = type("Counting", (kind,), {name: counted(name) for name in names})
        return counting


class Planned(Bench):
    """Plans all pending files, batch by batch, each read as far as its budgets go."""

    def drain(self, limits: BatchLimits) -> int:
        checkpoint = files = 0
        while len(self.enumerator.ledger.pending):
            checkpoint += 1
            assigned = len(self.context.assigned)
            files += len(self.plan(limits))
            readers = sorted({reader for reader, _ in self.context.assigned[assigned:]})
            self.enumerator.part_budgets(checkpoint, readers)
            self.enumerator.snapshot_state(checkpoint)
            count = len(self.context.assigned) - assigned
            figures = {"bytes": 10 * count, "rows": count, "files": count, "microseconds": 1_000}
            self.enumerator.handle_reader_event(0, "figures", figures)
            self.context.continuing_readers = readers if limits.rows or limits.seconds else ()
            self.enumerator.notify_checkpoint_complete(checkpoint - 1)
        return files


def touched(files: int, limits: BatchLimits, monkeypatch, **policy) -> int:
    """Return what planning all files touches: calls, and members of sets."""
    names = [f"date=2026-01-{1 + at * 28 // files:02}/{at:06}" for at in range(files)]
    bench = Planned(
        *(file(name, 10, at) for at, name in enumerate(names)),
        parallelism=READERS,
        chunk=1_000,
        **policy,
    )
    while not bench.enumerator.has_discovered:
        bench.discover()
    count = Count()
    with monkeypatch.context() as patch:
        for kind in (set, frozenset):
            patch.setattr(batch_budget, kind.__name__, count.counting(kind), raising=False)
        sys.setprofile(count.call)
        try:
            assert bench.drain(limits) == files
        finally:
            sys.setprofile(None)
    return count.total


@pytest.mark.parametrize(
    "limits",
    [
        UNLIMITED,
        BatchLimits(files=MANY),
        BatchLimits(bytes=10 * MANY),
        BatchLimits(rows=MANY),
        BatchLimits(seconds=60.0),
    ],
    ids=["none", "files", "bytes", "rows", "seconds"],
)
def test_a_batch_of_ten_times_the_files_touches_ten_times_as_much(limits, monkeypatch):
    few, many = (touched(files, limits, monkeypatch) for files in (FEW, MANY))
    assert many <= 11 * few, (few, many)


@pytest.mark.parametrize(
    "policy",
    [
        {"ledger": LedgerPolicy(FileOrder.NEWEST_FIRST)},
        in_event_time(1_000 * HOUR),
        {"fresh_share": 0.3},
    ],
    ids=["newestFirst", "eventTime", "freshShare"],
)
def test_any_order_touches_ten_times_as_much_for_ten_times_the_files(policy, monkeypatch):
    few, many = (touched(files, UNLIMITED, monkeypatch, **policy) for files in (FEW, MANY))
    assert many <= 11 * few, (few, many)

"""Reads splits in parts that end at budgets, and each part again as a later attempt would."""

from __future__ import annotations

from pyspark_sluice.reader.api import PartEnded, ReaderContext, SplitUnfinished
from pyspark_sluice.reader.budget import RemainingBudget
from pyspark_sluice.reader.files.testing import read


def read_parts(splits, schema, budgets, **options):
    """(rows, reports) of each part, as long as anything is left."""
    left = list(splits)
    for budget in budgets:
        context = ReaderContext(1, 0, 0, budget=RemainingBudget(budget))
        table, reports = read(left, schema, context, **options)
        until = {r.split_id: r.remainder for r in reports if isinstance(r, SplitUnfinished)}
        ends = [r.split_id for r in reports if isinstance(r, PartEnded)]
        at = [split.split_id for split in left].index(ends[0]) if ends else len(left)
        replay = ReaderContext(1, 0, 1, must_finish=True, until=until)
        again, _ = read(left[:at], schema, replay, **options)
        assert again.to_pylist() == table.to_pylist(), "a later attempt gives other rows"
        yield table, reports
        left = [*until.values(), *left[at:]]
        if not left:
            return
    raise AssertionError(f"not read after all budgets: {left}")

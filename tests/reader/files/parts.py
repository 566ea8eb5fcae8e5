"""Reads splits in parts that end at budgets, and each part again as a later attempt would."""

import random

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.reader.api import PartEnded, ReaderContext, RemainingBudget, SplitUnfinished
from pyspark_sluice.reader.files.testing import FileFormatSuite, read


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


class PartsSuite(FileFormatSuite):
    """A format that is read in parts."""

    @pytest.mark.parametrize("most", [7, 1000])
    def test_each_part_begins_with_the_next_row(self, tmp_path, most):
        rows = self.rows(40)
        path = self._file(tmp_path, rows)
        chance = random.Random(most)
        budgets = [PartBudget(rows=chance.randint(1, most)) for _ in range(99)]
        splits = self._cut(path, chance.sample(range(1, path.stat().st_size), 3))
        found = []
        parts = read_parts(splits, self.schema, budgets, **self.options)
        for (table, _), budget in zip(parts, budgets, strict=False):
            assert table.num_rows <= budget.rows
            found += table.to_pylist()
        assert found == rows

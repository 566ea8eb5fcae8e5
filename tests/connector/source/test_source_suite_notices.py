"""The suite for sources has teeth: each of these sources is broken, and one of its tests fails."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer
from pyspark_sluice.connector.testing.planted_bugs import PlantedBug
from pyspark_sluice.examples.table_source import table_source, table_source_test
from pyspark_sluice.examples.table_source.table_source import Ids, TableEnumerator, TableReader
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.tests.connector.source.noticing import notice_of

pytestmark = pytest.mark.slow


class NoEndOfDiscovery(TableEnumerator):
    has_discovered = False


class AssignsToReadersOfBefore(TableEnumerator):
    def plan_batch(self, budget):
        while self.pending and not budget.is_full:
            ids = self.pending.pop(0)
            self.context.assign_splits({ids.start // self.size % 3: [ids]})
            budget.take(ids.split_id, 0, ids.end - ids.start)


class ReadsNewer(TableEnumerator):
    """A run that ends goes on as long as something comes."""

    def plan_batch(self, budget):
        if not self.pending:
            self.size += 1
            self.pending = [Ids(-self.size, -self.size)]
        super().plan_batch(budget)


class CountsNothing(TableReader):
    def read(self, splits):
        for item in super().read(splits):
            counted = not isinstance(item, SplitFinished)
            yield item if counted else SplitFinished(item.split_id, 0)


class OfAnotherType(TableReader):
    def read(self, splits):
        other = pa.schema([("id", pa.int32()), ("text", pa.string())])
        for item in super().read(splits):
            yield item.cast(other) if isinstance(item, pa.RecordBatch) else item


SAME_ID = type("SameId", (Ids,), {"split_id": "ids"})

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a discovery without end": (
        {"enumerator": NoEndOfDiscovery},
        "has not discovered all existing data",
    ),
    "readers that are not there": ({"enumerator": AssignsToReadersOfBefore}, "not registered"),
    "a run without end": ({"enumerator": ReadsNewer}, "does not end"),
    "rows that are not counted": ({"reader": CountsNothing}, "commits count 0 rows of 12"),
    "another type": ({"reader": OfAnotherType}, "has the schema"),
    "one id for all": (
        {"split": SAME_ID},
        "reported a split twice, or a split that it was not assigned",
    ),
}


@pytest.mark.sample(
    "a discovery without end",
    "another type",
    "one id for all",
    "readers that are not there",
    why="some seconds each",
)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_source_fails(name, tmp_path, monkeypatch):
    parts, expected = BROKEN[name]
    for part, broken in parts.items():
        attribute = {"enumerator": "TableEnumerator", "reader": "TableReader", "split": "Ids"}[part]
        monkeypatch.setattr(table_source, attribute, broken)
    notice_of(table_source_test.TestTableSource(), tmp_path, expected)


class Harmless(PlantedBug):
    """Reached, and without effect."""

    def reader(self, make, context):
        self.was_reached = True
        return make(context)


def test_a_planted_bug_that_goes_unnoticed_fails_the_suite(tmp_path):
    class Suite(table_source_test.TestTableSource):
        planted_bugs = (Harmless,)

    notice_of(Suite(), tmp_path, "Harmless is not detected")


def test_a_schema_that_depends_on_the_value_is_noticed(tmp_path):
    class ByValue(JsonSerializer[Ids]):
        def serialize(self, value):
            batch = super().serialize(value)
            return batch.append_column("n", pa.array([0] * len(value))) if value else batch

    class Source(table_source.TableSource):
        split_serializer = ByValue(1, lambda ids: [ids.start, ids.end], lambda _, v: Ids(*v))

    class Suite(table_source_test.TestTableSource):
        def make_source(self, place):
            made = super().make_source(place)
            return Source(made.options, made.schema)

    notice_of(Suite(), tmp_path, "Schema at index 0 was different")

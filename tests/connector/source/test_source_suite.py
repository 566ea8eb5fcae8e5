"""The suite for sources: three sources pass it, and it notices each source that is broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.hybrid_split import FIRST
from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import SourceSuite
from pyspark_sluice.connector.testing.suite import PlantedBug
from pyspark_sluice.enumerator.hybrid.hybrid_enumerator import HybridEnumerator
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.examples.table_source import table_source, table_source_test
from pyspark_sluice.examples.table_source.table_source import Ids, TableEnumerator, TableReader
from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

pytestmark = pytest.mark.slow


class TestLogSource(SourceSuite):
    def make_source(self, place):
        return LogSource(Logs(place).options(), LINES)

    def land(self, place, part, rows):
        return Logs(place).land(part, rows, archived=0)


class TestFileSource(SourceSuite):
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])

    def make_source(self, place):
        options = parse_options({"path": str(place), "stateLocation": "unused"}, streaming=True)
        return FileSource(options, self.schema)

    def land(self, place, part, rows):
        number = len(list(place.glob("*.json")))
        landed = [{"id": number * 100 + i, "part": part} for i in range(rows)]
        hidden = place / f".{number}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in landed))
        hidden.rename(place / f"{number}.json")
        return landed

    # Each kill meets the log above; the ledger has its own, in test_upkeep.py.
    test_a_kill_at_any_operation_on_the_state = None  # type: ignore[assignment]


class TestTableSource(table_source_test.TestTableSource):
    # Each kill meets the log above, whose state is of the same kind.
    test_a_kill_at_any_operation_on_the_state = None  # type: ignore[assignment]


# Sources that are broken -------------------------------------------------------------------------


def notice_of(suite: SourceSuite, place: Path, expected: str) -> Exception:
    """The first failure of a test of the suite that says what is expected.

    Raises:
        AssertionError: every test passes or says something else.
    """
    said = []
    for number, test in enumerate(_kills_last(suite)):
        own = place / str(number)
        own.mkdir()
        try:
            test(own)
        except Exception as error:  # noqa: BLE001 - a broken source may raise anything
            if re.search(expected, str(error)):
                return error
            said.append(str(error))
    message = f"no test says {expected!r}: {said}"
    raise AssertionError(message)


def _kills_last(suite: SourceSuite) -> list[Callable[[Path], Any]]:
    """In the order of the suite, but what dies at each operation in turn takes longest by far."""
    of_suite = [(name, test) for name, test in vars(SourceSuite).items() if name[:5] == "test_"]
    of_suite.sort(key=lambda named: "_KILLS" in named[1].__code__.co_names)
    return [getattr(suite, name) for name, _ in of_suite]


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


# Seams of a hybrid source that are broken --------------------------------------------------------


class SwitchesTooEarly(HybridEnumerator):
    """Does not wait for what is with readers."""

    @property
    def _is_over(self):
        return self._part == FIRST and self._inner.has_discovered


class ForgetsThePosition(HybridEnumerator):
    """Begins each incarnation of the first part without what came before."""

    def __init__(self, context, source, state):
        super().__init__(context, source, state and replace(state, position=None))


class WritesTheFirstPartOnly(HybridEnumerator):
    """The switch is in no checkpoint."""

    def snapshot_state(self, checkpoint_id):
        return replace(super().snapshot_state(checkpoint_id), part=FIRST, snapshots=[])


class BeginsTheLogAgain(HybridEnumerator):
    """Begins the second part where its log begins, not where the files end."""

    def _enter_next(self, token, state, error):
        super()._enter_next(token, None, error)


@pytest.mark.sample("SwitchesTooEarly", "ForgetsThePosition", why="more faults of one seam")
@pytest.mark.parametrize(
    "broken",
    [SwitchesTooEarly, ForgetsThePosition, WritesTheFirstPartOnly, BeginsTheLogAgain],
    ids=lambda broken: broken.__name__,
)
def test_the_suite_notices_a_broken_seam(tmp_path, broken):
    class Suite(SourceSuite):
        def make_source(self, place):
            made = ArchivedLog(Logs(place).options(), LINES)
            vars(made)["create_enumerator"] = lambda *given: broken(given[0], made, given[1])
            return made

        def land(self, place, part, rows):
            return Logs(place).land(part, rows)

    notice_of(Suite(), tmp_path, "")

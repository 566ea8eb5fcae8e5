"""Events in any order: land, batches, restarts, kills, attempts that fail."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.source.testing import Trial
from pyspark_sluice.connector.source.testing.trial import KILLED, LOST, RETURNED, check_rows
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

pytestmark = pytest.mark.slow

WORDS = st.lists(st.sampled_from(["", "", KILLED, LOST, RETURNED]), max_size=4)
KILLS = st.sampled_from(["crash before", "crash half-way", "crash after"])
MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("archive"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("step"), st.integers(1, 3), WORDS),
    st.tuples(st.just("restart"), st.sampled_from([1, 2, 3]), st.none()),
    st.tuples(st.just("kill"), KILLS, st.integers(0, 25)),
)


class Course:
    """One query, and what happens to it."""

    def __init__(self, source: type[Any], place: Path, limits: BatchLimits) -> None:
        self.logs = Logs(place)
        self.trial = Trial(lambda: source(self.logs.options(), LINES), limits=limits)
        self.trial.meanwhile = lambda: self.land(0, 1)
        self.landed: list[Any] = []

    def land(self, part: int, rows: int) -> None:
        self.landed += self.logs.land(part, rows, archived=0)

    def archive(self, part: int, rows: int) -> None:
        # Of a partition that is there already nothing is archived: what is must be its beginning.
        self.landed += self.logs.land(part, rows)

    def step(self, times: int, script: list[str]) -> None:
        self.trial.script = list(script)
        for _ in range(times):
            self.trial.step()

    def restart(self, parallelism: int, _: None) -> None:
        self.trial.restart(parallelism)

    def kill(self, kind: Any, after: int) -> None:
        self.trial.kill_at(Fault(kind, after))

    def end(self, pick: int) -> None:
        self.trial.kill_at(None)
        self.trial.run_to_end()
        self.trial.check(self.landed)
        if not self.trial.offsets:
            return
        number = pick % len(self.trial.offsets)
        savepoint = StartingState(self.trial.objects, self.trial.offsets[number])
        fork = Trial(self.trial._make_source, limits=BatchLimits(), starting_state=savepoint)
        fork.run_to_end()
        before = [row for batch in self.trial.sink[: number + 1] for row in batch]
        check_rows([*before, *fork.rows], self.landed, "from a savepoint")


@pytest.mark.parametrize("source", [LogSource, ArchivedLog], ids=lambda source: source.__name__)
@given(
    moves=st.lists(MOVES, min_size=1, max_size=10),
    files=st.sampled_from([1, 2, None]),
    pick=st.integers(0, 20),
)
def test_every_row_is_read_exactly_once(source, moves, files, pick):
    with tempfile.TemporaryDirectory() as place:
        course = Course(source, Path(place), BatchLimits(files=files))
        for name, *arguments in moves:
            getattr(course, name)(*arguments)
        course.end(pick)

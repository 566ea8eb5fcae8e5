"""Logs, with and without an archive, under events in any order."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.tests.connector.source import courses
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

pytestmark = pytest.mark.slow

MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("archive"), st.integers(0, 3), st.integers(1, 4)),
    *courses.MOVES,
)


class Course(courses.Course):
    """A query of a log."""

    def __init__(self, source: type[Any], place: Path, limits: BatchLimits) -> None:
        super().__init__()
        self.logs = Logs(place)
        self.begin = partial(Trial, lambda: source(self.logs.options(), LINES))
        self.trial = self.begin(limits=limits)
        self.trial.meanwhile = lambda: self.land(0, 1)

    def land(self, part: int, rows: int) -> None:
        self.landed += self.logs.land(part, rows, archived=0)

    def archive(self, part: int, rows: int) -> None:
        # Of a partition that is there already nothing is archived: what is must be its beginning.
        self.landed += self.logs.land(part, rows)

    def fork(self, savepoint: StartingState) -> Trial:
        return self.begin(limits=BatchLimits(), starting_state=savepoint)


@pytest.mark.sample("LogSource", why="the same over an archive")
@pytest.mark.parametrize("source", [LogSource, ArchivedLog], ids=lambda source: source.__name__)
@given(
    moves=st.lists(MOVES, min_size=1, max_size=10),
    files=st.sampled_from([1, 2, None]),
    pick=st.integers(0, 20),
)
def test_every_row_is_read_exactly_once(source, moves, files, pick):
    with tempfile.TemporaryDirectory() as place:
        course = Course(source, Path(place), BatchLimits(files=files))
        course.run(moves, pick, course.fork)

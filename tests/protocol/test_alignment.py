"""Several sources of one query in step, through failures, and a proof that the test sees them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.testing.trial import KILLED, LOST, RETURNED
from pyspark_sluice.enumerator.files.aligned_batches import AlignedBatches
from pyspark_sluice.tests.protocol.aligned_query import IDLE, AlignedQuery

pytestmark = pytest.mark.slow

HOURS = st.lists(st.integers(0, 30), max_size=6)
WORDS = st.lists(st.sampled_from(["", "", KILLED, LOST, RETURNED]), max_size=4)
KILLS = st.sampled_from(["crash before", "crash half-way", "crash after"])
WHICH = st.integers(0, 2)
MOVES = st.one_of(
    st.tuples(st.just("land"), WHICH, st.integers(0, 40)),
    st.tuples(st.just("step"), st.integers(1, 4), WORDS),
    st.tuples(st.just("turn"), WHICH, st.integers(1, 4)),
    st.tuples(st.just("restart"), st.none(), st.none()),
    st.tuples(st.just("kill"), KILLS, st.integers(0, 40)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, IDLE / 2, 2 * IDLE]), st.none()),
)
RUNS = {
    "hours": st.lists(HOURS, min_size=2, max_size=3),
    "moves": st.lists(MOVES, max_size=8),
    "skew": st.integers(0, 5),
    "files": st.sampled_from([1, 2, None]),
    "bounded": st.booleans(),
    "slow": st.booleans(),
}


def run(hours, moves=(), skew=0, files=None, bounded=False, slow=False, pace=AlignedBatches):
    query = AlignedQuery(hours, skew=skew, files=files, bounded=bounded, pace=pace)
    query.is_slow = slow
    names = list(query.sources)
    for move, what, value in moves:
        if move == "land":
            query.land(names[what % len(names)], value)
        elif move == "step":
            for source in query.sources.values():
                source.script = list(value)
            for _ in range(what):
                query.step()
        elif move == "turn":
            query.turn(names[what % len(names)], value)
        elif move == "restart":
            query.restart()
        elif move == "kill":
            query.kill_at(Fault(what, value))
        else:
            query.clock += what
    query.run_to_end()


def test_no_row_is_lost_or_doubled_and_no_source_runs_ahead():
    profile = settings()
    # A course takes seconds: a regression test has a few, a search by night all of them.
    is_search = profile.max_examples > 100
    examples = profile.max_examples if is_search else profile.max_examples // 3

    @settings(profile, max_examples=examples)
    @given(**RUNS)
    def search(**course):
        run(**course)

    search()


def test_a_process_that_was_paused_does_not_find_the_others_idle():
    """Found by the search: s0 has a backlog, and s2 wakes up before s0 has said so again."""
    hours = [[0, 0, 0, 0], [], [1]]
    moves = [("step", 2, []), ("wait", 2 * IDLE, None)]
    run(hours, moves, skew=0, files=1, bounded=False, slow=False)


# Planted bugs ---------------------------------------------------------------------------------


class BelievesWhatAnEarlierRunHasSaid(AlignedBatches):
    """Plans before all others have published in this run."""

    def _who_holds(self, time):
        self._known_after = self._answered
        return super()._who_holds(time)


class AnswersBeforeItHasPublished(AlignedBatches):
    is_ready = True


class NeverGivesAnEmptyCheckpoint(AlignedBatches):
    wants_checkpoint = False


class GivesOneEmptyCheckpointOnly(AlignedBatches):
    @property
    def wants_checkpoint(self):
        return super().wants_checkpoint and self._first_cut is None


class SaysWhatItHasReached(AlignedBatches):
    """Two sources with a gap between their files wait for each other."""

    @property
    def _position(self):
        has_published = self._published_at is not None
        return self._reached if has_published and self._reached else super()._position


class WaitsForIdleSources(AlignedBatches):
    def _counted(self, peer):
        return peer.position


class LooksOnce(AlignedBatches):
    """Never reads a position again."""

    def _want(self):
        if self._questions < 2:
            super()._want()


SHOWN: dict[type, tuple[dict[str, Any], str]] = {
    BelievesWhatAnEarlierRunHasSaid: ({"hours": [[0, 0], [1]], "files": 1}, "h ahead of"),
    AnswersBeforeItHasPublished: (
        {"hours": [[], [0]], "bounded": True, "slow": True},
        "does not end",
    ),
    NeverGivesAnEmptyCheckpoint: ({"hours": [[0], []]}, "rows lost"),
    GivesOneEmptyCheckpointOnly: (
        {"hours": [[1], [0]], "bounded": True, "slow": True},
        "rows lost",
    ),
    SaysWhatItHasReached: ({"hours": [[1], [0]], "bounded": True}, "does not end"),
    WaitsForIdleSources: ({"hours": [[0], []]}, "rows lost"),
    LooksOnce: ({"hours": [[0], [0]]}, "has not discovered"),
}
"""The shortest run that shows each bug, and what it ends with."""


@pytest.mark.parametrize("broken", SHOWN, ids=lambda broken: broken.__name__)
def test_a_planted_bug_is_caught(broken):
    shortest, error = SHOWN[broken]
    run(**shortest)
    with pytest.raises(AssertionError, match=error):
        run(**shortest, pace=broken)

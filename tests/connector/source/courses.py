"""Events in any order: land, batches, restarts, kills, attempts that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.testing.trial import KILLED, LOST, RETURNED, Row, check_rows
from pyspark_sluice.enumerator import StartingState

WORDS = st.lists(st.sampled_from(["", "", KILLED, LOST, RETURNED]), max_size=4)
KILLS = st.sampled_from(["crash before", "crash half-way", "crash after"])
MOVES = (
    st.tuples(st.just("step"), st.integers(1, 3), WORDS),
    st.tuples(st.just("restart"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("kill"), KILLS, st.integers(0, 25)),
)


class Course:
    """One query, and what happens to it."""

    trial: Trial

    def __init__(self) -> None:
        self.landed: list[Row] = []

    def step(self, times: int, script: list[str]) -> None:
        self.trial.script = list(script)
        for _ in range(times):
            self.trial.step()

    def restart(self, parallelism: int) -> None:
        self.trial.restart(parallelism)

    def kill(self, kind: Any, after: int) -> None:
        self.trial.kill_at(Fault(kind, after))

    def run(self, moves: list[Any], pick: int, fork_from: Callable[[StartingState], Trial]) -> None:
        """Each row is in the sink once, and so it is in a query begun from any checkpoint."""
        for name, *arguments in moves:
            getattr(self, name)(*arguments)
        self.trial.kill_at(None)
        self.trial.run_to_end()
        self.trial.check(self.landed)
        if not self.trial.offsets:
            return
        number = pick % len(self.trial.offsets)
        fork = fork_from(StartingState(self.trial.objects, self.trial.offsets[number]))
        fork.run_to_end()
        before = [row for batch in self.trial.sink[: number + 1] for row in batch]
        check_rows([*before, *fork.rows], self.landed, "from a savepoint")

"""Searches for a run of the simulator that must not be, shrinks it, and says what was covered.

python -m pyspark_sluice.tests.protocol.simulate --seconds 600 --first 0
python -m pyspark_sluice.tests.protocol.simulate --planted --runs 300
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark_sluice.enumerator import Coordinator

from . import broken
from .simulated_time import in_simulated_time
from .simulator import ACTIONS, Find, Plan, Simulator, plan_of

Make = Callable[..., Any]


@dataclass
class Search:
    """Runs one after the other, and the outcome of them all."""

    make: Make = Coordinator
    only: Sequence[str] = ()
    """The actions of each plan; all where empty."""
    calm: bool = False
    """See `plan_of`."""
    simulator: type[Simulator] = Simulator
    runs: int = 0
    steps: int = 0
    switches: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    weather: Counter[str] = field(default_factory=Counter)
    hosted: int = 0
    """Runs with a table."""
    fired: Counter[str] = field(default_factory=Counter)
    """By fault: the runs in which it was injected."""

    def run(self, plan: Plan) -> Find | None:
        """One run; the find that it ends with, if any."""
        run = self.simulator(plan, self.make)
        began = time.perf_counter()
        try:
            run.run()
        except Find as found:
            found.__notes__ = run.trace[-60:]
            return found
        finally:
            self.seconds += time.perf_counter() - began
            self.runs += 1
            self.steps += run.scheduler.steps
            self.switches += run.scheduler.switches
            self.counts += run.counts
            self.weather += run.weather.counts
            self.hosted += run.is_hosted
            self.fired.update(run.weather.counts.keys())
        return None

    def first(self, seeds: Sequence[int]) -> tuple[Plan, Find] | None:
        """The first find among these seeds."""
        for seed in seeds:
            plan = plan_of(seed, self.only, calm=self.calm)
            find = self.run(plan)
            if find is not None:
                return plan, find
        return None

    def shrunk(self, plan: Plan, kind: str, attempts: int = 300) -> Plan:
        """A plan without what the find does not need."""
        size = len(plan.actions) // 2
        while size and attempts > 0:
            for at in range(0, len(plan.actions), size):
                fewer = plan.actions[:at] + plan.actions[at + size :]
                smaller = replace(plan, actions=fewer)
                attempts -= 1
                find = self.run(smaller) if fewer != plan.actions else None
                if find is not None and find.kind == kind:
                    plan = smaller
                    break
            else:
                size //= 2
        return plan

    def _runs_with(self, fault: str) -> int:
        return max(1, self.hosted) if "table" in fault else self.runs

    def report(self) -> str:
        """Runs per minute, and a table of what was covered."""
        rate = 60 * self.runs / max(self.seconds, 0.001)
        lines = [
            f"{self.runs} runs, {self.steps} steps, {self.switches} switches of thread",
            f"{self.seconds:.0f} s: {rate:.0f} runs a minute",
            "",
            "faults injected: times, share of runs (of those with a table, where it is about one)",
            *(
                f"{self.weather[name]:12}  {runs / self._runs_with(name):4.0%}  {name}"
                for name, runs in self.fired.most_common()
            ),
            "",
            "transitions",
            *(f"{count:12}  {name}" for name, count in sorted(self.counts.items())),
        ]
        return "\n".join(lines)


def search_product(search: Search, seeds: range, seconds: float) -> int:
    """Search until the time is over or something is found; print what was covered."""
    print(f"seeds from {seeds.start} on; one of them again: --first SEED --runs 1", flush=True)
    for seed in seeds:
        if search.seconds > seconds:
            break
        failure = search.first([seed])
        if failure is not None:
            plan, find = failure
            print(f"seed {seed}, run {search.runs}: {find}", *find.__notes__, sep="\n")
            print(search.report(), "\nshrinking", flush=True)
            print(f"{find.kind}:\n{Search().shrunk(plan, find.kind)}")
            return 1
    print(search.report())
    return 0


def search_planted(bugs: Sequence[str], like: Search, seeds: range) -> int:
    """Search for each planted bug among the same seeds; print the plan of a single one."""
    print("| planted bug | seed | runs | what the run ends with |\n|---|---|---|---|", flush=True)
    missed = 0
    for bug in bugs or broken.ALL:
        search, row = Search(broken.ALL[bug], like.only, calm=like.calm), f"| {bug} |"
        failure = search.first(seeds)
        if failure is None:
            missed += 1
            print(f"{row} - | {search.runs} | nothing |", flush=True)
            continue
        plan, find = failure
        print(f"{row} {plan.seed} | {search.runs} | {find.kind} |", flush=True)
        if sound := Search().run(plan):
            print(f"the product itself: {sound}")
            return 1
        if len(bugs) == 1:
            print(search.shrunk(plan, find.kind))
    return missed


def main() -> int:
    """Search until the time is over or something is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", nargs="*", choices=sorted(ACTIONS), default=())
    parser.add_argument(
        "--planted", nargs="*", choices=broken.ALL,
        help="search for these bugs, or all, from seed 0 on: 300 runs each, or --runs",
    )  # fmt: skip
    parser.add_argument("--calm", action="store_true", help="see plan_of in plans.py")
    given = parser.parse_args()
    # What the product says is in the trace of a find.
    logging.disable()
    like = Search(only=given.only, calm=given.calm)
    with in_simulated_time():
        if given.planted is not None:
            first = given.first or 0
            seeds = range(first, first + (given.runs or 300))
            return search_planted(given.planted, like, seeds)
        first = int(time.time()) * 1000 if given.first is None else given.first
        seeds = range(first, first + (given.runs or 10**9))
        return search_product(like, seeds, given.seconds)


if __name__ == "__main__":
    sys.exit(main())

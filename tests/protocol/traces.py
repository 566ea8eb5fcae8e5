"""Runs of the simulation that are written down, and replayed instead of searched for."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.tests.protocol import broken, rows_only
from pyspark_sluice.tests.protocol.query import LIMITS
from pyspark_sluice.tests.protocol.simulation import Simulation

FILE = Path(__file__).with_name("planted_traces.txt")
SIMULATIONS = {
    "Simulation": Simulation,
    "RowsOnly": rows_only.RowsOnly,
    "FilesOnly": rows_only.FilesOnly,
}
ERRORS = {"rows lost": r"lost Counter\(\{", "rows doubled": r"doubled or invented Counter\(\{"}
DEFAULTS: Mapping[str, Any] = {
    "files": [],
    "batches": 0,
    "scripts": [],
    "moves": [],
    "lane": (0, 1),
    "limits": LIMITS,
    "parallelism": None,
    "fault": None,
}
"""Arguments that a step may leave out; all others are false, or what their rule says."""


@dataclass(frozen=True)
class Trace:
    """The shortest run that shows a planted bug."""

    bug: str
    simulation: type[Simulation]
    error: str
    """A regular expression for what the run ends with."""
    steps: list[tuple[str, dict[str, Any]]]
    """Rules of the simulation with their arguments."""

    @property
    def broken(self) -> Callable[..., Coordinator[Any, Any]]:
        found: Callable[..., Coordinator[Any, Any]] = getattr(broken, self.bug)
        return found

    def replay(self, make_coordinator: Callable[..., Coordinator[Any, Any]] = Coordinator) -> None:
        """Take the steps, and check every invariant after each.

        Raises:
            ValueError: a step cannot be taken where it is in the run.
            AssertionError: an invariant does not hold.
        """
        run = type("Replayed", (self.simulation,), {"make_coordinator": make_coordinator})()
        rules = {rule.function.__name__: rule for rule in run.rules}
        for number, (name, arguments) in enumerate(self.steps):
            if number and not all(check(run) for check in rules[name].preconditions):
                raise ValueError(f"step {number}, {name}, cannot be taken")
            rule = getattr(run, name)
            rule(**_complete(rule, copy.deepcopy(arguments)))
            for invariant in run.invariants:
                invariant.function(run)
        run.teardown()


def _complete(rule: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    for name, parameter in inspect.signature(rule).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            arguments.setdefault(name, copy.deepcopy(DEFAULTS.get(name, False)))
    if isinstance(arguments.get("limits"), dict):
        arguments["limits"] = BatchLimits(**arguments["limits"])
    return arguments


def traces() -> Iterator[Trace]:
    """The runs of `planted_traces.txt`."""
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    for block in "\n".join(lines).strip().split("\n\n"):
        head, *steps = block.splitlines()
        whose, _, error = head.partition(": ")
        bug, simulation = whose.split(", ")
        calls = [ast.parse(step.strip(), mode="eval").body for step in steps]
        yield Trace(bug, SIMULATIONS[simulation], ERRORS.get(error, error), [*map(_step, calls)])


def _step(call: ast.expr) -> tuple[str, dict[str, Any]]:
    assert isinstance(call, ast.Call)
    return ast.unparse(call.func), {
        str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords
    }

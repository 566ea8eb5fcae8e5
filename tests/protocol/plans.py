"""Draws the plan of a run from its seed: a swarm, of few kinds of actions and of faults each."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .shared_directory import FAULTS, KINDS

USUAL = ("grow", "tasks", "restart", "weather")
"""Actions of every second run."""

OTHERS = (
    "backup", "crash", "event", "fail_to_count", "fail_to_list", "flip_a_bit", "fork", "keep_state",
    "lose_orders", "once", "order", "pause", "poison", "remove_all", "rescale", "restore",
    "set_clock",
)  # fmt: skip

HOSTED = ("land", "wait", "event", "crash", "pause", "rescale", *USUAL)
"""Actions that a run of the embedded host keeps; in the place of others are backups and forks."""

ARMED = 0.65
"""Share of runs in which a class of faults is armed."""


@dataclass(frozen=True)
class Plan:
    """All that a run is made of."""

    seed: int
    setting: dict[str, Any]
    actions: tuple[tuple[int, str, float], ...]
    """(steps after the one before, what, how)."""

    def __str__(self) -> str:
        lines = [f"    {self.seed} {self.setting}"]
        return "\n".join(lines + [f"    {s:5} {name} {how}" for s, name, how in self.actions])

    @classmethod
    def parse(cls, text: str) -> Plan:
        """The plan that looks like this."""
        head, *actions = text.strip().splitlines()
        seed, setting = head.split(maxsplit=1)
        parts = (action.split() for action in actions)
        made = tuple((int(steps), name, float(how)) for steps, name, how in parts)
        return cls(int(seed), ast.literal_eval(setting), made)


def plan_of(seed: int, only: Sequence[str] = (), *, calm: bool = False) -> Plan:
    """The plan that follows from a seed, perhaps with some actions `only` and the usual ones.

    In a `calm` one the host is Spark, no class of faults is armed, and files alone have a limit.
    """
    plan = _calm(seed, only)
    return plan if calm else _with_more(plan, random.Random(f"more of {seed}"))


def _with_more(plan: Plan, draw: random.Random) -> Plan:
    pick = draw.choice
    more: dict[str, Any] = {
        "host": pick([False, False, True]),
        "rows": pick([None, None, None, 2, 5]),
        "bytes": pick([None, None, None, 3, 6]),
    }
    if more["host"]:
        more |= {"sources": 1, "cleans": -1.0, "is_async": False}
    if any(more.values()):
        # What a limit downstream leaves is known of whole splits only.
        more["unread"] = False
    actions = list(plan.actions)
    if more["host"]:
        actions = [
            (steps, name if name in HOSTED else pick(["backup", "restore", "fork"]), how)
            for steps, name, how in actions
        ]
    for number in range(len(FAULTS)):
        for _ in range(pick([1, 2]) if draw.random() < ARMED else 0):
            fault = pick([3, 30, 100]), "fault", (number + 0.5) / len(FAULTS)
            actions.insert(draw.randrange(1, 2 + 3 * len(actions) // 4), fault)
    for _ in range(pick([0, 1, 2]) if more["host"] else 0):
        at = draw.randrange(1, len(actions) + 1)
        actions.insert(at, (pick([100, 300]), "backup", draw.random()))
        at = draw.randrange(at + 1, len(actions) + 1)
        actions.insert(at, (pick([100, 300]), "restore", draw.random()))
    return replace(plan, setting=plan.setting | more, actions=tuple(actions))


def _calm(seed: int, only: Sequence[str] = ()) -> Plan:
    draw = random.Random(seed)
    pick = draw.choice
    setting = {
        "switching": pick([0.02, 0.2, 0.5, 1.0]),
        "sources": pick([1, 1, 1, 2]),
        "cleans": pick([-1.0, 0.0, 30.0, 600.0]),
        "ahead": pick([0, 1, 1, 2, 3]),
        "parallelism": pick([None, 1, 2, 3]),
        "files": pick([1, 2, 3, None]),
        "retained": pick([1, 2, 4]),
        "deltas": pick([1, 2, 3, 5]),
        "unread": pick([False, False, True]),
        "is_async": pick([False, False, False, True]),
        "is_bounded": pick([False, False, False, True]),
        "patience": pick([0.0, 3.0, 3.0]),
        "attempts": pick([2, 1_000_000, 1_000_000]),
    }
    # A swarm: a run has few kinds of action, and often, so that they meet; other runs have others.
    usual = [name for name in USUAL if draw.random() < 0.5]
    others = draw.sample(OTHERS, k=pick([1, 1, 2, 3]))
    kinds = [*only, "restart"] if only else (usual + others) * pick([1, 2, 3])
    kinds += ["land", "land", "wait"]
    if "restore" in kinds:
        kinds += ["backup", "restore", "land"]
    if "lose_orders" in kinds:
        kinds += ["order", "order"]
    weather = draw.sample(sorted(KINDS), k=pick([1, 1, 2, 3]))
    habits = draw.sample(habits_of(setting), k=pick([1, 2, 3, 5]))

    def pick_how(name: str) -> float:
        how = draw.random()
        while (name == "weather" and weather_of(how) not in weather) or (
            name == "tasks" and habit_of(setting, how) not in habits
        ):
            how = draw.random()
        return how

    length = pick([8, 16, 32])
    names = [pick(kinds) for _ in range(length)]
    actions = [(pick([3, 30, 100, 300, 900]), name, pick_how(name)) for name in names]
    return Plan(seed, setting, ((1, "land", 0.9), *actions))


def weather_of(how: float) -> str:
    """The kind of weather that a value of `how` means."""
    return list(KINDS)[int(how * 997) % len(KINDS)]


def habits_of(setting: Mapping[str, Any]) -> list[str]:
    """The habits of Spark's tasks in a run with that setting."""
    names = ["fails", "dies", "speculates", "straggles", "returns", "parts", "twice"]
    return names + (["limits", "empty"] if setting["unread"] else [])


def habit_of(setting: Mapping[str, Any], how: float) -> str:
    """The habit that a value of `how` means."""
    names = habits_of(setting)
    return names[int(how * 991) % len(names)]

"""Evaluates alert rules over scraped text, as Prometheus does it.

What Prometheus' own parser accepts and this module does not know is an error, never a guess.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pyspark_sluice.tests.repository import ROOT

RULES = ROOT / "examples" / "monitoring" / "alerts.yml"

Labels = frozenset[tuple[str, str]]
"""With the metric's name as `__name__`, as in Prometheus."""

Vector = dict[Labels, float]


class Scrapes:
    """What a Prometheus server has of one target: a value of each series for each scrape."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, Vector]] = []

    def scrape(self, now: float, text: str) -> None:
        """Store an answer of the target; an empty one is a target that does not answer."""
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        vector = {
            frozenset({**sample.labels, "__name__": sample.name}.items()): sample.value
            for sample in samples
            if not sample.name.endswith("_created")
        }
        self.taken.append((now, vector))

    def ranges(self, now: float, seconds: float) -> dict[Labels, list[float]]:
        """The values of each series in a window that ends now."""
        in_window = itertools.takewhile(lambda each: each[0] >= now - seconds, self.taken[::-1])
        values: dict[Labels, list[float]] = {}
        for _, vector in in_window:
            for labels, value in vector.items():
                values.setdefault(labels, []).insert(0, value)
        return values


def evaluated(expression: Any, scrapes: Scrapes, now: float) -> Any:
    """The value of a parsed expression at the time of the newest scrape: a number or a Vector."""
    match expression:
        case promql.NumberLiteral():
            return float(expression.val)
        case promql.ParenExpr():
            return evaluated(expression.expr, scrapes, now)
        case promql.VectorSelector():
            # A series that the newest scrape lacks is stale at once.
            _, newest = scrapes.taken[-1]
            return _selected(expression, newest)
        case promql.Call():
            return _called(expression, scrapes, now)
        case promql.BinaryExpr():
            sides = (evaluated(side, scrapes, now) for side in (expression.lhs, expression.rhs))
            return _combined(expression, *sides)
    raise NotImplementedError(f"{type(expression).__name__}: {expression}")


def _selected(selector: Any, series: Mapping[Labels, Any]) -> Any:
    return {k: v for k, v in series.items() if _matches(selector, dict(k))}


def _called(node: Any, scrapes: Scrapes, now: float) -> Vector | float:
    name = node.func.name
    if name == "time":
        return now
    (argument,) = node.args
    windows = scrapes.ranges(now, argument.range.total_seconds())
    chosen = _selected(argument.vector_selector, windows)
    if name == "max_over_time":
        return {_without_name(labels): max(values) for labels, values in chosen.items()}
    if name == "increase":
        # Prometheus also extrapolates to the ends of the window, so its value is a little larger.
        grown = {labels: values for labels, values in chosen.items() if len(values) > 1}
        return {_without_name(labels): _growth(values) for labels, values in grown.items()}
    raise NotImplementedError(name)


def _growth(values: list[float]) -> float:
    # A counter that is smaller than before has begun again at 0.
    pairs = itertools.pairwise(values)
    return sum(after - before if after >= before else after for before, after in pairs)


def _matches(selector: Any, labels: Mapping[str, str]) -> bool:
    if selector.name is not None and labels["__name__"] != selector.name:
        return False
    for matcher in selector.matchers.matchers:
        value, wanted = labels.get(matcher.name, ""), matcher.value
        is_pattern = matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe)
        holds = re.fullmatch(wanted, value) is not None if is_pattern else value == wanted
        if holds != (matcher.op in (promql.MatchOp.Equal, promql.MatchOp.Re)):
            return False
    return True


def _combined(node: Any, left: Any, right: Any) -> Vector:
    operator = str(node.op)
    if isinstance(left, dict) and isinstance(right, dict):
        return _joined(node, operator, left, right)
    if operator == "-" and isinstance(right, dict):
        return {_without_name(labels): left - value for labels, value in right.items()}
    if isinstance(left, dict):
        return {labels: value for labels, value in left.items() if _holds(operator, value, right)}
    raise NotImplementedError(str(node))


def _joined(node: Any, operator: str, left: Vector, right: Vector) -> Vector:
    def key(labels: Labels) -> Labels:
        modifier = node.modifier
        if modifier is None or modifier.matching is None:
            return _without_name(labels)
        assert modifier.matching.type == promql.LabelModifierType.Include
        return frozenset(pair for pair in labels if pair[0] in modifier.matching.labels)

    there = {key(labels): value for labels, value in right.items()}
    if operator == "or":
        known = {key(labels) for labels in left}
        return left | {k: v for k, v in right.items() if key(k) not in known}
    if operator == "unless":
        return {labels: value for labels, value in left.items() if key(labels) not in there}
    common = {labels: value for labels, value in left.items() if key(labels) in there}
    if operator == "and":
        return common
    return {k: value for k, value in common.items() if _holds(operator, value, there[key(k)])}


def _holds(operator: str, left: float, right: float) -> bool:
    return {"==": left == right, ">": left > right, "<": left < right}[operator]


def _without_name(labels: Labels) -> Labels:
    return frozenset(pair for pair in labels if pair[0] != "__name__")


@dataclass
class Alert:
    """One rule, and since when it holds for which series."""

    name: str
    expression: Any
    patience: float
    since: dict[Labels, float] = field(default_factory=dict)

    def firing(self, scrapes: Scrapes, now: float) -> set[Labels]:
        """Evaluate once; the label sets that have fulfilled the rule for long enough."""
        series = evaluated(self.expression, scrapes, now)
        self.since = {labels: self.since.get(labels, now) for labels in map(_without_name, series)}
        return {labels for labels, began in self.since.items() if now - began >= self.patience}


def alerts_of(path: Path) -> list[Alert]:
    """The alerts of a rules file."""
    groups = yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return [
        Alert(rule["alert"], promql.parse(rule["expr"]), _seconds(rule.get("for", "0s")))
        for rule in rules
    ]


def _seconds(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def metrics_in(expressions: Iterable[str]) -> set[str]:
    """The metrics that expressions name, by Prometheus' own grammar."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql.VectorSelector):
            found.add(str(node.name))

    for expression in expressions:
        promql.walk(promql.parse(expression), pre_visit=visit)
    return found

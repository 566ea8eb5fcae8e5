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

Labels = frozenset[tuple[str, str]]
"""With the metric's name as `__name__`, as in Prometheus."""

Vector = dict[Labels, float]


class Scrapes:
    """What a Prometheus server has of one target: a value of each series for each scrape."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, Vector]] = []

    def scrape(self, now: float, text: str) -> None:
        """Store an answer of the target; an empty one is a target that does not answer."""
        found: Vector = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.endswith("_created"):
                    continue
                found[frozenset({**sample.labels, "__name__": sample.name}.items())] = sample.value
        self.taken.append((now, found))

    def instant(self, now: float) -> Vector:
        """A series that the newest scrape lacks is stale at once."""
        at, found = self.taken[-1]
        assert at == now
        return found

    def ranges(self, now: float, seconds: float) -> dict[Labels, list[float]]:
        """The values of each series in a window that ends now."""
        found: dict[Labels, list[float]] = {}
        for at, vector in reversed(self.taken):
            if at < now - seconds:
                break
            for labels, value in vector.items():
                found.setdefault(labels, []).insert(0, value)
        return found


def evaluated(expression: Any, scrapes: Scrapes, now: float) -> Vector | float:
    """The value of a parsed expression at the time of the newest scrape."""
    match expression:
        case promql.NumberLiteral():
            return float(expression.val)
        case promql.ParenExpr():
            return evaluated(expression.expr, scrapes, now)
        case promql.VectorSelector():
            return {
                labels: value
                for labels, value in scrapes.instant(now).items()
                if _matches(expression, dict(labels))
            }
        case promql.Call():
            return _called(expression, scrapes, now)
        case promql.BinaryExpr():
            left, right = (
                evaluated(expression.lhs, scrapes, now),
                evaluated(expression.rhs, scrapes, now),
            )
            return _combined(expression, left, right)
    raise NotImplementedError(f"{type(expression).__name__}: {expression}")


def _called(node: Any, scrapes: Scrapes, now: float) -> Vector | float:
    name = node.func.name
    if name == "time":
        return now
    (argument,) = node.args
    windows = scrapes.ranges(now, argument.range.total_seconds())
    chosen = {k: v for k, v in windows.items() if _matches(argument.vector_selector, dict(k))}
    if name == "max_over_time":
        return {_without_name(labels): max(values) for labels, values in chosen.items()}
    if name == "increase":
        # Prometheus also extrapolates to the ends of the window, so its value is a little larger.
        return {
            _without_name(labels): _growth(values)
            for labels, values in chosen.items()
            if len(values) > 1
        }
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


def _combined(node: Any, left: Vector | float, right: Vector | float) -> Vector | float:
    operator = str(node.op)
    if isinstance(left, dict) and isinstance(right, dict):
        return _joined(node, operator, left, right)
    if operator == "-" and isinstance(right, dict):
        assert isinstance(left, float)
        return {_without_name(labels): left - value for labels, value in right.items()}
    if isinstance(left, dict) and isinstance(right, float):
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
    if operator == "and":
        return {labels: value for labels, value in left.items() if key(labels) in there}
    if operator == "unless":
        return {labels: value for labels, value in left.items() if key(labels) not in there}
    if operator == "or":
        known = {key(labels) for labels in left}
        return left | {k: v for k, v in right.items() if key(k) not in known}
    return {
        labels: value
        for labels, value in left.items()
        if key(labels) in there and _holds(operator, value, there[key(labels)])
    }


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
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    since: dict[Labels, float] = field(default_factory=dict)

    def firing(self, scrapes: Scrapes, now: float) -> set[Labels]:
        """Evaluate once; the label sets that have fulfilled the rule for long enough."""
        found = evaluated(self.expression, scrapes, now)
        assert isinstance(found, dict)
        self.since = {labels: self.since.get(labels, now) for labels in map(_without_name, found)}
        return {labels for labels, began in self.since.items() if now - began >= self.patience}


def alerts_of(path: Path) -> list[Alert]:
    """The alerts of a rules file."""
    groups = yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    return [
        Alert(
            rule["alert"],
            promql.parse(rule["expr"]),
            _seconds(rule.get("for", "0s")),
            rule["labels"],
            rule["annotations"],
        )
        for group in groups
        for rule in group["rules"]
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

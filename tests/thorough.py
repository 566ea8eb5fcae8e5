"""What `make test` leaves to `make thorough`: tests with that mark, and cases of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

AZURE = pytest.mark.thorough("Azurite is a process that npm fetches; S3 takes the same way")
GOOGLE = pytest.mark.thorough("one client serves all object stores, and S3 is in make test")

HDFS = pytest.mark.thorough("Hadoop's mini cluster takes ten seconds, and an archive from Maven")


def sampled(cases: Iterable[T], kept: Callable[[T], object], *, reason: str) -> list[Any]:
    """All of the cases, for `parametrize`; those that are not `kept` are `thorough`.

    For cases that are chosen by a rule or have no names; the mark `sample` chooses them by name.
    """
    return [case if kept(case) else _left(case, reason) for case in cases]


def _left(case: Any, reason: str) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.thorough(reason))


def mark_what_is_not_sampled(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of a test that its `sample` does not have as `thorough`, for the reason there.

    A sample has a case by its whole name, or by the name of one of its parameters.
    """
    for item in items:
        for mark in item.iter_markers("sample"):
            name = item.callspec.id
            if not {name, *name.split("-")} & set(mark.args):
                item.add_marker(pytest.mark.thorough(mark.kwargs.get("why", "")))


def without_reason(items: Iterable[pytest.Item]) -> list[str]:
    """The names of the tests that are `thorough`, and do not tell why in one text."""
    return [
        item.nodeid
        for item in items
        for mark in item.iter_markers("thorough")
        if mark.kwargs or len(mark.args) != 1 or not str(mark.args[0]).strip()
    ]

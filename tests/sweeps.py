"""Cases of which `make test` runs some and `make sweeps` the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def sampled(cases: Iterable[T], kept: Callable[[T], object]) -> list[Any]:
    """All of the cases, for `parametrize`; those that are not `kept` are left to the sweep."""
    return [case if kept(case) else _left(case) for case in cases]


def _left(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.sweep)

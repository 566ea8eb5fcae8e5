"""Decides what is read next, and by which reader."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import SplitEnumerator, SplitEnumeratorContext
    from .batch_budget import BatchBudget, BatchLimits
    from .coordinator.coordinator import Coordinator
    from .settings import CoordinatorSettings, StartingState
    from .source_api import EnumeratorSource

__all__ = [
    "BatchBudget",
    "BatchLimits",
    "Coordinator",
    "CoordinatorSettings",
    "EnumeratorSource",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "StartingState",
]

_HOMES = {
    "api": ("SplitEnumerator", "SplitEnumeratorContext"),
    "coordinator.coordinator": ("Coordinator",),
    "source_api": ("EnumeratorSource",),
    "batch_budget": ("BatchLimits", "BatchBudget"),
    "settings": ("CoordinatorSettings", "StartingState"),
}


def __getattr__(name: str) -> Any:
    # Tasks need the options of this package, and none of what a coordinator is made of.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(name)

"""Coordinators with one planted bug each. The simulator has to catch every one of them."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.tests.protocol import broken_in_flight, broken_state, broken_table


def _planted(broken: type) -> type[Coordinator[Any, Any]]:
    """The class itself, or a coordinator whose `part` it is."""
    if issubclass(broken, Coordinator):
        return broken

    class InItsPlace(Coordinator[Any, Any]):
        def _build(self, *arguments: Any) -> broken_state.Opened:
            opened = super()._build(*arguments)
            *path, name = vars(broken)["part"].split(".")
            owner = reduce(getattr, path, opened)
            part = getattr(owner, name)
            if isinstance(part, type):
                setattr(owner, name, broken)
            elif part is not None:
                part.__class__ = broken
            return opened

    return InItsPlace


ALL = {
    name: _planted(broken)
    for module in (broken_in_flight, broken_state, broken_table)
    for name, broken in vars(module).items()
    if isinstance(broken, type) and broken.__module__ == module.__name__ and name[0] != "_"
}
"""Name of a bug -> the coordinator that has it."""

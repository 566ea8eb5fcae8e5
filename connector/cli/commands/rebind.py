"""`sluice rebind`: forgets the input and the table that a state or a table has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....checkpoint_meta.documents.query_ends import recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ...query.query_ends import StartTerms, may_repeat, rebind
from ..offline_edit import Plan
from ..output import print_pairs


def rebind_plan(store: StateStore) -> Plan:
    """Plan a record without input and table."""
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}

    def write() -> Mapping[str, Any]:
        rebind(store, ends, StartTerms(new_input=True, new_table=True))
        return {}

    is_bound = bool(ends.input or ends.table)
    return Plan(report, _show, write if is_bound else None)


def repeat_plan(place: StateStore) -> Plan:
    """Plan a record by which the next new query may read the inputs of a table again."""

    def write() -> Mapping[str, Any]:
        may_repeat(place)
        return {}

    return Plan({"inputs of the table": place.location}, _show, write)


def _show(report: Mapping[str, Any]) -> None:
    print_pairs({name: str(value) for name, value in report.items()})

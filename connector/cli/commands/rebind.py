"""`sluice rebind`: forgets the input and the table that a state has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....checkpoint_meta.documents.query_ends import QueryEnds, record_ends, recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ..offline_edit import Plan
from ..output import print_pairs


def rebind_plan(store: StateStore) -> Plan:
    """Plan a record without input and table."""
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}

    def write() -> Mapping[str, Any]:
        record_ends(store, QueryEnds())
        return {}

    return Plan(report, _show, write if ends != QueryEnds() else None)


def _show(report: Mapping[str, Any]) -> None:
    print_pairs({name: str(value) for name, value in report.items()})

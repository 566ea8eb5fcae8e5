"""`sluice take-over`: supersedes the query that owns a state, so that another one can start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....checkpoint_meta.stores.contract import StateStore
from ...query.owner import owner_of
from ...query.ownership import take_over
from ..offline_edit import Plan
from ..output import print_pairs


def take_over_plan(store: StateStore) -> Plan:
    """Plan a claim that belongs to no query."""
    report = {"state": store.location, "owner": str(owner_of(store))}
    return Plan(report, _show, lambda: {"epoch": take_over(store)})


def _show(report: Mapping[str, Any]) -> None:
    print_pairs({name: str(value) for name, value in report.items()})

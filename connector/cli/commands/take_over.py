"""`sluice take-over`: supersedes the query that owns a state, so that another one can start."""

from __future__ import annotations

from ....checkpoint_meta.stores.contract import StateStore
from ...query.owner import owner_of, take_over
from ..offline_edit import Plan


def take_over_plan(store: StateStore) -> Plan:
    """Plan a claim that belongs to no query."""
    report = {"state": store.location, "owner": str(owner_of(store))}
    return Plan(report, lambda: {"epoch": take_over(store)})

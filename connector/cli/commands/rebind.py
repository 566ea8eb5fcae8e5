"""`sluice rebind`: forgets the input and the table that a state has recorded."""

from __future__ import annotations

from ....checkpoint_meta.documents.query_ends import recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ...query.start_check import StartTerms, rebind
from ..offline_edit import Plan


def rebind_plan(store: StateStore) -> Plan:
    """Plan a record without input and table."""
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}
    terms = StartTerms(new_input=True, new_table=True)
    return Plan(report, None if ends.any_table else lambda: rebind(store, terms))

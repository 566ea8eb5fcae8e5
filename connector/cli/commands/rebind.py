"""`sluice rebind`: forgets the input and the table that a state or a table has recorded."""

from __future__ import annotations

from ....checkpoint_meta.documents.query_ends import recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ...query.query_ends import StartTerms, may_repeat, rebind
from ..offline_edit import Plan


def rebind_plan(store: StateStore) -> Plan:
    """Plan a record without input and table."""
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}
    terms = StartTerms(new_input=True, new_table=True)
    is_bound = bool(ends.input or ends.table)
    return Plan(report, (lambda: rebind(store, ends, terms)) if is_bound else None)


def repeat_plan(place: StateStore) -> Plan:
    """Plan a record by which the next new query may read the inputs of a table again."""
    return Plan({"inputs of the table": place.location}, lambda: may_repeat(place))

"""`sluice rebind`: forgets the input and the table that a state has recorded."""

from __future__ import annotations

from ....checkpoint_meta.documents.query_ends import recorded_ends
from ....checkpoint_meta.stores.contract import StateStore
from ...query import start_check
from ..answer import Answer
from ..arguments import EditArguments
from ..offline_edit import Plan, edit


def rebind(arguments: EditArguments) -> Answer:
    """Forget the input and table; the next start sets them.

    It records those that it finds. A query that has not begun may write into a table that has its
    input. `sluice run` has flags for that.
    """
    return edit(arguments, _plan, may_begin=True)


def _plan(store: StateStore) -> Plan:
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}
    terms = start_check.StartTerms(new_input=True, new_table=True)
    return Plan(report, None if ends.any_table else lambda: start_check.rebind(store, terms))

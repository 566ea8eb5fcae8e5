"""`sluice take-over`: supersedes the query that owns a state, so that another one can start."""

from __future__ import annotations

from ...query import owner
from ...query.owner import owner_of
from ..answer import Answer
from ..arguments import ViewArguments, Yes
from ..offline_edit import Plan, carry_out


def take_over(arguments: ViewArguments, yes: Yes = False) -> Answer:
    """Supersede the query that owns a state.

    It ends with FencedError, and the next start need not wait for it.
    """
    store = arguments.opened()

    def decide() -> Plan:
        # A claim that belongs to no query.
        report = {"state": store.location, "owner": str(owner_of(store))}
        return Plan(report, lambda: {"epoch": owner.take_over(store)})

    return carry_out(decide, yes=yes)

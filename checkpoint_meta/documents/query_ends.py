"""What a query reads and the table that it writes to, recorded so that another call is noticed.

The input is recorded before the first task of a start runs, and the table when it has a batch. A
crash before the second leaves a state without a table: the next start records it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..stores.contract import StateStore, next_created
from .checksummed_json import Document
from .layout import ENDS, numbered, numbers_in


class QueryEnds(Document):
    """The two ends of a query."""

    noun = "the record of a query's input and table"
    remedy = (
        "Restore the object from a copy. Or delete it, see that the call names the right input and "
        "table, and start again: they are recorded again."
    )

    input: Sequence[str] = ()
    """The loaded paths, absolute, as the names of their files begin."""

    table: str = ""
    """The identity of the table; empty if the sink has none."""

    file_column: str = ""
    """The column of the table with the key of each row's file; empty if the query writes none."""

    any_table: bool = False
    """True until the table has a batch, if the user has said that it may lack earlier batches, or
    have rows of this input by another query.
    """


def recorded_ends(store: StateStore) -> QueryEnds:
    """The newest record; an empty one before the first."""
    return QueryEnds.newest(store, ENDS) or QueryEnds()


def record_ends(store: StateStore, ends: QueryEnds) -> None:
    """Create a record, unless it is the newest one."""

    def created() -> None:
        numbers = numbers_in(store.list(ENDS))
        if numbers and QueryEnds.read(store, numbered(ENDS, numbers[-1])) == ends:
            return
        number = max(numbers, default=0) + 1
        store.publish(numbered(ENDS, number), ends.to_bytes())

    next_created(store, ENDS, created)

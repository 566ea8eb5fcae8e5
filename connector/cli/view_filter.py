"""`sluice files`: rows of a view, filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError
from ..views.catalog import table_of, view_named
from ..views.files import STATES

_PEOPLE: Final = {
    "files": "path size state reason discovered processed checkpoint rows",
    "splits": "path start end state reason checkpoint reader rows",
    "skipped": "path start end reason checkpoint reader",
    "quarantine": "path start end attempts checkpoint reason",
    "checkpoints": "checkpoint epoch state planned splits readers commits rows bytes has_base",
    "readers": "checkpoint epoch reader state splits rows bytes microseconds returned",
    "schemas": "version reason schema",
}


def columns_for_people(view: str) -> list[str]:
    """Columns that fit a screen."""
    return _PEOPLE[view.lower()].split()


def chosen(store: StateStore, view: str, *, in_state: str = "", matching: str = "") -> pa.Table:
    """A view, and of it the rows in a state, or whose path matches a pattern."""
    columns = view_named(view).schema.names
    if in_state:
        check_state(view.lower(), in_state)
        _require(columns, "state", view, "--in-state")
    if matching:
        _require(columns, "path", view, "--matching")
    table = table_of(store, view, matching)
    return table.filter(pc.equal(table.column("state"), in_state)) if in_state else table


_STATES: Final = {
    "files": STATES,
    "splits": STATES,
    "skipped": ("skipped",),
    "checkpoints": ("orphan", "in flight", "complete"),
    "readers": ("assigned", "read", "abandoned"),
}
"""View -> what its column `state` may say."""


def check_state(view: str, state: str) -> None:
    """Raises an `OptionError` if no row of a view is ever in this state."""
    states = _STATES.get(view, ())
    if states and state not in states:
        raise OptionError(
            f"--in-state: no row of the view {view} is ever in this state",
            "",
            state,
            ", ".join(states),
        )


def _require(columns: Sequence[str], name: str, view: str, option: str) -> None:
    if name not in columns:
        raise OptionError(
            f"{option} does not apply to this view", "", view, f"a view with the column {name}"
        )

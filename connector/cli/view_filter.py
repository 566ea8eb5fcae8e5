"""`sluice files`: rows of a view, filtered."""

from __future__ import annotations

from fnmatch import translate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError
from ..views.catalog import table_of
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
    table = table_of(store, view)
    if in_state:
        check_state(view.lower(), in_state)
        table = table.filter(pc.equal(_column(table, "state", view, "--in-state"), in_state))
    if matching:
        paths = _column(table, "path", view, "--matching")
        # In Arrow, because a view may have millions of paths.
        table = table.filter(pc.match_substring_regex(paths, matching_pattern(matching)))
    return table


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


def matching_pattern(pattern: str) -> str:
    """A shell pattern over whole paths as a regular expression of Arrow; * takes slashes, too."""
    # Python's translation, whose end and atomic groups RE2 does not know.
    text = translate(pattern).replace("(?>", "(?:")
    # Python 3.14 writes `\z` where earlier ones write `\Z`.
    return "^" + text.removesuffix(r"\Z").removesuffix(r"\z") + r"$"


def _column(table: pa.Table, name: str, view: str, option: str) -> pa.ChunkedArray:
    if name in table.schema.names:
        return table.column(name)
    raise OptionError(
        f"{option} does not apply to this view", "", view, f"a view with the column {name}"
    )

"""The views by name: their columns, and how each is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError
from . import files, files_as_of, protocol, splits
from .state_view import StateView, matching, with_view


@dataclass(frozen=True)
class View:
    """A view of the state as a table."""

    name: str
    schema: pa.Schema
    read: Callable[[StateView, str], Iterable[pa.Table]]
    """Reads at least the rows whose path matches a pattern; all rows for an empty pattern."""

    states: Sequence[str] = ()
    """What its column `state` may say; empty if it has none, or says more."""

    def check_state(self, state: str) -> None:
        """Raise OptionError if no row of the view is ever in this state."""
        if self.states and state not in self.states:
            raise OptionError(
                f"--in-state: no row of the view {self.name} is ever in this state",
                "",
                state,
                ", ".join(self.states),
            )


def _skipped(view: StateView, _: str) -> Iterator[pa.Table]:
    for table in splits.splits(view):
        yield table.filter(pc.equal(table.column("state"), "skipped"))


VIEWS: Final = {
    view.name: view
    for view in (
        View("files", files.FILES, lambda v, paths: [files.files(v, paths)], files.STATES),
        View("splits", splits.SPLITS, lambda view, _: splits.splits(view), files.STATES),
        View(
            "checkpoints",
            protocol.CHECKPOINTS,
            lambda view, _: [protocol.checkpoints(view)],
            ("orphan", "in flight", "complete"),
        ),
        View(
            "readers",
            protocol.READERS,
            lambda view, _: [protocol.readers(view)],
            ("assigned", "read", "abandoned"),
        ),
        View("quarantine", files_as_of.QUARANTINE, lambda view, _: [files_as_of.quarantine(view)]),
        View("skipped", splits.SPLITS, _skipped, ("skipped",)),
        View("schemas", protocol.SCHEMAS, lambda view, _: [protocol.schemas(view)]),
    )
}


def view_named(name: str) -> View:
    """The view of that name, in any case."""
    view = VIEWS.get(name.lower())
    if view is not None:
        return view
    near = difflib.get_close_matches(name.lower(), VIEWS, n=1)
    raise OptionError(
        "view: the view does not exist",
        "",
        repr(name),
        "one of " + ", ".join(VIEWS),
        f"Did you mean {near[0]}?" if near else "",
    )


def table_of(store: StateStore, name: str, pattern: str = "") -> pa.Table:
    """Return a view as of one moment; only paths that match the pattern, unless it is empty."""
    view = view_named(name)

    def read(state: StateView) -> pa.Table:
        # The empty one is for a view without rows.
        tables = (matching(table, pattern) for table in view.read(state, pattern))
        return pa.concat_tables([view.schema.empty_table(), *tables])

    # The whole view before its first row is passed on: a second look must not repeat rows of the
    # first.
    return with_view(store, read)

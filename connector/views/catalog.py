"""The views by name: their columns, and how each is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError
from . import files, protocol, quarantine, splits
from .state_view import StateView, look_at


@dataclass(frozen=True)
class View:
    """A view of the state as a table."""

    name: str
    schema: pa.Schema
    read: Callable[[StateView], Iterable[pa.Table]]


def _skipped(view: StateView) -> Iterator[pa.Table]:
    for table in splits.splits(view):
        yield table.filter(pc.equal(table.column("state"), "skipped"))


VIEWS: Final = {
    view.name: view
    for view in (
        View("files", files.FILES, lambda view: [files.files(view)]),
        View("splits", splits.SPLITS, splits.splits),
        View("checkpoints", protocol.CHECKPOINTS, lambda view: [protocol.checkpoints(view)]),
        View("readers", protocol.READERS, lambda view: [protocol.readers(view)]),
        View("quarantine", quarantine.QUARANTINE, lambda view: [quarantine.quarantine(view)]),
        View("skipped", splits.SPLITS, _skipped),
        View("schemas", protocol.SCHEMAS, lambda view: [protocol.schemas(view)]),
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


def table_of(store: StateStore, name: str) -> pa.Table:
    """A view as a table, all of it as of one moment."""
    view = view_named(name)

    def read(state: StateView) -> pa.Table:
        # The empty one is for a view without rows.
        return pa.concat_tables([view.schema.empty_table(), *view.read(state)])

    # The whole view before its first row is passed on: a second look must not repeat rows of the
    # first.
    return look_at(store, read)

"""Whether a call reads the input, and writes to the table, of the query whose state it names.

A file is known by its path. So if the input is spelt in another way, was moved or copied, all of it
would be read again; with a new checkpoint as well; and in another table the earlier rows are
missing. Each of these is refused before the state is claimed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...checkpoint_meta.documents.query_ends import (
    QueryEnds,
    TableInput,
    record_ends,
    recorded_ends,
)
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import absolute, join, loaded_paths, shown_name
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError, TableError
from ..options.model import SluiceOptions

_PLACE: Final = "_sluice"
"""Directory below that of the data files, whose name readers of tables leave out."""


@dataclass(frozen=True)
class EndTerms:
    """The changes that a call makes on purpose."""

    new_input: bool = False
    new_table: bool = False
    append: bool = False
    """The table may have rows of the same input by another query."""


class EndsCheck:
    """Compares a call with the state and with the table that it names."""

    def __init__(
        self,
        store: StateStore,
        options: SluiceOptions,
        table: Callable[[], str] | None = None,
        terms: EndTerms = EndTerms(),
    ) -> None:
        """`table` returns the identity of the table, empty without one; None if it has none."""
        self._store, self._options, self._table, self._terms = store, options, table, terms
        self._input = _roots(options)
        self._is_recorded = False
        self.may_lack_batches = terms.new_table
        """True if the table may lack earlier batches: the call says so, or `rebind` did."""

    def check(self) -> None:
        """Compare, before the claim.

        Raises:
            OptionError: the input is another one.
            TableError: the table is another one, or has this input from another query.
        """
        has_begun = bool(CheckpointHistory(self._store).checkpoints())
        recorded = recorded_ends(self._store)
        if has_begun and not self._terms.new_input:
            self._check_input(recorded.input)
        if self._table is None:
            return
        identity = self._table()
        if has_begun:
            self.may_lack_batches |= not recorded.table
            if recorded.table not in ("", identity) and not self._terms.new_table:
                raise self._another_table(recorded.table, identity)
        elif identity and not (self._terms.append or self._options.starting_state):
            self._check_not_there()

    def _check_input(self, recorded: Sequence[str]) -> None:
        missing = [root for root in recorded if not _overlaps(root, self._input)]
        added = [root for root in self._input if not _overlaps(root, recorded)]
        if not missing or not added:
            return
        same = [root for root in added if _is_link_to(root, missing)]
        raise OptionError(
            "path: this query has read another input, and would read all files again",
            self._store.location,
            ", ".join(added) + (" (the same directory by another name)" if same else ""),
            f"{', '.join(missing)}, which the state has recorded, or a path above or below it",
            "Files are known by their paths. Load the path that is recorded: a moved directory can "
            "have a symbolic link there. To read further paths, load both. To read the new path "
            "from its beginning, add --new-input (in Spark: `sluice rebind` with the checkpoint).",
        )

    def _another_table(self, recorded: str, identity: str) -> TableError:
        return TableError(
            "this query writes to another table, which has its earlier rows",
            self._options.write_to or "",
            f"table {identity}" if identity else "no table",
            f"table {recorded}, which the state has recorded",
            "Name the table that is recorded, or restore it. If the new rows are to go to this "
            "one, such as a clone, add --new-table (or run `sluice rebind` with the checkpoint).",
        )

    def _check_not_there(self) -> None:
        for other in self._others():
            if any(_overlaps(root, _resolved(self._input)) for root in other.input):
                raise TableError(
                    "the table has rows of this input by another query, and would get them again",
                    self._options.write_to or "",
                    f"the new state {self._store.location}, and rows of "
                    f"{', '.join(other.input)} by the query with the state {other.state}",
                    "the state of that query, or a table without rows of this input",
                    "Restore the checkpoint of that query from a backup, or write to another "
                    "table. If the table may get these files again, add --append.",
                )

    def record(self) -> None:
        """Record both ends, as far as there is a table; the table's side of them first."""
        if self._is_recorded:
            return
        recorded = recorded_ends(self._store)
        identity = "" if self._table is None else self._table()
        ends = QueryEnds(input=self._input, table=identity or recorded.table)
        if identity and (recorded.table != identity or recorded.input != ends.input):
            self._record_in_table()
        if self._input and (recorded.input, recorded.table) != (ends.input, ends.table):
            record_ends(self._store, ends)
        self._is_recorded = bool(identity) or self._table is None

    # Next to the table ----------------------------------------------------------------------

    def _others(self) -> Sequence[TableInput]:
        place = self._place()
        return [TableInput.read(place, f"inputs/{leaf}") for leaf in place.list("inputs")]

    def _record_in_table(self) -> None:
        record = TableInput(input=_resolved(self._input), state=self._store.location)
        self._place().publish(f"inputs/{secrets.token_hex(8)}.json", record.to_bytes())

    def _place(self) -> StateStore:
        url = join(absolute(self._options.write_to or ""), _PLACE)
        return open_store(url, self._options.storage_options)


def _roots(options: SluiceOptions) -> list[str]:
    """The loaded paths as the names of their files begin; none of a source of the user's own."""
    if options.source != "files" or not options.path:
        return []
    return sorted({_as_in_files(path.base, options) for path in loaded_paths(options.path)})


def _as_in_files(base: str, options: SluiceOptions) -> str:
    storage, name = open_storage(base, options.storage_options)
    return shown_name(storage.url(name)).rstrip("/")


def _overlaps(root: str, others: Sequence[str]) -> bool:
    """True if one of the others is the same, above or below."""
    return any(f"{root}/".startswith(f"{o}/") or f"{o}/".startswith(f"{root}/") for o in others)


def _resolved(roots: Sequence[str]) -> list[str]:
    # Of a URL nothing can be resolved.
    return [os.path.realpath(root) if root.startswith("/") else root for root in roots]


def _is_link_to(root: str, others: Sequence[str]) -> bool:
    return bool({*_resolved([root])} & {*_resolved(others)})

"""Compares the input and the table of a call with those of the query whose state it names.

A file is known by its path. So if the input is spelt in another way, was moved or copied, all of it
would be read again; with a new checkpoint as well; and in another table, or in one that was taken
back, earlier rows are missing. Each of these is refused before the state is claimed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...checkpoint_meta.documents.batch_mark import BatchMark
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ...checkpoint_meta.documents.query_ends import (
    QueryEnds,
    TableInput,
    record_ends,
    recorded_ends,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import absolute, join, loaded_paths, shown_name
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...checkpoint_meta.written_batches import newest_written
from ...errors import OptionError, StateError, TableError
from ...tables.table_files import identity_around
from ...tables.table_sink import TableSink
from ..options.model import SluiceOptions, parse_options
from ..source.state_location import open_state
from .spark_checkpoint import newest_batch, newest_in_spark

_PLACE: Final = "_sluice"
"""Directory below that of the data files, whose name readers of tables leave out."""


@dataclass(frozen=True)
class StartTerms:
    """The terms of a start: its patience with an owner that lives, and its changes on purpose."""

    patience: float = 0.0
    """Seconds to wait for the owner to end."""

    take_over: bool = False
    """Claim the state although it lives; the owner ends with FencedError."""

    new_input: bool = False
    new_table: bool = False
    append: bool = False
    """The table may have rows of the same input by another query."""


USUAL_TERMS: Final = StartTerms()
"""Those of a start that changes nothing, and leaves an owner that lives alone."""


class EndsCheck:
    """Compares a call with the state and with the table that it names."""

    def __init__(
        self,
        store: StateStore,
        options: SluiceOptions,
        sink: object = None,
        terms: StartTerms = USUAL_TERMS,
        *,
        looks_around: bool = False,
    ) -> None:
        """`looks_around`: the sink is not known, but a table around `writeTo` may be its table."""
        self.store = self._store = store
        self.options = self._options = options
        self._terms = terms
        self.history = CheckpointHistory(store, ahead=options.checkpoints_ahead)
        """Knows the checkpoints that were looked at."""
        self._sink = sink if isinstance(sink, TableSink) else None
        self._looks_around = looks_around and bool(options.write_to)
        self._input = _roots(options)
        self._is_recorded = False
        self.may_lack_batches = terms.new_table
        """True if the table may lack earlier batches: the call says so, or `rebind` did."""

    def check(self) -> None:
        """Compare, before the claim.

        Raises:
            OptionError: the input is another one.
            TableError: the table is another one, is ahead of the state or behind it, or has this
                input from another query.
        """
        has_begun = bool(self.history.checkpoints())
        recorded = recorded_ends(self._store)
        if has_begun and not self._terms.new_input:
            self._check_input(recorded.input)
        identity = self._identity(recorded.table)
        if identity is None:
            return
        if has_begun:
            self.may_lack_batches |= recorded.may_lack_batches
            if recorded.table not in ("", identity) and not self._terms.new_table:
                raise self._another_table(recorded.table, identity)
            if self._sink is not None:
                self._check_newest(self._sink)
        elif identity and not (self._terms.append or self._options.starting_state):
            self._check_not_there()

    def _identity(self, recorded: str) -> str | None:
        """The identity of the table, empty without one; None if it cannot be known."""
        if self._sink is not None:
            return self._sink.identity()
        if not self._looks_around:
            return None
        identity = identity_around(self._options.write_to or "", self._options.storage_options)
        # Data files of an Iceberg table may be anywhere.
        return None if recorded.startswith("iceberg:") and not identity else identity

    def _check_newest(self, sink: TableSink) -> None:
        """Check that the table has the batches that the host's log has."""
        batch = newest_batch(self._store, self._options.storage_options)
        # A batch that was begun will be repeated, and looks by itself.
        if batch is None or not batch.is_finished:
            return
        ref = newest_in_spark(self._store, self._options.storage_options, self.history)
        # A state that the log does not fit is refused by its driver.
        with suppress(StateError):
            if ref in (None, NO_CHECKPOINT):
                return
            lineage = self.history.load(ref).identity.lineage
            newest = newest_written(self.history, ReaderCommits(self._store), ref)
            sink.look(lineage, self.following(newest))

    def following(self, newest: BatchMark) -> BatchMark:
        """The mark that the table has to have before the batch after `newest`."""
        # Any earlier batch may be the newest in a table that is to get the new rows only.
        return BatchMark(newest.checkpoint) if self.may_lack_batches else newest

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
            "Files are known by their paths. If they were moved or copied, run `sluice fork "
            "CHECKPOINT NEW_CHECKPOINT --rewrite OLD=NEW --continue-query`, and start the query "
            "with the new checkpoint: it reads only new files. To read further paths, load both. "
            "To read the new path from its beginning, add --new-input (in Spark: `sluice rebind "
            "CHECKPOINT`).",
        )

    def _another_table(self, recorded: str, identity: str) -> TableError:
        return TableError(
            "this query writes to another table, which has its earlier rows",
            self._options.write_to or "",
            f"table {identity}" if identity else "no table",
            f"table {recorded}, which the state has recorded",
            "Name the table that is recorded, or restore it. If the new rows are to go to this "
            "one, such as a clone, add --new-table (in Spark: `sluice rebind CHECKPOINT`).",
        )

    def _check_not_there(self) -> None:
        others = self._others().values()
        if any(other.may_repeat for other in others):
            return
        for other in others:
            if any(_overlaps(root, _resolved(self._input)) for root in other.input):
                raise TableError(
                    "the table has rows of this input by another query, and would get them again",
                    self._options.write_to or "",
                    f"the new state {self._store.location}, and rows of "
                    f"{', '.join(other.input)} by the query with the state {other.state}",
                    "the state of that query, or a table without rows of this input",
                    "Restore the checkpoint of that query from a backup, or write to another "
                    "table. If the table may get these files again, add --append (in Spark: "
                    f"`sluice rebind {self._options.write_to}`).",
                )

    def record(self, *, in_table: bool) -> None:
        """Record both ends, as far as there is a table; the table's side of them first.

        `in_table`: the table has a batch of this start.
        """
        if self._is_recorded:
            return
        recorded = recorded_ends(self._store)
        identity = self._identity(recorded.table)
        ends = QueryEnds(
            input=self._input,
            table=identity or recorded.table,
            file_column=self._options.write_file_column,
            may_lack_batches=self.may_lack_batches and not in_table,
        )
        if identity and (recorded.table != identity or recorded.input != ends.input):
            self._record_in_table()
        if self._input and recorded != ends:
            record_ends(self._store, ends)
        self._is_recorded = in_table and (bool(identity) or self._sink is None)

    def mean(self) -> None:
        """Record what the terms of this start mean, for a host that does not know them."""
        recorded = recorded_ends(self._store)
        if self._terms.new_input or self._terms.new_table:
            rebind(self._store, recorded, self._terms)
        if self._terms.append:
            may_repeat(self._place())

    # Next to the table ----------------------------------------------------------------------

    def _others(self) -> Mapping[str, TableInput]:
        place = self._place()
        names = [f"{_INPUTS}/{leaf}" for leaf in place.list(_INPUTS)]
        return {name: TableInput.read(place, name) for name in names}

    def _record_in_table(self) -> None:
        record = TableInput(input=_resolved(self._input), state=self._store.location)
        self._place().publish(f"{_INPUTS}/{secrets.token_hex(8)}.json", record.to_bytes())
        for name, other in self._others().items():
            if other.may_repeat:
                self._place().delete(name)

    def _place(self) -> StateStore:
        return records_of_table(self._options.write_to or "", self._options.storage_options)


_INPUTS: Final = "inputs"


def check_start(texts: Mapping[str, str], sink: object, terms: StartTerms) -> None:
    """Compare, for a query of Spark whose sink is known, and record what the `terms` mean.

    Raises:
        SluiceError: see `EndsCheck.check`.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    ends = EndsCheck(open_state(options), options, sink, terms)
    ends.check()
    ends.mean()


def records_of_table(write_to: str, storage_options: Mapping[str, object]) -> StateStore:
    """Return the place of the inputs of a table: below the directory of its data files."""
    return open_store(join(absolute(write_to), _PLACE), storage_options)


def has_inputs(place: StateStore) -> bool:
    """True if inputs of a table are recorded there."""
    return bool(place.list(_INPUTS))


def may_repeat(place: StateStore) -> None:
    """Let the next query that begins read the inputs of a table again."""
    record = TableInput(input=[], state="", may_repeat=True)
    place.publish(f"{_INPUTS}/{secrets.token_hex(8)}.json", record.to_bytes())


def rebind(store: StateStore, recorded: QueryEnds, terms: StartTerms) -> None:
    """Forget the recorded input or table: the next start records those that it finds."""
    ends = QueryEnds(
        input=[] if terms.new_input else recorded.input,
        table="" if terms.new_table else recorded.table,
        file_column=recorded.file_column,
        may_lack_batches=recorded.may_lack_batches or terms.new_table,
    )
    record_ends(store, ends)


def _roots(options: SluiceOptions) -> list[str]:
    """The loaded paths as the names of their files begin; none of a source of the user's own."""
    if options.source != "files" or not options.path:
        return []
    storage = options.storage_options
    return sorted({as_in_files(path.base, storage) for path in loaded_paths(options.path)})


def as_in_files(path: str, storage_options: Mapping[str, object]) -> str:
    """A path as the names of files below it begin."""
    storage, name = open_storage(absolute(path), storage_options)
    return shown_name(storage.url(name)).rstrip("/")


def _overlaps(root: str, others: Sequence[str]) -> bool:
    """True if one of the others is the same, above or below."""
    return any(f"{root}/".startswith(f"{o}/") or f"{o}/".startswith(f"{root}/") for o in others)


def _resolved(roots: Sequence[str]) -> list[str]:
    # Of a URL nothing can be resolved.
    return [os.path.realpath(root) if root.startswith("/") else root for root in roots]


def _is_link_to(root: str, others: Sequence[str]) -> bool:
    return bool({*_resolved([root])} & {*_resolved(others)})

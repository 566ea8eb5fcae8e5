"""The one check of a start: does the call fit the state and the table that it names?

A file is known by its path, a batch by its checkpoint, a table by its identity. Compared are:

- the **owner** of the state: a start that finds a live one does not claim it; it waits, or is
  refused. An owner lives while its process runs on this host (some seconds are allowed for its
  death), or as long as it gives signs of life where processes are not visible;
- the **loaded paths** with those that the state has recorded: a path that is spelt in another way
  would be read again;
- the **options** that say how far a file was read with those of the newest reader commits;
- the **identity of the table** with the recorded one: another table lacks the earlier rows;
- the **marks** in the table with the state: the newest batch, and, for a new state, the inputs of
  the queries that wrote into the table.

Each of them is compared before the claim. The look at the owner and the claim are one: a claim
takes the number after the owner that was looked at, so a start that comes between has taken it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...checkpoint_meta.checkpoint_snapshot import forked_from, newest_written
from ...checkpoint_meta.documents.batch_mark import BatchMark, BatchOrigin, TableInput
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.heartbeat import ALIVE_SECONDS, beats_of, is_beating
from ...checkpoint_meta.documents.query_records import (
    QueryEnds,
    find_seed,
    record_ends,
    recorded_ends,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import Location, loaded_paths, shown_name
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError, QueryRunningError, StateError, TableError
from ...reader.direct_write.field_ids import from_text
from ...tables.table_files import TableAround, table_around
from ...tables.table_sink import TableSink
from ..options.model import SluiceOptions, parse_options
from ..source.rehearsal import removes_rows
from ..source.state_location import open_state, starting_state
from .begun_files import check_begun_files
from .owner import Owner, owner_of, take_over
from .spark_checkpoint import newest_batch, newest_in_spark

log = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds between two looks at an owner."""

_DYING_SECONDS: Final = 5.0
"""A process that was killed, with much memory or below a JVM that was, is seen for so long."""

_MOST_INPUTS: Final = 50
"""Most paths in a mark; of more their directories."""


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

TERMS_IN_SPARK: Final = StartTerms(patience=ALIVE_SECONDS + 5.0)
"""Spark ends the process of a query before this one has started, or soon after. A driver that has
died on another host is known to be dead when it has been silent for so long."""


class StartCheck:
    """Whether a start may claim a state, and what it records of the two ends of its query."""

    def __init__(
        self,
        store: StateStore,
        options: SluiceOptions,
        terms: StartTerms = USUAL_TERMS,
        sink: object = None,
        *,
        wait: Callable[[float], None] = time.sleep,
        progress: Callable[[], object] | None = None,
    ) -> None:
        """Touches nothing.

        Args:
            store: the state directory.
            options: of the call.
            terms: what it says of a live owner, another input and another table.
            sink: of the query, if the host knows it.
            wait: waits some seconds.
            progress: for a source of Spark, whose process has a single query, and left what it
                claimed before: what Spark's log has before the claim. If it is another value after
                a wait, Spark has to read its log again. A table around `writeTo` may be its table.
        """
        self.store = store
        self.options = options
        self.history = CheckpointHistory(store, ahead=options.checkpoints_ahead)
        """Knows the checkpoints that were looked at."""
        self._wait = wait
        self._terms = terms if progress is None else TERMS_IN_SPARK
        self._is_host, self._progress = progress is None, progress or (lambda: None)
        self._epoch: int | None = None
        """The owner that was looked at, and does not live."""
        self._sink = sink if isinstance(sink, TableSink) else None
        self._input = _roots(options)
        self._is_recorded = False
        self._any_table = terms.new_table

    # The owner ------------------------------------------------------------------------------

    def await_end(self) -> None:
        """Return when no query owns the state.

        Raises:
            QueryRunningError: one does, and `patience` is over.
        """
        owner = owner_of(self.store)
        if self._lives(owner) and not self._terms.take_over:
            owner = self._await_end_of(owner)
        self._epoch = owner.epoch

    def check_claim(self, newest: int) -> None:
        """Check, at the claim, that `newest` is still what was looked at.

        Raises:
            QueryRunningError: another query has come between.
        """
        if self._epoch is None:
            self.await_end()
        if newest != self._epoch and not self._terms.take_over:
            raise self._error(owner_of(self.store), "another run of this query has just started")

    def _await_end_of(self, owner: Owner) -> Owner:
        before, first_look = self._progress(), time.monotonic()
        beats, silent_since = beats_of(self.store, owner.epoch), first_look
        is_seen = owner.runs == "running" and owner.pid != os.getpid()
        patience = max(self._terms.patience, _DYING_SECONDS if is_seen else 0.0)
        if self._terms.patience:
            log.warning(
                "%s: waiting up to %.0f s for the owner to end: %s",
                self.store.location,
                self._terms.patience,
                owner,
            )
        while time.monotonic() - first_look < patience:
            self._wait(_PAUSE)
            newest = owner_of(self.store)
            latest = beats_of(self.store, newest.epoch)
            if (newest.epoch, latest) != (owner.epoch, beats):
                owner, beats, silent_since = newest, latest, time.monotonic()
            # By this clock: that of the other host may differ.
            is_silent = time.monotonic() - silent_since > ALIVE_SECONDS
            if not self._lives(newest) or (newest.runs == "unknown" and is_silent):
                if self._progress() != before:
                    raise self._error(newest, "another run of this query has just ended")
                return newest
        raise self._error(owner, "another run of this query is at work")

    def _lives(self, owner: Owner) -> bool:
        if owner.epoch and not owner.pid:
            # A damaged claim says no process.
            return is_beating(self.store, owner.epoch)
        is_own = owner.runs == "running" and owner.pid == os.getpid()
        return owner.runs in ("running", "unknown") and (self._is_host or not is_own)

    def _error(self, owner: Owner, what: str) -> QueryRunningError:
        waited = f", after {self._terms.patience:.0f} s" if self._terms.patience else ""
        return QueryRunningError(
            what,
            self.store.location,
            f"{owner}{waited}",
            "no other run of this query",
            "Nothing was claimed, and nothing is lost. Start again when it has ended, or let "
            "`sluice run` wait with --wait 10m. If it must not go on, stop it, or add --take-over "
            "(in Spark: `sluice take-over` with the checkpoint), and it ends with an error.",
        )

    # The ends -------------------------------------------------------------------------------

    def compare(self) -> None:
        """Compare the input and the table, before the claim.

        Raises:
            OptionError: the input is another one, or a file that was read in part cannot be
                continued under the options.
            TableError: the table is another one, is ahead of the state or behind it, or has this
                input from another query.
        """
        has_begun = bool(self.history.checkpoints())
        recorded = recorded_ends(self.store)
        self._any_table |= recorded.any_table or (self._terms.append and not has_begun)
        if has_begun and not self._terms.new_input:
            self._check_input(recorded.input)
        if has_begun:
            check_begun_files(self.history, ReaderCommits(self.store), self.options)
        table = self._table(recorded.table)
        identity = None if table is None else table.identity()
        if removes_rows(self.options) and not self._file_column(recorded, identity):
            raise self._no_key(self._earlier(recorded, identity))
        if table is None or identity is None:
            return
        if not has_begun:
            if identity and not (self._any_table or self.options.starting_state):
                self._check_not_there(table.inputs())
            return
        if recorded.table not in ("", identity) and not self._terms.new_table:
            raise self._another_table(recorded.table, identity)
        if self._sink is not None:
            # A state that the log does not fit is refused by its driver.
            with suppress(StateError):
                self._check_marks(self._sink)

    def _table(self, recorded: str) -> TableSink | TableAround | None:
        """The table of the query; None if it cannot be known."""
        if self._sink is not None or self._is_host or not self.options.write_to:
            return self._sink
        table = table_around(self.options.write_to, self.options.storage_options)
        # Data files of an Iceberg table may be anywhere.
        is_elsewhere = recorded.startswith("iceberg:") and not (table and table.identity())
        return None if is_elsewhere else table

    def _check_marks(self, sink: TableSink) -> None:
        """Check that the table has the batches that the host's log has."""
        batch = newest_batch(self.store, self.options.storage_options)
        # A batch that was begun will be repeated, and looks by itself.
        if batch is not None and not batch.is_finished:
            return
        ref = newest_in_spark(self.store, self.options.storage_options, self.history)
        if ref in (None, NO_CHECKPOINT):
            seed = find_seed(self.store)
            ref = None if seed is None else seed.ref
        if ref is not None:
            origin = self.origin(ref)
            sink.look(self.history.load(ref).identity.lineage, origin)
            columns = sink.columns()
            has_rows = origin.previous.checkpoint and not self._any_table
            if columns is not None and has_rows and removes_rows(self.options):
                self._check_column(from_text(columns).names)

    def _check_column(self, names: Sequence[str]) -> None:
        """Check that the table still has the column with which its rows were written."""
        column = self.options.write_file_column
        if column not in names:
            raise TableError(
                "the table has lost the column that names the file of a row",
                self.options.write_to or "",
                ", ".join(names),
                f"{column} among its columns, which earlier rows of this query had",
                "Nothing was read or stored. Rows cannot be replaced or removed without it: take "
                "the table back to a version that has the column. Or start without onOverwrite and "
                "onDelete, and files that have changed are not read again.",
            )

    def origin(self, start: CheckpointRef) -> BatchOrigin:
        """What comes before a batch that begins after a checkpoint."""
        reads = TableInput(_shorter(_resolved(self._input)), self.store.location)
        newest = newest_written(self.history, ReaderCommits(self.store), start)
        if self._any_table:
            # Any earlier batch may be the newest in a table that is to get the new rows only.
            return BatchOrigin(BatchMark(newest.checkpoint), reads, any_table=True)
        return BatchOrigin(newest, reads, None if newest.checkpoint else forked_from(self.store))

    def _check_input(self, recorded: Sequence[str]) -> None:
        missing = [root for root in recorded if not _overlaps(root, self._input)]
        added = [root for root in self._input if not _overlaps(root, recorded)]
        if not missing or not added:
            return
        same = {*_resolved(added)} & {*_resolved(missing)}
        raise OptionError(
            "path: this query has read another input, and would read all files again",
            self.store.location,
            ", ".join(added) + (" (the same directory by another name)" if same else ""),
            f"{', '.join(missing)}, which the state has recorded, or a path above or below it",
            "Files are known by their paths. If they were moved or copied, run `sluice fork "
            "CHECKPOINT NEW_CHECKPOINT --rewrite OLD=NEW --continue-query`, and start the query "
            "with the new checkpoint: it reads only new files. To read further paths, load both. "
            "To read the new path from its beginning, add --new-input (in Spark: `sluice rebind "
            "CHECKPOINT`).",
        )

    def _file_column(self, recorded: QueryEnds, identity: str | None) -> str:
        """The column that has the key in all rows of the query; empty without one."""
        column, earlier = self.options.write_file_column, self._earlier(recorded, identity)
        return column if not earlier.input or earlier.file_column == column else ""

    def _earlier(self, recorded: QueryEnds, identity: str | None) -> QueryEnds:
        """The ends of the query whose rows this table has; empty if it begins with this one."""
        forked = None if recorded.table else forked_from(self.store)
        if not recorded.input and self.options.starting_state:
            recorded = recorded_ends(starting_state(self.options)[0])
            is_same = recorded.table == identity
        else:
            is_same = forked is None or forked.table == identity
        return recorded if is_same and not self._any_table else QueryEnds()

    def _no_key(self, recorded: QueryEnds) -> OptionError:
        earlier = f"rows with {recorded.file_column}" if recorded.file_column else "rows without"
        return OptionError(
            "writeFileColumn: earlier rows of this query have no such key, so that they cannot be "
            "replaced or removed",
            self.store.location,
            f"writeFileColumn={self.options.write_file_column}, and {earlier}",
            "the same column since the first batch",
            "Start with the column of the earlier runs. If they had none, read the files into "
            "another table, with a new checkpoint and the option from the beginning.",
        )

    def _another_table(self, recorded: str, identity: str) -> TableError:
        return TableError(
            "this query writes to another table, which has its earlier rows",
            self.options.write_to or "",
            f"table {identity}" if identity else "no table",
            f"table {recorded}, which the state has recorded",
            "Name the table that is recorded, or restore it. If the new rows are to go to this "
            "one, such as a clone, add --new-table (in Spark: `sluice rebind CHECKPOINT`).",
        )

    def _check_not_there(self, others: Iterable[TableInput]) -> None:
        for other in others:
            is_same = any(_overlaps(root, _resolved(self._input)) for root in other.input)
            if is_same or not other.state:
                raise TableError(
                    "the table has rows of this input by another query, and would get them again",
                    self.options.write_to or "",
                    f"the new state {self.store.location}, and rows of "
                    f"{', '.join(other.input) or 'an input that is not known'} by "
                    f"{other.state or 'a query whose mark is gone, as in a clone'}",
                    "the state of that query, or a table without rows of this input",
                    "Restore the checkpoint of that query from a backup, or write to another "
                    "table. If the table may get these files again, add --append (in Spark: "
                    f"`sluice rebind {self.store.location}`).",
                )

    def record(self, *, in_table: bool) -> None:
        """Record both ends in the state, as far as there is a table.

        `in_table`: the table has a batch of this start.
        """
        if self._is_recorded:
            return
        recorded = recorded_ends(self.store)
        table = self._table(recorded.table)
        identity = None if table is None else table.identity()
        ends = QueryEnds(
            input=self._input,
            table=identity or recorded.table,
            file_column=self._file_column(recorded, identity),
            any_table=self._any_table and not in_table,
        )
        if self._input and recorded != ends:
            record_ends(self.store, ends)
        self._is_recorded = in_table and (bool(identity) or self._sink is None)


def check_start(texts: Mapping[str, str], sink: object, terms: StartTerms) -> None:
    """Check, for a query of Spark whose sink is known, and record what the `terms` mean.

    Raises:
        SluiceError: see `StartCheck`.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    store = open_state(options)
    check = StartCheck(store, options, terms, sink)
    check.await_end()
    if terms.take_over:
        take_over(store)
    check.compare()
    rebind(store, terms)


def rebind(store: StateStore, terms: StartTerms) -> None:
    """Forget the recorded input or table: the next start records what it finds.

    A state that has not begun may write into a table that has its input.
    """
    recorded = recorded_ends(store)
    is_any = terms.new_table or terms.append
    if is_any or terms.new_input:
        ends = QueryEnds(
            input=[] if terms.new_input else recorded.input,
            table="" if terms.new_table else recorded.table,
            file_column=recorded.file_column,
            any_table=recorded.any_table or is_any,
        )
        record_ends(store, ends)


def _roots(options: SluiceOptions) -> list[str]:
    """The loaded paths as the names of their files begin; none of a source of the user's own."""
    if options.source != "files" or not options.path:
        return []
    storage = options.storage_options
    return sorted({as_in_files(path.base, storage) for path in loaded_paths(options.path)})


def as_in_files(path: str | Location, storage_options: Mapping[str, object]) -> str:
    """A path as the names of files below it begin."""
    storage, name = open_storage(path, storage_options)
    return shown_name(storage.url(name)).rstrip("/")


def _overlaps(root: str, others: Sequence[str]) -> bool:
    """True if one of the others is the same, above or below."""
    return any(f"{root}/".startswith(f"{o}/") or f"{o}/".startswith(f"{root}/") for o in others)


def _resolved(roots: Sequence[str]) -> list[str]:
    # Of a URL nothing can be resolved.
    return [os.path.realpath(root) if root.startswith("/") else root for root in roots]


def _shorter(roots: Sequence[str]) -> list[str]:
    # A coarser input may refuse more than it has to, by name; each row of Spark's names it.
    shorter = sorted({*roots})
    while len(shorter) > _MOST_INPUTS:
        longest = max(root.count("/") for root in shorter)
        shorter = sorted({r.rpartition("/")[0] if r.count("/") == longest else r for r in shorter})
    return shorter

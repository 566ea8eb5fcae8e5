"""What an order is to say: which bytes of which files are read again, or dropped.

Nothing is written here. What a person is shown is what would be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ....checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ....checkpoint_meta.documents.query_records import recorded_ends
from ....checkpoint_meta.documents.reader_assignment import splits_of as assigned_to
from ....checkpoint_meta.files.file_columns import FileSplitSerializer
from ....checkpoint_meta.files.file_split import FileSplit, FileVersion, growing_mark, retraction_of
from ....checkpoint_meta.stores.contract import StateStore
from ....enumerator.files.ledger.byte_ranges import (
    ByteRanges,
    byte_ranges_of,
    splits_of,
    splits_without,
)
from ....errors import OptionError, TableError
from ....tables.delta_table import DeltaSink
from ....tables.manifests import MANIFESTS, Manifests
from ...host.run import target_of
from ...query.spark_checkpoint import batch_under_way
from ...views.amounts import counted
from ...views.catalog import view_named
from ...views.files import files as files_view
from ...views.state_view import StateView, path_filter
from ..arguments import checkpoint_as_of, checkpoint_named, no_checkpoint
from .known_files import SelectedFiles, unreadable


@dataclass(frozen=True)
class OrderPlan:
    """The splits that an order would name."""

    splits: Sequence[FileSplit] = ()
    released: Sequence[str] = ()
    """Ids of splits that leave the quarantine."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why -> how many ranges that were asked for are not in it."""

    rewound_to: CheckpointRef = NO_CHECKPOINT
    """Or the checkpoint whose splits are given up."""

    rows: int = 0
    """Rows of these splits that readers had acknowledged, where they are given up or read again."""

    data_files: int = 0
    """Data files with these rows."""

    is_batch: bool = False
    """True for a batch that is read again; its source may have splits that are not of files."""

    def __bool__(self) -> bool:
        return bool(self.splits or self.released or self.is_batch)


def plan_requeue(
    view: StateView,
    pattern: str,
    in_state: str,
    in_range: Callable[[str], bool] | None = None,
    *,
    quarantined: bool,
) -> OrderPlan:
    """Quarantined splits, or files as far as they were taken: what of it is not pending anyway.

    Args:
        view: the state.
        pattern: a shell pattern over whole paths; empty: all.
        in_state: as the view `files` has it; empty: any.
        in_range: for a path whether it is wanted; None: all.
        quarantined: only what was given up on.
    """
    # Without a choice everything would be read again, which is not meant by leaving options out.
    if not (pattern or in_state or in_range or quarantined):
        raise OptionError(
            "requeue: no option says which files to read again",
            view.store.location,
            "",
            "--quarantined, --matching, --in-state or --event-time, or several of them",
            "To read all files again, add --matching '*'.",
        )
    if in_state:
        view_named("files").check_state(in_state)
    files = SelectedFiles(view, pattern, in_range)
    if quarantined and not in_state:
        # A version that was found later is read by itself.
        newest = files.newest_versions({s.file.path for s in files.quarantined.values()})
        wanted = [
            split
            for split in files.quarantined.values()
            if newest.get(split.file.path, (split.file, 0))[0] == split.file
            or growing_mark(split.file.etag)
        ]
        return _read_again(files, byte_ranges_of(wanted), released=list(files.quarantined))
    rows = [FileSplit(file, 0, end) for file, end in files.newest_versions().values() if end > 0]
    if in_state:
        states = [in_state, "quarantined"] if quarantined else [in_state]
        # `files` says the state of a file as a whole; orders are about its bytes.
        wanted_files = _in_states(view, states)
        rows = [split for split in rows if split.file in wanted_files]
    return _read_again(files, byte_ranges_of(rows))


def plan_rewind(view: StateView, pattern: str, to: str, to_time: str) -> OrderPlan:
    """All that was assigned after a checkpoint."""
    if bool(to) == bool(to_time):
        raise OptionError(
            "rewind: pass either --to or --to-time",
            view.store.location,
            "both --to and --to-time" if to else "neither --to nor --to-time",
            "one of them: --to 42, or --to-time 2026-11-21T12:00",
            "To list the checkpoints, run: sluice checkpoints",
        )
    ref = checkpoint_named(view, to) if to else checkpoint_as_of(view, "--to-time", to_time)
    files = SelectedFiles(view, pattern)
    if ref not in {link.ref for link in files.chain}:
        found = f"{ref}, which is not on the chain of this query"
        raise no_checkpoint(view, found, "a checkpoint that the query has resumed from")
    assigned = files.assigned_after(ref)
    newest = {split.file.path: split.file for split in assigned}
    # Of a file that was replaced meanwhile only the newest version can be read.
    wanted = [s for s in assigned if growing_mark(s.file.etag) or newest[s.file.path] == s.file]
    chosen = _read_again(files, byte_ranges_of(wanted))
    return OrderPlan(chosen.splits, chosen.released, chosen.left_out, ref)


def replacing(view: StateView, chosen: OrderPlan) -> OrderPlan:
    """Return the files that were chosen, each from its start: with rows of all of it others go."""
    paths = {split.file.path for split in chosen.splits}
    files = SelectedFiles(view, chosen=paths.__contains__)
    newest = files.newest_versions(paths).values()
    splits = [FileSplit(file, 0, end) for file, end in newest if end > 0]
    return replace(chosen, splits=splits, released=sorted({*chosen.released, *files.quarantined}))


def plan_retract(view: StateView, pattern: str) -> OrderPlan:
    """All known files, whatever became of them."""
    if not pattern:
        raise OptionError(
            "retract: no option says which files' rows go",
            view.store.location,
            "",
            "--matching",
            "To remove the rows of all files, add --matching '*'.",
        )
    files = SelectedFiles(view, pattern)
    versions = files.newest_versions()
    gone = [retraction_of(path) for path, (file, _) in versions.items() if not file.is_gone]
    return OrderPlan(gone, list(files.quarantined))


def check_file_column(store: StateStore, command: str) -> None:
    """Check that the table of a query names the file of each row.

    Raises:
        OptionError: at its last start it did not, or it has not started.
    """
    if not recorded_ends(store).file_column:
        raise OptionError(
            f"{command}: the table has no column that names the file of a row",
            store.location,
            "a query without writeFileColumn",
            "direct writes into a table with this column since its first batch",
            "Delete the rows from the table by hand, then run `sluice requeue` without --replace; "
            "or start the query with writeFileColumn=NAME and a new checkpoint into a new table.",
        )


def plan_forget(view: StateView, pattern: str, *, quarantined: bool) -> OrderPlan:
    """Return what is pending, or with `quarantined` what was given up on."""
    if not (pattern or quarantined):
        raise OptionError(
            "forget: no option says which files to discard",
            view.store.location,
            "",
            "--matching, --quarantined, or both",
            "To discard all pending files, add --matching '*'.",
        )
    files = SelectedFiles(view, pattern)
    if not quarantined:
        # A checkpoint that was cut ahead of Spark may never be taken up: then this is pending.
        pending, begun = splits_of(files.pending), splits_of(files.under_way)
        note = {"only if its batch has not begun": len(begun)} if begun else {}
        return OrderPlan([*pending, *begun], left_out=note)
    given_up = files.quarantined
    return OrderPlan(splits_of(byte_ranges_of(given_up.values())), list(given_up))


def plan_waive(
    view: StateView, pattern: str, ref: CheckpointRef | None, options: Mapping[str, Any]
) -> OrderPlan:
    """Choose what a batch under way was to read and cannot: gone or replaced files.

    Args:
        view: the state.
        pattern: a shell pattern over whole paths; empty: all.
        ref: the checkpoint of that batch; None if Spark's log does not have it.
        options: the query's storageOptions.
    """
    link = next((link for link in view.chain() if link.ref == ref), None)
    if link is None or link.checkpoint.header.enumerator != "files":
        raise OptionError(
            "waive: no batch is in flight",
            view.store.location,
            "every batch in Spark's log has finished, or the log is not above this state",
            "a batch that was started and fails, in the query's checkpointLocation",
            "To discard files that are pending and in no batch yet, run: sluice forget",
        )
    is_wanted = path_filter(pattern)
    splits: list[FileSplit] = []
    rows: dict[FileSplit, int] = {}
    for reader in {reader for reader, _ in link.checkpoint.assigned}:
        commit = link.commits.get(reader)
        returned = set(commit.returned_indexes) if commit else set()
        assigned = assigned_to(link.checkpoint, reader, FileSplitSerializer())
        for index, split in enumerate(assigned):
            if index not in returned and is_wanted(split.file.path):
                splits.append(split)
                rows[split] = commit.rows[index] if commit else 0
    lost = unreadable(splits, options)
    return OrderPlan(lost, rewound_to=link.ref, rows=sum(rows[split] for split in lost))


def _read_again(
    files: SelectedFiles, wanted: ByteRanges, released: Sequence[str] = ()
) -> OrderPlan:
    chosen = splits_of(wanted)
    # What is under way is read when the query starts in any case; an order would read it a second
    # time.
    idle = splits_without(chosen, files.under_way)
    left_out = _count("in flight: read when the query starts", chosen, idle)
    splits = splits_without(idle, files.pending)
    left_out |= _count("pending already", idle, splits)
    # What comes back may be given up on by then; it is released all the same.
    covered = [
        each
        for each, split in files.quarantined.items()
        if split.file in wanted and not splits_without([split], wanted)
    ]
    back = [files.quarantined[each] for each in covered]
    pending_again = byte_ranges_of([*splits, *back])
    return OrderPlan(splits_of(pending_again), sorted({*released, *covered}), left_out)


def _count(why: str, chosen: Sequence[FileSplit], left: Sequence[FileSplit]) -> dict[str, int]:
    gone = splits_without(chosen, byte_ranges_of(left))
    return {why: len(gone)} if gone else {}


def _in_states(view: StateView, states: Sequence[str]) -> set[FileVersion]:
    table = files_view(view)
    table = table.filter(pc.is_in(table.column("state"), pa.array(states)))
    modified = pc.fill_null(table.column("modified").cast("int64"), -1)
    columns = [table.column(name) for name in ("path", "size", "modified", "etag")]
    columns[2] = modified
    return set(map(FileVersion, *(column.to_pylist() for column in columns)))


# A batch in flight is given back: what readers have committed, if the sink lacks it ----------

HasBatch = Callable[[str, int, Sequence[str]], bool | None]
"""From a lineage, a checkpoint and data files of the batch; None if it is unknown."""

_LEVELS: Final = 8
"""Directories above a data file in which a table is looked for."""


def sink_of(to: str, storage_options: Mapping[str, Any], *, not_in_sink: bool) -> HasBatch:
    """Return what says whether the sink has a batch.

    Args:
        to: the table, as `run` takes it; empty to look for it around the data files.
        storage_options: of the query.
        not_in_sink: the user has checked it.

    Raises:
        OptionError: `to` is not a table.
    """
    if not_in_sink:
        return lambda *_: False
    if to:
        target = target_of(to, storage_options)
        return lambda lineage, checkpoint, _: target.has_batch(lineage, checkpoint)
    return partial(_found_by_files, storage_options)


def _found_by_files(
    storage_options: Mapping[str, Any], lineage: str, checkpoint: int, paths: Sequence[str]
) -> bool | None:
    for directory in _above(paths[0]) if paths else ():
        with suppress(OptionError):
            table = DeltaSink(directory, storage_options)
            if table.opened() is not None:
                return table.has(lineage, checkpoint)
        manifests = Manifests(f"{directory}/{MANIFESTS}", storage_options)
        if manifests.paths():
            return manifests.has(lineage, checkpoint)
    return None


def _above(path: str) -> Iterator[str]:
    for _ in range(_LEVELS):
        path = path.rpartition("/")[0]
        if not path or path.endswith(":/"):
            return
        yield path


def reread_batch(
    view: StateView, storage_options: Mapping[str, Any], has_batch: HasBatch
) -> OrderPlan:
    """The batch in flight, as far as its readers have committed it.

    Raises:
        OptionError: no batch is in flight, or it is not known whether the sink has it.
        TableError: the sink has it.
    """
    refs = batch_under_way(view.store, view.history, storage_options)
    batch = [link for link in view.chain() if link.ref in refs]
    if not batch:
        raise OptionError(
            "reread: no batch is in flight",
            view.store.location,
            "every batch in Spark's log has finished, or the log is not above this state",
            "a batch that was started and fails, in the query's checkpointLocation",
            "To read files of finished batches again, run: sluice requeue",
        )
    commits = [commit for link in batch for commit in link.commits.values()]
    if not commits:
        return OrderPlan()
    if any(link.counted for link in batch):
        raise OptionError(
            "reread: a part of the batch is counted already",
            view.store.location,
            f"{counted(len(batch), 'checkpoint')} in one batch",
            "a batch of one checkpoint, without asynchronous progress tracking",
            "Start the query with the options of the last run until the batch has finished.",
        )
    newest = batch[0]
    paths = [file.path for commit in commits for file in commit.written_files or ()]
    has = has_batch(newest.checkpoint.header.lineage, newest.ref.checkpoint, paths)
    if has is None:
        raise OptionError(
            "reread: it is not known whether the sink has the batch",
            view.store.location,
            "no Delta table and no manifests around the data files"
            if paths
            else "no data files: all rows were left out, or went to Spark",
            "the table of the query, or a sink that was checked",
            "Add --to delta:URL, iceberg:CATALOG.TABLE or parquet:URL. For any other sink, check "
            "that it does not have the batch, then add --not-in-sink.",
        )
    if has:
        raise TableError(
            "reread: the table has the batch already, so it cannot be given back",
            view.store.location,
            f"{newest.ref} in the table, or a later one",
            "a batch that the table does not have",
            "Start the query again: it finds the batch in the table, and continues after it.",
        )
    splits = [
        split
        for link in batch
        if link.checkpoint.header.enumerator == "files"
        for reader in sorted({reader for reader, _ in link.checkpoint.assigned})
        for split in assigned_to(link.checkpoint, reader, FileSplitSerializer())
    ]
    rows = sum(sum(commit.rows) for commit in commits)
    return OrderPlan(splits, rewound_to=newest.ref, rows=rows, data_files=len(paths), is_batch=True)

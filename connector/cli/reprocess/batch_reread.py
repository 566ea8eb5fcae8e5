"""Gives back the batch in flight: what its readers have committed, if the sink does not have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ....checkpoint_meta.documents.reader_assignment import splits_of
from ....checkpoint_meta.files.file_columns import FileSplitSerializer
from ....errors import OptionError, TableError
from ....tables.delta_table import DeltaSink
from ....tables.manifests import MANIFESTS, Manifests
from ...host.run import target_of
from ...query.spark_checkpoint import batch_under_way
from ...views.amounts import counted
from ...views.state_view import StateView
from .reprocess_plan import OrderPlan

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
        if manifests.files(manifests.opened()):
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
        for split in splits_of(link.checkpoint, reader, FileSplitSerializer())
    ]
    rows = sum(sum(commit.rows) for commit in commits)
    return OrderPlan(splits, rewound_to=newest.ref, rows=rows, data_files=len(paths), is_batch=True)

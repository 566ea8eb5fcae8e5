"""The one rule by which a sink adds a batch: it follows the query's newest batch in the table.

The table's newest batch of the query has to be the newest one with data files on the batch's own
chain of checkpoints. If it is the batch itself, the batch is in the table. Otherwise the checkpoint
or the table was restored, and the query ends with an error that says which one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..checkpoint_meta.documents.batch_mark import BatchMark
from ..checkpoint_meta.documents.written_file import FileName
from ..errors import TableError
from .written_batch import WrittenBatch, digest_of


@dataclass(frozen=True)
class TableMark:
    """The newest batch of a query in a table."""

    batch: BatchMark
    digest: str
    """`digest_of` its files, or the first digits of it."""


def mark_by_files(paths: Iterable[str], lineage: str) -> TableMark | None:
    """The newest batch of a query by the names of a table's files; None if none is of the query.

    For a table that has lost its mark. A batch whose files were rewritten cannot be seen.
    """
    batches: dict[BatchMark, list[str]] = {}
    for path in paths:
        name = FileName.parse(path)
        if name is not None and name.checkpoint.lineage == lineage:
            batches.setdefault(BatchMark.of(name.checkpoint), []).append(path)
    newest = max(batches, key=lambda mark: mark.checkpoint, default=None)
    return None if newest is None else TableMark(newest, digest_of(batches[newest]))


def has_batch(newest: TableMark | None, batch: WrittenBatch, table: str) -> bool:
    """True if the table has the batch, False if it has to be added; `newest` as the table says.

    Raises:
        TableError: the table is ahead of the checkpoint, or behind it.
    """
    previous = batch.previous
    if newest is None:
        # Without digits: no batch that is retained had files, so there may have been none.
        if previous.checksum:
            raise _behind("no batch of the query", batch, table)
        return False
    is_there = newest.batch == batch.mark
    if is_there and batch.digest.startswith(newest.digest):
        return True
    is_unknown = not previous.checksum and newest.batch.checkpoint <= previous.checkpoint
    if newest.batch == previous or (is_unknown and previous.checkpoint):
        return False
    others = ", with other files" if is_there else ""
    state = f"checkpoint {newest.batch} as the query's newest batch{others}"
    if newest.batch.checkpoint < previous.checkpoint:
        raise _behind(state, batch, table)
    raise TableError(
        "the table is ahead of the checkpoint: it has batches that the checkpoint does not have",
        table,
        state,
        _expected(batch),
        "The checkpoint was restored, or two queries share its state. If the right checkpoint is "
        "still there, start the query with it. Otherwise 'sluice remove-batches CHECKPOINT TABLE' "
        "removes these batches from the table, and the query reads their input files again.",
    )


def _behind(state: str, batch: WrittenBatch, table: str) -> TableError:
    return TableError(
        "the table is behind the checkpoint: it lacks batches that the checkpoint has",
        table,
        state,
        _expected(batch),
        "The table was restored or created again, or it is another table. 'sluice add-batches "
        "CHECKPOINT TABLE' adds the missing batches if their data files are still there. Otherwise "
        "'sluice fork CHECKPOINT NEW_CHECKPOINT --at-table TABLE' makes a checkpoint that "
        "continues after the newest batch of the table. If this table is to get the new rows only, "
        "add --new-table.",
    )


def _expected(batch: WrittenBatch) -> str:
    if not batch.previous.checkpoint:
        return f"no batch of query {batch.lineage} yet"
    up_to = "" if batch.previous.checksum else ", or an earlier one"
    return f"checkpoint {batch.previous}{up_to}, the one before this batch of query {batch.lineage}"

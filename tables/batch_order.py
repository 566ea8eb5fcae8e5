"""The one rule by which a sink adds a batch: it follows the query's newest batch in the table.

The table's newest batch of the query has to be the newest one with data files on the batch's own
chain of checkpoints. If it is the batch itself, the batch is in the table. Otherwise the checkpoint
or the table was restored, and the query ends with an error that says which one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, TableInput
from ..checkpoint_meta.documents.written_file import FileName
from ..errors import TableError
from .written_batch import WrittenBatch, digest_of


@dataclass(frozen=True)
class TableMark:
    """The newest batch of a query in a table."""

    batch: BatchMark
    digest: str
    """`digest_of` its files, or the first digits of it."""

    is_by_files: bool = False
    """True if only the names of its files say so: what was removed with them does not count."""

    has_removals: bool = False
    """True if its commit also took rows of earlier batches out; said of batches in a history."""

    takes_back: bool = False
    """True if its commit took later batches out, and added nothing; likewise."""

    is_certain: bool = True
    """False if later batches may be in files that others have written."""


def mark_by_files(paths: Iterable[str], lineage: str) -> TableMark | None:
    """The newest batch of a query by the names of a table's files; None if none is of the query.

    For a table that has lost its mark. A batch whose files were rewritten cannot be seen, so the
    mark is not certain if some files are not of a query.
    """
    batches: dict[BatchMark, list[str]] = {}
    is_certain = True
    for path in paths:
        name = FileName.parse(path)
        is_certain &= name is not None
        if name is not None and name.checkpoint.lineage == lineage:
            batches.setdefault(BatchMark.of(name.checkpoint), []).append(path)
    newest = max(batches, key=lambda mark: mark.checkpoint, default=NO_BATCH)
    if newest == NO_BATCH and is_certain:
        return None
    digest = digest_of(batches.get(newest, ()))
    return TableMark(newest, digest, is_by_files=True, is_certain=is_certain)


def inputs_by_files(
    paths: Iterable[str], known: Collection[str]
) -> Iterator[tuple[str, TableInput]]:
    """Queries with files in a table, and without a mark, as in a clone: their inputs are not known.

    `known` are the lineages of those with a mark.
    """
    names = map(FileName.parse, paths)
    lineages = {name.checkpoint.lineage for name in names if name is not None}
    return ((lineage, TableInput()) for lineage in sorted(lineages.difference(known)))


def batches_in(
    marks: Iterable[tuple[TableMark, Sequence[str]]],
) -> Iterator[tuple[TableMark, Sequence[str]]]:
    """The batches that a table has by the marks of its commits, each with the files it added.

    Both the newest first.
    """
    last: BatchMark | None = None
    for mark, files in marks:
        if last is not None and mark.batch != last:
            continue
        if not mark.takes_back:
            yield mark, files
        elif mark.batch == NO_BATCH:
            return
        last = mark.batch if mark.takes_back else None


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
    is_there = newest.batch == batch.mark != NO_BATCH
    if is_there and batch.digest.startswith(newest.digest):
        return True
    if is_there and newest.is_by_files and batch.digest_of_files.startswith(newest.digest):
        return True
    is_unknown = not previous.checksum and newest.batch.checkpoint <= previous.checkpoint
    if newest.batch == previous or (is_unknown and previous.checkpoint):
        return False
    if not newest.is_certain:
        raise not_known(table, _expected(batch))
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
        "removes these batches from the table, and the query reads their input files again, "
        "which must still be there (cleanSource may have removed them).",
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


def continued(table: str, lineage: str, fork: str, state: str) -> TableError:
    """A fork of the query has written into the table, and reads what this one would read."""
    return TableError(
        "the query is continued by another one: a fork of it writes into the table",
        table,
        f"batches of query {fork}" + f", whose state is {state}" * bool(state),
        f"no batch of a fork after the newest one of query {lineage}",
        "Start the fork with its checkpoint: it reads what is new. If that checkpoint is lost, "
        "restore table and checkpoint from backups of the same moment, from before the fork. If "
        "both are to write into the table, since they read different files, start once with "
        "--new-table (in Spark: `sluice rebind` with the checkpoint).",
    )


def not_known(table: str, expected: str) -> TableError:
    """The mark of a query is gone, and so are files that would prove a batch."""
    return TableError(
        "it is not known which batches of the query the table has",
        table,
        "no mark of the query, and data files by others: a compaction may have rewritten its rows",
        expected,
        "Compare the rows of the table with those of the input. If the table has them all, start "
        "once with --new-table (in Spark: `sluice rebind` with the checkpoint). Otherwise restore "
        "table and checkpoint from backups of the same moment.",
    )


def not_retained(table: str, found: str) -> TableError:
    """The table's history does not go back to the batches that a command is about."""
    return TableError(
        "the history of the table does not go back to the newest batch that it shares with the "
        "checkpoint",
        table,
        found,
        "the commits of all later batches",
        "Restore table and checkpoint from backups of the same moment, or start a query with a new "
        "checkpoint that writes into a new table.",
    )


def _expected(batch: WrittenBatch) -> str:
    if not batch.previous.checkpoint:
        return f"no batch of query {batch.lineage} yet"
    up_to = "" if batch.previous.checksum else ", or an earlier one"
    return f"checkpoint {batch.previous}{up_to}, the one before this batch of query {batch.lineage}"

"""The commands that make a table and a checkpoint agree after one of them was restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..answer import Answer
from ..arguments import EditArguments
from ..state_argument import parsed_storage_options

if TYPE_CHECKING:
    from ....checkpoint_meta.documents.batch_mark import BatchMark
    from ....checkpoint_meta.documents.written_file import WrittenFile
    from ....checkpoint_meta.stores.contract import StateStore
    from ....tables.table_sink import TableSink
    from ..offline_edit import Plan

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="Use this table, as --to names it: delta:URL, iceberg:CATALOG.TABLE."
    ),
]


def add_batches(arguments: EditArguments, table: TableArgument) -> Answer:
    """Add the batches that a restored table lacks.

    Their data files must still be there. Reads no input.
    """
    return _edit(arguments, table, _Comparison.addition)


def remove_batches(arguments: EditArguments, table: TableArgument) -> Answer:
    """Remove batches that a restored checkpoint lacks.

    The next run reads their input files again, so these must still be there.
    """
    return _edit(arguments, table, _Comparison.removal)


def _edit(arguments: EditArguments, table: str, decide: Any) -> Answer:
    from ..offline_edit import edit

    storage = parsed_storage_options(arguments.storage_options)
    return edit(arguments, lambda store: decide(_Comparison.of(store, table, storage)))


def checkpoint_of_table(store: StateStore, table: str, storage: Mapping[str, Any]) -> str:
    """The checkpoint of the newest batch of a query in a table, as `--at` names it.

    Raises:
        OptionError: the state does not have that checkpoint.
    """
    from ....errors import OptionError

    comparison = _Comparison.of(store, table, storage)
    newest = comparison.newest
    for mark, _ in comparison.batches:
        if mark == newest:
            return str(mark.checkpoint)
    raise OptionError(
        "--at-table: the state does not have the table's newest batch",
        table,
        f"checkpoint {newest}" if newest else "no batch of this query",
        "a batch of one of the retained checkpoints: "
        + ", ".join(str(mark) for mark, _ in comparison.batches[:5]),
        "If table and checkpoint were restored to different histories, 'sluice remove-batches "
        "CHECKPOINT TABLE' removes that batch first. For a table without a batch of the query, "
        "start a query with a new checkpointLocation, which reads all files.",
    )


@dataclass(frozen=True)
class _Comparison:
    """The batches of a query's checkpoint, and those of its table."""

    sink: TableSink
    opened: Any
    table: str
    lineage: str
    batches: Sequence[tuple[BatchMark, Sequence[WrittenFile]]]
    """Batches of the checkpoint, the newest first; the last may be a mark without files."""

    storage: Mapping[str, Any]
    is_seeded: bool
    """The query began with the state of another one."""

    @classmethod
    def of(cls, store: StateStore, table: str, storage: Mapping[str, Any]) -> _Comparison:
        from ....checkpoint_meta.documents.bootstrap_record import find_seed
        from ....checkpoint_meta.written_batches import written_batches
        from ....tables.table_sink import TableSink
        from ...host.run import target_of
        from ...views.state_view import StateView

        sink = target_of(table, storage).sink
        assert isinstance(sink, TableSink)
        view = StateView(store)
        lineage = view.history.load(view.head).identity.lineage
        batches = list(written_batches(view.history, view.commits, view.head))
        is_seeded = find_seed(store) is not None
        return cls(sink, sink.opened(), table, lineage, batches, storage, is_seeded)

    @property
    def newest(self) -> BatchMark | None:
        """The query's newest batch in the table.

        Raises:
            TableError: that is not known.
        """
        from ....tables.batch_order import not_known

        mark = self.sink.newest(self.opened, self.lineage)
        if mark is not None and not mark.is_certain:
            raise not_known(self.table, "a mark, or only data files of queries")
        return None if mark is None else mark.batch

    def addition(self) -> Plan:
        """Plan to add the batches after the table's newest one."""
        from ....checkpoint_meta.documents.batch_mark import NO_BATCH

        newest = self.newest or NO_BATCH
        if newest == NO_BATCH and self.is_seeded:
            # Rows of the query that it continues may be missing as well, and nothing says which.
            raise self._apart(newest, "a batch of this query, which began as a fork or an import")
        missing = []
        for mark, files in self.batches:
            if mark == newest:
                break
            if not mark.checksum or mark.checkpoint <= newest.checkpoint:
                raise self._apart(newest, "the table's newest batch, or none, on the chain")
            missing.append((mark, files))

        def write() -> None:
            previous = newest
            # One transaction a batch: a crash leaves the table behind by fewer batches.
            for mark, files in reversed(missing):
                pairs = [(file, mark) for file in files]
                self.sink.add(_batch(pairs, self.lineage, previous, self.storage))
                previous = mark

        rows = sum(file.rows for _, files in missing for file in files)
        count = sum(len(files) for _, files in missing)
        return self._plan("added", [mark for mark, _ in missing], count, rows, write)

    def removal(self) -> Plan:
        """Plan to remove the batches after the newest one that the checkpoint has, too."""
        from ....checkpoint_meta.documents.batch_mark import NO_BATCH
        from ....checkpoint_meta.documents.written_file import FileName
        from ....tables.batch_order import TableMark
        from ....tables.iceberg_files import written_name
        from ....tables.written_batch import digest_of

        own = {mark: digest_of(file.path for file in files) for mark, files in self.batches}
        oldest = max((mark.checkpoint for mark in own if not mark.checksum), default=0)
        left, others, names = TableMark(NO_BATCH, ""), [], []
        for mark, added in self.sink.batches(self.opened, self.lineage):
            # A batch that was planned before the backup may have been read again since.
            is_own = own.get(mark.batch, "").startswith(mark.digest) and mark.batch in own
            if is_own or mark.batch.checkpoint <= oldest:
                left = mark
                break
            others.append(mark.batch)
            names += [written_name(name) for name in added]
        live = {written_name(path): path for path in self.sink.files(self.opened)}
        # Rows of a file that was rewritten would stay, and be read again.
        if any(name not in live or FileName.parse(name) is None for name in names):
            raise self._apart(others[0], "the data files of these batches, as the query wrote them")

        def write() -> None:
            paths = [live[name] for name in names]
            self.sink.remove(self.opened, paths, self.lineage, left)

        return self._plan("removed", others, len(names), None, write)

    def _apart(self, newest: BatchMark, expected: str) -> Exception:
        from ....errors import TableError

        return TableError(
            "table and checkpoint cannot be brought together batch by batch",
            self.table,
            f"checkpoint {newest} as the query's newest batch",
            expected,
            "Restore the table and the checkpoint from backups of the same moment, or start a "
            "query with a new checkpoint that writes into a new table.",
        )

    def _plan(
        self, verb: str, marks: Sequence[BatchMark], files: int, rows: int | None, write: Any
    ) -> Plan:
        from ..offline_edit import Plan

        report: dict[str, Any] = {
            "table": self.table,
            "batches": [str(m) for m in marks],
            "files": files,
        }
        report |= {} if rows is None else {"rows": rows}
        return Plan(report, write if marks else None, done=f"the batches are {verb}")


def _batch(
    files: Sequence[Any], lineage: str, previous: BatchMark, storage: Mapping[str, Any]
) -> Any:
    from ....tables.written_batch import WrittenBatch

    return WrittenBatch.of_files(files, lineage, previous, storage)

"""Bugs around a table, the embedded host, forks and the budgets of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents import reader_assignment
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.connector.host.batch_log import BatchLoop
from pyspark_sluice.connector.host.embedded_query import BatchReport
from pyspark_sluice.connector.query import partitions
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.reader import task
from pyspark_sluice.tables import table_sink
from pyspark_sluice.tables.batch_order import TableMark
from pyspark_sluice.tables.written_batch import WrittenBatch

from . import hosted_query
from .simulated_table import SimulatedTable


def _is_older(newest: TableMark | None, batch: WrittenBatch, _: str) -> bool:
    return newest is not None and newest.batch.checkpoint >= batch.mark.checkpoint


class MarkIsANumber(Coordinator[Any, Any]):
    """Takes a batch for one that is in the table if its number is not greater than the mark's."""

    patches = ((table_sink, "has_batch", _is_older),)


class LooksWithFilesOnly(Coordinator[Any, Any]):
    """Does not compare table and checkpoint at a start, nor for a batch without files."""

    class Table(SimulatedTable):
        @override
        def add(self, batch: WrittenBatch) -> None:
            if batch.files:
                super().add(batch)

        @override
        def look(self, *_: Any) -> None:
            """Nothing."""


class AddsAgainAfterAConflict(Coordinator[Any, Any]):
    """Repeats a commit whose answer was lost, without another look."""

    class Table(SimulatedTable):
        @override
        def _commit(self, table: Sequence[Any], batch: WrittenBatch) -> None:
            try:
                super()._commit(table, batch)
            except self._conflicts():
                super()._commit(self.opened(), batch)


class CommitsBeforeTheSink(Coordinator[Any, Any]):
    """Writes commits/N before the table has batch N."""

    class Host(hosted_query.Host):
        @override
        def _read(self, parts: Sequence[Any]) -> Any:
            rows = super()._read(parts)
            self._loop.end()
            return rows

        @override
        def next_batch(self) -> BatchReport | None:
            self._loop.__class__ = _EndsOnce
            return super().next_batch()


class _EndsOnce(BatchLoop):
    @override
    def end(self) -> None:
        if self.log.committed < self.log.newest:
            super().end()


class CompleteByReaders(Coordinator[Any, Any]):
    """Takes a checkpoint for complete in a fork when its readers have committed."""

    @staticmethod
    def chosen(view: Any, chain: Sequence[Any], *_: str) -> Any:
        return next(link.ref for link in chain if link.is_read)

    @staticmethod
    def savepoint(store: Any, ref: Any, _: Any, **__: Any) -> StartingState:
        return StartingState(store, ref)


class ForksAfterTheHead(Coordinator[Any, Any]):
    """A fork begins after the newest checkpoint: what no task has read counts as abandoned."""

    @staticmethod
    def chosen(view: Any, *_: Any) -> Any:
        return view.head

    @staticmethod
    def savepoint(store: Any, ref: Any, _: Any, **__: Any) -> StartingState:
        return StartingState(store, ref, ref.checkpoint)


class SweepsByNumber(Coordinator[Any, Any]):
    """Takes data files of another history for those of this one: numbers alone count."""

    @staticmethod
    def sweep(place: Any, store: Any, checkpoints: Sequence[Any], **_: Any) -> None:
        commits, known = ReaderCommits(store), {each.ref: each for each in checkpoints}
        for path in place.files():
            name = FileName.parse(path)
            assert name is not None
            checkpoint = known.get(name.checkpoint.ref)
            commit = commits.find(checkpoint, name.reader) if checkpoint is not None else None
            if commit is not None and path not in commit.written:
                place.delete(path)


def _first(*arguments: Any) -> list[Any]:
    return _RESOLVED(*arguments)[:1]


_RESOLVED: Callable[..., list[Any]] = reader_assignment.resolved


class ContinuesTheFirstSplit(Coordinator[Any, Any]):
    """A continuation of a whole part is resolved to its first split."""

    patches = ((task, "resolved", _first), (reader_assignment, "resolved", _first))


class ForgetsBudgets(Coordinator[Any, Any]):
    """Parts go to tasks without their budgets."""

    patches = ((partitions, "budget_of", lambda *_: None),)

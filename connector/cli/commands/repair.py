"""The commands that let a query start again: take-over, rebind, take-back-schema.

And those that make a table and a checkpoint agree after one of them was restored: add-batches and
remove-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

from ....checkpoint_meta.checkpoint_snapshot import BatchFiles, forked_from, written_batches
from ....checkpoint_meta.documents.batch_mark import (
    NO_BATCH,
    BatchMark,
    BatchOrigin,
    Forked,
    TableInput,
)
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.query_records import (
    SchemaHistory,
    StoredSchema,
    find_seed,
    recorded_ends,
)
from ....checkpoint_meta.documents.written_file import FileName
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import OptionError, StateError, TableError
from ....tables.batch_order import TableMark, not_known
from ....tables.iceberg_files import written_name
from ....tables.table_sink import TableSink
from ....tables.written_batch import WrittenBatch, digest_of
from ...host.run import target_of
from ...query import owner, start_check
from ...views.amounts import counted
from ...views.state_view import StateView
from ..answer import Answer
from ..arguments import EditArguments, ViewArguments, Yes, argument, parsed_storage_options
from ..offline_edit import Plan, carry_out, edit


def take_back_plan(store: StateStore) -> Plan:
    """Plan a new version of the schema that equals the one before the newest change.

    Raises:
        OptionError: there is no earlier schema.
    """
    history = SchemaHistory(store)
    versions = history.all()
    # Versions are only added, so a schema that was taken back is there twice: its first occurrence
    # says what it was a change of.
    first = next((at for at, one in enumerate(versions) if one.struct == versions[-1].struct), 0)
    if first == 0:
        raise OptionError(
            "there is no schema to go back to",
            store.location,
            counted(len(versions), "stored version"),
            "an inferred schema that has changed",
            "List the versions with sluice files STATE --view schemas.",
        )
    newest, earlier = versions[-1], versions[first - 1]
    before, after = _columns(newest), _columns(earlier)
    report = {
        "state": store.location,
        "version": newest.version,
        "reason": newest.reason,
        "takes_back_to": earlier.version,
        "removes": sorted(set(before) - set(after)),
        "restores": sorted(
            f"{name} {kind}" for name, kind in after.items() if before.get(name) != kind
        ),
    }

    def change(current: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if current != newest:
            raise OptionError(
                "the schema has changed since it was looked at",
                store.location,
                f"version {current.version if current else 'none'}",
                f"version {newest.version}",
                "Stop the query, then repeat the command.",
            )
        return earlier.struct, f"took back version {newest.version}"

    return Plan(report, lambda: {"new_version": history.grow(change).version})


def _columns(stored: StoredSchema) -> dict[str, str]:
    """Column names and their types as text, in Spark's JSON."""
    return {
        field["name"]: field["type"] if isinstance(field["type"], str) else str(field["type"])
        for field in stored.struct["fields"]
    }


def take_back_schema(arguments: EditArguments) -> Answer:
    """Take back the newest version of an inferred schema.

    The next start uses the version before it; the stored versions stay.
    """
    return edit(arguments, take_back_plan)


def take_over(arguments: ViewArguments, yes: Yes = False) -> Answer:
    """Supersede the query that owns a state.

    It ends with FencedError, and the next start need not wait for it.
    """
    store = arguments.opened()

    def decide() -> Plan:
        # A claim that belongs to no query.
        report = {"state": store.location, "owner": str(owner.owner_of(store))}
        return Plan(report, lambda: {"epoch": owner.take_over(store)})

    return carry_out(decide, yes=yes)


def rebind(arguments: EditArguments) -> Answer:
    """Forget the input and table; the next start sets them.

    It records those that it finds. A query that has not begun may write into a table that has its
    input. `sluice run` has flags for that.
    """
    return edit(arguments, _plan, may_begin=True)


def _plan(store: StateStore) -> Plan:
    ends = recorded_ends(store)
    report = {"state": store.location, "input": list(ends.input), "table": ends.table}
    terms = start_check.StartTerms(new_input=True, new_table=True)
    return Plan(report, None if ends.any_table else lambda: start_check.rebind(store, terms))


# A table and a checkpoint of which one was restored ------------------------------------------

_AGAIN = (
    "the next run reads the input files of these batches again: put those back first that were "
    "deleted or archived meanwhile, also by cleanSource, or their rows are lost"
)

TableArgument = Annotated[
    str, argument("TABLE", "Use this table, as --to names it: delta:URL, iceberg:CATALOG.TABLE.")
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
    storage = parsed_storage_options(arguments.storage_options)
    return edit(arguments, lambda store: decide(_Comparison.of(store, table, storage)))


def checkpoint_of_table(
    store: StateStore, table: str, storage: Mapping[str, Any]
) -> tuple[StateStore, str]:
    """The checkpoint of the newest batch of a query in a table, as `--at` names it, and its state.

    That is another state if the query is a fork, and the table was restored to a time before it.

    Raises:
        OptionError: the state does not have that checkpoint.
    """
    comparison = _Comparison.of(store, table, storage)
    newest = comparison.newest
    while newest is None and comparison.forked is not None and comparison.forked.reads.state:
        comparison = comparison.forked
        newest = comparison.newest
    for batch in comparison.batches:
        if batch.mark == newest:
            return open_store(comparison.reads.state, storage), str(newest.checkpoint)
    remedy = (
        "If table and checkpoint were restored to different histories, 'sluice remove-batches "
        "CHECKPOINT TABLE' removes that batch first."
        if newest
        else "Start a query with a new checkpointLocation, which reads all files; or, for a fork, "
        "restore table and checkpoint from backups of the same moment."
    )
    raise OptionError(
        "--at-table: the state does not have the table's newest batch",
        table,
        f"checkpoint {newest}" if newest else "no batch of this query",
        "a batch of one of the retained checkpoints: "
        + ", ".join(str(batch.mark) for batch in comparison.batches[:5]),
        remedy,
    )


@dataclass(frozen=True)
class _Comparison:
    """The batches of a query's checkpoint, and those of its table."""

    sink: TableSink
    opened: Any
    table: str
    storage: Mapping[str, Any]
    lineage: str
    batches: Sequence[BatchFiles]
    """Batches of the checkpoint, the newest first; the last may be a mark alone."""

    reads: TableInput
    forked: _Comparison | None
    """The query that this one continues in the same table, up to there."""

    continues: Forked | None
    """The same query, as the state of this one has recorded it."""

    @classmethod
    def of(cls, store: StateStore, table: str, storage: Mapping[str, Any]) -> _Comparison:
        sink = target_of(table, storage).sink
        assert isinstance(sink, TableSink)
        view = StateView(store)
        nothing = cls(sink, sink.opened(), table, storage, "", (), TableInput(), None, None)
        comparison = nothing.up_to(view, view.head)
        sink.check_end(comparison.opened, comparison.lineage)
        return comparison

    def up_to(self, view: StateView, ref: CheckpointRef) -> _Comparison:
        """The same of a query up to a checkpoint."""
        seed, forked = find_seed(view.store), forked_from(view.store)
        before = None
        if seed is not None and (forked is None or forked.table == self.sink.identity()):
            before = self._before(forked)
        return replace(
            self,
            lineage=view.history.header(ref).lineage,
            batches=list(written_batches(view.history, view.commits, ref)),
            reads=TableInput(recorded_ends(view.store).input, view.store.location),
            forked=before,
            continues=forked,
        )

    def _before(self, forked: Forked | None) -> _Comparison:
        if forked is None:
            # Rows of the query that it continues may be missing as well, and nothing says which.
            return replace(self, batches=[BatchFiles(BatchMark(1))])
        with suppress(StateError, FileNotFoundError):
            view = StateView(open_store(forked.state, self.storage))
            ref = CheckpointRef(forked.checkpoint, forked.epoch)
            # Another state may be there by now.
            if view.history.header(ref).lineage == forked.lineage:
                return self.up_to(view, ref)
        # Whether the table has its newest batch is known without that state.
        mark = BatchMark.parse(forked.batch)
        batches = (
            [] if mark == NO_BATCH else [BatchFiles(mark), BatchFiles(BatchMark(mark.checkpoint))]
        )
        return replace(self, lineage=forked.lineage, batches=batches)

    @property
    def newest(self) -> BatchMark | None:
        """The query's newest batch in the table.

        Raises:
            TableError: that is not known.
        """
        mark = self.sink.newest(self.opened, self.lineage)
        if mark is not None and not mark.is_certain:
            raise not_known(self.table, "a mark, or only data files of queries")
        return None if mark is None else mark.batch

    def addition(self) -> Plan:
        """Plan to add the batches after the table's newest one."""
        missing = list(self.missing())

        def write() -> None:
            # One transaction a batch: a crash leaves the table behind by fewer batches.
            for batch in reversed(missing):
                try:
                    self.sink.add(batch)
                except TableError as error:
                    # The remedies for a batch in flight are none for one that has finished.
                    raise self._not_added(error) from error

        rows = sum(file.rows for batch in missing for file in batch.files)
        count = sum(len(batch.files) for batch in missing)
        return self._plan("added", [batch.mark for batch in missing], count, rows, write)

    def _not_added(self, error: TableError) -> TableError:
        original = error.__cause__ if isinstance(error.__cause__, TableError) else error
        what, where, found, expected, remedy = original.args
        more = (
            f"Or run `sluice fork CHECKPOINT NEW_CHECKPOINT --at-table {self.table} --yes`, and "
            "start the query with the new checkpoint: it reads the input files of these batches "
            "again."
        )
        return TableError(what, where, found, expected, f"{remedy} {more}".strip())

    def missing(self) -> Iterator[WrittenBatch]:
        """Yield the batches after the table's newest one, newest first."""
        newest = self.newest or NO_BATCH
        for batch, before in pairwise([*self.batches, BatchFiles(NO_BATCH)]):
            mark = batch.mark
            if mark == newest:
                return
            if batch.is_mark or mark.checkpoint <= newest.checkpoint:
                raise self._apart(newest, "the table's newest batch, or none, on the chain")
            files = [(file, mark) for file in batch.files]
            removals = [(removal, mark) for removal in batch.removals]
            forked = self.continues if before.mark == NO_BATCH else None
            origin = BatchOrigin(before.mark, self.reads, forked)
            yield WrittenBatch.of_files(files, self.lineage, origin, self.storage, removals)
        if newest == NO_BATCH and self.forked is not None:
            yield from self.forked.missing()

    def removal(self) -> Plan:
        """Plan to remove the batches after the newest one that the checkpoint has, too."""
        if not self.batches and self.newest is None and self.forked is not None:
            return self.forked.removal()

        own = {
            batch.mark: ""
            if batch.is_mark
            else digest_of((file.path for file in batch.files), batch.removals)
            for batch in self.batches
        }
        oldest = max((mark.checkpoint for mark in own if not mark.checksum), default=0)
        left, others, names = TableMark(NO_BATCH, ""), [], []
        for mark, added in self.sink.batches(self.opened, self.lineage):
            # A batch that was planned before the backup may have been read again since.
            digest = own.get(mark.batch)
            is_own = digest is not None and (not digest or digest.startswith(mark.digest))
            if is_own or mark.batch.checkpoint <= oldest:
                left = mark
                break
            if mark.has_removals:
                raise self._apart(mark.batch, "batches that removed no rows of earlier ones")
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

        report: dict[str, Any] = {
            "table": self.table,
            "batches": [str(m) for m in marks],
            "files": files,
        }
        report |= {} if rows is None else {"rows": rows}
        notes = [_AGAIN] if marks and verb == "removed" else []
        return Plan(report, write if marks else None, notes, done=f"the batches are {verb}")

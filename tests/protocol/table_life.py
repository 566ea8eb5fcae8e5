"""A query of the embedded host and its table, which people restore apart, and put right again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from typing_extensions import override

from pyspark_sluice.checkpoint_meta.checkpoint_snapshot import newest_written
from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.batch_mark import NO_BATCH
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.orders import Orders
from pyspark_sluice.connector.cli.arguments import checkpoint_named
from pyspark_sluice.connector.cli.bootstrap.fork import Fork, _chosen
from pyspark_sluice.connector.cli.bootstrap.new_state import Target, write_seed
from pyspark_sluice.connector.cli.commands.reprocess import _order
from pyspark_sluice.connector.cli.reprocess.reprocess_plan import reread_batch
from pyspark_sluice.connector.query import spark_checkpoint
from pyspark_sluice.connector.query.spark_checkpoint import savepoint_at
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.enumerator.offline.offline_state import OfflineState, state_after
from pyspark_sluice.errors import OptionError, SluiceError, StateError, TableError

from .hosted_query import HostedQuery, comparison
from .plans import Plan
from .query_life import Backup, QueryLife
from .rows import RowSource
from .scheduler import Process, Thread
from .shared_directory import Client, Directory, Weather
from .simulated_table import REFUSED, SimulatedTable, Table
from .spark_query import Query

PARTS = ("checkpoint", "table", "log of the table", "both")
"""What is restored from a backup."""

APART = (
    "ahead of the checkpoint", "behind the checkpoint", "cannot be brought together",
    "data files of a batch are missing",
)  # fmt: skip
"""In errors of a table and a checkpoint of different moments."""


class TableLife(QueryLife):
    """One query's life, on either host."""

    sink: Any
    """A `Table` where the host is the embedded one."""

    def __init__(self, plan: Plan, *more: Any) -> None:
        self.is_hosted = bool(plan.setting.get("host"))
        super().__init__(plan, *more)
        self.backups: list[Backup] = []
        self.is_apart = False
        """Table and checkpoint were restored apart."""
        self.mended = 0
        """Times in a row that people have put them right."""
        if self.is_hosted:
            self.sink = Table()

    @override
    def _new_query(self, *arguments: Any) -> Query:
        return (HostedQuery if self.is_hosted else Query)(*arguments)

    @override
    def _new_directories(self) -> list[Directory]:
        directories = super()._new_directories()
        for directory in directories if self.is_hosted else ():
            directory.above = Directory(directory.location)
            directory.location += "/sluice/rows"
        return directories

    def make_table(self, process: Process) -> SimulatedTable:
        """The table as a process sees it."""
        kind = getattr(self.make_coordinator, "Table", SimulatedTable)
        return kind(self.sink, process, self.scheduler, self.weather)

    @override
    def _is_seen_to(self, query: Query, text: str) -> bool:
        if REFUSED in text and query is self.query and self.scheduler.random.random() < 0.5:
            # What its readers have committed, the table does not have.
            self._leave(goes_on=False)
            self._fork(at_table=False)
        if not (self.is_hosted and self.is_apart and any(words in text for words in APART)):
            return super()._is_seen_to(query, text)
        if query is self.query:
            self._mend(text)
        return True

    # Restores ---------------------------------------------------------------------------------

    def _back_up_both(self) -> None:
        assert self.directories[0].above is not None
        # Without a batch there is nothing to restore.
        if any(name.startswith("commits/") for name in self.directories[0].above.objects):
            self.backups.append(self._copy())

    def _restore_apart(self, how: float) -> None:
        if self.backups:
            backup = self.backups[int(how * 1000) % len(self.backups)]
            self._leave(goes_on=False)
            self._restore(PARTS[int(how * 100) % len(PARTS)], backup)
            self._start()

    def _restore(self, what: str, backup: Backup) -> None:
        self.count(f"restored: {what}")
        self.is_apart, self.disturbed_at = True, self.scheduler.now
        if what in ("checkpoint", "both"):
            self._restored(backup, sink=False)
            self.remembers = False
        if what != "checkpoint":
            table, older = self.sink, backup.sink.copy()
            is_whole = what != "log of the table"
            # With the log alone, the data files of later batches stay.
            if is_whole or not table.data.keys() >= set(older.live()):
                table.data = older.data
            table.commits = older.commits

    def _mend(self, text: str) -> None:
        """Carry out what the error says."""
        self.mended += 1
        if self.mended > 4:
            self.found(f"a remedy does not help: {text}")
            return
        self._leave(goes_on=False)
        if "ahead of the checkpoint" in text:
            self._command("remove-batches", lambda: self._plan_of("removal"))
        elif "behind the checkpoint" in text:
            failed = self._command("add-batches", lambda: self._plan_of("addition"))
            if failed is not None and "cannot be brought together" not in str(failed):
                self._fork(at_table=True)
        elif self._command("reread", self._reread) is not None:
            self._restore("both", self.backups[-1])

    def _plan_of(self, change: str) -> None:
        process = Process("command")
        store = Client(self.directories[0], process, self.scheduler, self.weather).retrying()
        plan = getattr(comparison(store, self.make_table(process)), change)()
        if plan.write is not None:
            plan.write()

    def _reread(self) -> None:
        """As `sluice reread` does it."""
        process = Process("command")
        store = Client(self.directories[0], process, self.scheduler, self.weather).retrying()
        sink, view = self.make_table(process), StateView(store)
        # No URL leads to the simulated log.
        with mock.patch.object(
            spark_checkpoint, "open_store", lambda root, _: store.neighbour(root)
        ):
            chosen = reread_batch(view, {}, lambda lineage, at, _: sink.has(lineage, at))
        if chosen:
            order = _order(cast("Any", SimpleNamespace(reason="")), "reread", view, chosen, "")
            Orders(store).publish(order, view.orders_done)

    def _command(self, name: str, run: Callable[[], None]) -> SluiceError | None:
        """Run a command to its end; its error, after which both are restored if it says so."""
        failed: list[SluiceError] = []

        def command() -> None:
            try:
                run()
            except SluiceError as error:
                failed.append(error)

        process = Process(name)
        Thread(command, name, process=process).start()
        while process.threads:
            self.scheduler.run(200, 10.0)
        self.count(f"{name}: {'refused' if failed else 'done'}")
        if not failed:
            return None
        self.trace.append(f"{name} is refused: {failed[0]}")
        if "cannot be brought together" in str(failed[0]):
            self._restore("both", self.backups[-1])
        return failed[0]

    # Forks ------------------------------------------------------------------------------------

    def _fork(self, *, at_table: bool) -> None:
        """A new query into the same table, from the log of the host or from the table."""
        (old,) = self.directories
        assert old.above is not None
        if not any(name.startswith("commits/") for name in old.above.objects):
            return
        store = Client(old, Process("fork"), self.scheduler, Weather()).retrying()
        sink, made = self.make_table(Process("fork")), self.make_coordinator
        try:
            view = StateView(store)
            ref = getattr(made, "chosen", _chosen)(view, view.chain(), "", "")
            known = comparison(store, sink)
            lineage = view.history.header(ref).lineage
            newest = sink.newest(sink.opened(), lineage)
            written = newest_written(view.history, view.commits, ref)
            # The host was killed before it had written down what its table has already.
            is_ahead = newest is not None and newest.batch.checkpoint > written.checkpoint
            # A person who has restored the table does not fork after batches that it lacks.
            is_behind = self.is_apart and (NO_BATCH if newest is None else newest.batch) != written
            if at_table := at_table or is_ahead or is_behind:
                # As `checkpoint_of_table` does it; an error where the state does not have it.
                marks = [batch.mark for batch in known.batches]
                at = str(known.newest.checkpoint) if known.newest in marks else "none"
                ref = checkpoint_named(view, at)
            find = getattr(made, "savepoint", savepoint_at)
            savepoint = find(store, ref, view.history, is_in_table=at_table)
            # As `sluice fork` does it. What retention has begun to take is not whole any more.
            state_after(savepoint, RowSource(self.files[0]))
        except (OptionError, StateError, TableError) as error:
            self.count("a fork is refused")
            self.trace.append(f"a fork is refused: {error}")
            if at_table and self.backups:
                self._restore("both", self.backups[-1])
            return
        self.count(f"a query is forked {'at its table' if at_table else 'by the log of its host'}")
        self.directories = self._new_directories()
        self._write_seed(Fork(view, savepoint, view.snapshot(ref), ""))
        self._forget_after(old, ref)
        self.backups, self.is_apart, self.disturbed_at = [], False, self.scheduler.now

    def _write_seed(self, fork: Fork) -> None:
        """As `sluice fork` does it."""
        (new,) = self.directories
        assert new.above is not None
        process = Process("fork")
        state, above = (
            Client(place, process, self.scheduler, Weather()).retrying()
            for place in (new, new.above)
        )
        forked = fork._forked()
        origin = {"forked": asdict(forked)} if forked else {}

        def make(attachments: Attachments) -> OfflineState[Any, Any]:
            return state_after(fork.savepoint, RowSource(self.files[0]), attachments)

        write_seed(Target(new.above.location, state, above), "fork", origin, {}, make)

    def _forget_after(self, old: Directory, ref: CheckpointRef) -> None:
        """What came after a checkpoint, a query that begins there does not know."""

        def is_known(event: str) -> bool:
            location, name, _ = event.rsplit("/", 2)
            return location != old.location or int(name.partition("-")[0]) <= ref.checkpoint

        self.told = [{event for event in told if is_known(event)} for told in self.told]
        ends = self.logs.offsets
        self.logs.events = {
            batch: events
            for batch, events in self.logs.events.items()
            if batch not in ends or ends[batch][0]["checkpoint"] <= ref.checkpoint
        }
        events = self._events()
        self.logs = replace(self.new_logs(), events={-1: events})

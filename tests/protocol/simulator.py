"""One run of the simulator: a plan that follows from a seed, and each action that it may have.

An action happens while the query runs, between two steps of any of its threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.orders import Order, Orders
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer, ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.connector.query.spark_checkpoint import Offsets
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.coordinator.start_position import taken_up
from pyspark_sluice.errors import SluiceError

from .invariants import Find, without_commits
from .plans import Plan, habit_of, plan_of, weather_of
from .scheduler import Process, Scheduler, Thread
from .shared_directory import FAULTS, Client, Directory, Weather, flipped
from .table_life import TableLife


class Simulator(TableLife):
    """What may happen to a query; `how` says in which way, from 0 to 1."""

    def _act_land(self, how: float) -> None:
        for at in range(1 + int(how * 4)):
            number = (int(how * 1000) + at) % len(self.files)
            files = self.files[number]
            before = len(files.files)
            files.land(1 + (int(how * 100) + at) % 7, at % 4)
            file = files.files[-1] = replace_path(files.files[before], f"s{number}")
            self.landed_at[file.path] = self.scheduler.now
            self.due.update((file.path, row) for row in range(file.size))

    def _act_grow(self, how: float) -> None:
        limits = self.setting.settings.limits
        if not self.setting.is_async and limits.rows is limits.bytes is None:
            lane, rows = int(how * 3), 1 + int(how * 10) % 3
            name, before = f"lane{lane}", self.files[0].lanes.get(f"lane{lane}", 0)
            self.files[0].grow(lane, rows)
            self.due.update((name, before + row) for row in range(rows))

    def _act_event(self, how: float) -> None:
        """The enumerator sends a reader some events."""
        files = self.files[int(how * 100) % len(self.files)]
        files.wanted += [int(how * 3)] * (2 + int(how * 7))

    def _act_wait(self, how: float) -> None:
        # Sometimes as long as an idle query has beats of its heart, with looks in between: an end
        # is judged by what was the matter when it came.
        for _ in range(1 if how < 0.8 else 4):
            self._let_run(2000, 5.0 + how * 100)

    def _act_restart(self, how: float) -> None:
        """The driver is killed, or goes on without knowing that it is no longer alone."""
        assert self.query is not None
        if how < 0.3:
            self.count("two drivers of one query")
            self.others_at = self.scheduler.now
            self.zombies.append(self.query)
            if how < 0.15:
                self.query.process.paused_until = self.scheduler.now + 300 * how
        else:
            self._kill(self.query)
        self._start()

    def _act_crash(self, how: float) -> None:
        assert self.query is not None
        self.query.process.crash_in = 1 + int(how * 40)
        self.query.process.crash_kind = "after" if int(how * 1000) % 2 else "before"

    def _act_pause(self, how: float) -> None:
        assert self.query is not None
        self.query.process.paused_until = self.scheduler.now + how * 200

    def _act_set_clock(self, how: float) -> None:
        self.offset += (change := (how - 0.5) * 4000)
        self.clock_changes.append((self.scheduler.now, change))
        for thread in self.scheduler.threads:
            thread.process.offset = self.offset

    def _act_weather(self, how: float) -> None:
        kind = weather_of(how)
        seconds = (
            how * 80 if kind in {"late listings", "slow", "no permission to delete"} else how * 20
        )
        self.weather.until[kind] = self.scheduler.now + seconds

    def _act_fault(self, how: float) -> None:
        """Of the next operation that can have it."""
        self.weather.due.add(FAULTS[int(how * len(FAULTS))])

    def _act_tasks(self, how: float) -> None:
        name = habit_of(self.plan.setting, how)
        share = how / 5 if name == "fails" else how / 2
        self.habits = replace(self.habits, **{name: share})

    def _act_once(self, how: float) -> None:
        """As with Trigger.Once, which aborts what was cut ahead under limits."""
        self.habits = replace(self.habits, unlimited=how)
        self.file_limits.append(None)
        self.row_limits.append(None)

    def _act_backup(self, how: float) -> None:
        if self.is_hosted:
            self._back_up_both()
        elif not self.zombies and not self.remembers:
            self.backup = self._copy()

    def _act_restore(self, how: float) -> None:
        """Spark's checkpoint and the state come from a backup; the sink may be as it is."""
        if self.is_hosted:
            self._restore_apart(how)
            return
        if self.backup is None or (self.backup.logs.offsets and not self.logs.offsets):
            return
        sink = how < 0.4 or self.plan.setting["unread"] or self.setting.is_async
        # Marks and orders since then are gone, and a file that is gone is read by nobody again.
        self._leave(goes_on=int(how * 100) % 3 == 0)
        self._restored(self.backup, sink=sink)
        self.count(f"a backup is restored, {'with' if sink else 'without'} the sink")
        self._start()

    def _act_remove_all(self, how: float) -> None:
        """The directory, Spark's checkpoint and the table are deleted, perhaps under a query."""
        if self.is_hosted:
            return
        self._leave(goes_on=how < 0.5)
        self.disturbed_at = self.scheduler.now
        for directory in self.directories:
            directory.objects.clear()
        self._from_nothing()
        self._start()

    @property
    def _is_even(self) -> bool:
        """Spark's commit log and the sink have the same batches."""
        return self.sink.taken == self.logs.commits == set(self.logs.offsets) != set()

    def _act_fork(self, how: float) -> None:
        """A new query from the last checkpoint of the old one, into the same table."""
        if self.is_hosted:
            self._leave(goes_on=False)
            self._fork(at_table=how < 0.3)
            self._start()
            return
        self._start_from_last(is_new=True)

    def _act_keep_state(self, how: float) -> None:
        """Spark's checkpoint is lost, and its query resumes from the state."""
        self._start_from_last(is_new=False)

    def _start_from_last(self, *, is_new: bool) -> None:
        if not self._is_even or self.setting.is_async or self.remembers or len(self.files) > 1:
            return None
        self._leave(goes_on=False)
        if not self._is_even:
            return self._start()
        old, last = self.directories[0], self.logs.offsets[max(self.logs.offsets)]
        ref = self._ref(old, last[0])
        if is_new:
            self.directories = self._new_directories()
            self.savepoints.append((old, without_commits(old.objects)))
            # An order belongs to its directory.
            self.optional.update(row for row in self.missing() if self.due[row] > 1)
        events = self._events()
        self.logs, self.backup = self.new_logs(), None
        self.logs.events[-1] = events
        self.sink = replace(self.sink, taken=set())
        client = Client(old, Process("fork"), self.scheduler, Weather())
        find = getattr(self.make_coordinator, "taken_up", taken_up)
        # By its id, as a person names it.
        named = find(client, ref.checkpoint)
        assert named is not None
        self._set(starting_state=lambda: StartingState(client.retrying(), named))
        self.disturbed_at = self.scheduler.now
        self.count(f"a query starts from {'a savepoint' if is_new else 'its own state'}")
        return self._start()

    def _ref(self, directory: Directory, offset: Any) -> Any:
        client = Client(directory, Process("look"), Scheduler(0), Weather())
        return Offsets(CheckpointHistory(client)).ref(offset)

    def _act_order(self, how: float) -> None:
        """A person stops the query and orders a file again; the command may be killed."""
        if not self._is_even or self.setting.is_async or self.remembers:
            return
        assert self.query is not None
        self._kill(self.query)
        number = int(how * 100) % len(self.files)
        rows = self.sink.rows
        files = [
            f for f in self.files[number].files
            if all(rows[f.path, r] == self.due[f.path, r] for r in range(f.size))
            and not any((f.path, r) in self.optional for r in range(f.size))
        ]  # fmt: skip
        if files and not self.zombies and self._is_even:
            self._order(number, files[int(how * 10_000) % len(files)], crash=int(how * 30) % 10)
        self._start()

    def _order(self, number: int, file: FileVersion, crash: int) -> None:
        directory = self.directories[number]
        ranges = ranges_of([FileSplit(file, 0, file.size)])
        columns = {name: ranges.column(name).to_pylist() for name in ranges.schema.names}
        process = Process("command")
        process.crash_in, process.crash_kind = crash, "after" if crash % 2 else "before"
        nonce = f"{self.scheduler.random.random()}"
        ref = self._ref(directory, self.logs.offsets[max(self.logs.offsets)][number])

        def command() -> None:
            store = Client(directory, process, self.scheduler, self.weather).retrying()
            order = Order(
                action="requeue", enumerator="rows", split_version=1, splits=columns, nonce=nonce
            )
            try:
                contained = CheckpointHistory(store).header(ref).orders
                getattr(self.make_coordinator, "Orders", Orders)(store).publish(order, contained)
            except SluiceError as error:
                self.trace.append(f"the order fails: {error}")

        Thread(command, "command", process=process).start()
        for _ in range(40):
            self.scheduler.run(200, 10.0)
            if not process.threads:
                break
        written = [d for n, d in directory.objects.items() if n.startswith("orders/")]
        if any(nonce.encode() in data for data in written):
            self.count("an order is written down")
            self.due.update((file.path, row) for row in range(file.size))

    def _act_lose_orders(self, how: float) -> None:
        """The folder `orders` is gone; what was not carried out may be."""
        for directory in self.directories:
            for name in [n for n in directory.objects if n.startswith("orders/")]:
                del directory.objects[name]
                self.disturbed_at = self.scheduler.now
        self.optional.update(row for row in self.missing() if self.due[row] > 1)

    def _act_flip_a_bit(self, how: float) -> None:
        """On the disk: read again it is the same."""
        directory = self.directories[0]
        names = sorted(directory.objects)
        if how < 0.2 and names:
            name = names[int(how * 10_007) % len(names)]
            data = directory.objects[name]
            directory.objects[name] = flipped(data, int(how * 1_000_003) % (8 * len(data)))
            self.damaged = True

    def _act_fail_to_list(self, how: float) -> None:
        self.files[0].listing_failures = 1 + int(how * 3)

    def _act_fail_to_count(self, how: float) -> None:
        """The enumerator fails in the middle of what a reader has committed."""
        self.files[0].event_failures, self.failing = 1, True

    def _act_poison(self, how: float) -> None:
        """A file cannot be read, from now on; or a person gives up what nobody can read."""
        files = self.files[0]
        if self.is_hosted:
            return
        if how < 0.3 and files.files:
            files.poisoned.add(files.files[int(how * 1000) % len(files.files)].path)
            self.failing = True
        elif files.poisoned and self.query is not None and self.logs.offsets:
            self._kill(self.query)
            self._waive()
            self._start()

    def _waive(self) -> None:
        directory, newest = self.directories[0], max(self.logs.offsets)
        if newest in self.logs.commits:
            return
        client = Client(directory, Process("command"), self.scheduler, Weather())
        history, read = CheckpointHistory(client), FileSplitSerializer().read
        before = [self.logs.offsets[batch] for batch in self.logs.offsets if batch < newest]
        start = self._ref(directory, before[-1][0]) if before else NO_CHECKPOINT
        for checkpoint in history.between(
            start, self._ref(directory, self.logs.offsets[newest][0])
        ):
            batches = [batch for _, batch in checkpoint.assigned]
            splits = [s for batch in batches for s in read(1, batch)]
            given_up = [s for s in splits if s.file.path in self.files[0].poisoned]
            if given_up:
                ranges, ref = ranges_of(given_up), checkpoint.ref
                columns = {name: ranges.column(name).to_pylist() for name in ranges.schema.names}
                order = Order(
                    action="waive", enumerator="rows", split_version=1, splits=columns,
                    to_checkpoint=ref.checkpoint, to_epoch=ref.epoch, nonce=str(ref),
                )  # fmt: skip
                Orders(client).publish(order, checkpoint.header.orders)
                self.count("splits are waived")
                self.optional.update(
                    (s.file.path, r) for s in given_up for r in range(s.start, s.end)
                )

    def _act_rescale(self, how: float) -> None:
        self._set(
            parallelism=[None, 1, 2, 3][int(how * 4)],
            limits=replace(self.setting.settings.limits, files=[1, 2, None][int(how * 100) % 3]),
            checkpoints_ahead=int(how * 1000) % 4,
        )
        self.file_limits.append(self.setting.settings.limits.files)
        self._act_restart(how)


ACTIONS: dict[str, Callable[[Simulator, float], None]] = {
    name.removeprefix("_act_"): action
    for name, action in vars(Simulator).items()
    if name.startswith("_act_")
}


def replace_path(file: FileVersion, prefix: str) -> FileVersion:
    return file._replace(path=prefix + file.path)


__all__ = ["ACTIONS", "Find", "Plan", "Simulator", "plan_of"]

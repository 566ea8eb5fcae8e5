"""One query's life: its drivers one after the other, and what people do to it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast
from unittest import mock

from pyspark_sluice.checkpoint_meta.storage.contract import FileStatus, Look, Storage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.api import Journal
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.source_cleanup import SourceCleanup
from pyspark_sluice.enumerator.files.ledger_source import FilesSource
from pyspark_sluice.enumerator.source_api import OpenState, SourceCleaner
from pyspark_sluice.errors import FencedError, SluiceError

from .invariants import Find, Invariants
from .plans import Plan
from .rows import POLICY, Row, RowSource
from .scheduler import WORLD, Process, Scheduler, is_simulated
from .shared_directory import KINDS, Directory, Weather
from .spark_query import Concurrent, Logs, Query, Setting, Sink
from .spark_tasks import Habits

LONGEST = 40_000
"""Steps in which a healthy query has read everything."""

AFTERMATH = 130.0
"""Seconds for which what has happened explains an error."""

PATIENT = replace(POLICY, interval=1.0, attempts=8)


@dataclass
class Backup:
    logs: Logs
    sink: Sink
    objects: list[dict[str, bytes]]
    due: Counter[Row]
    optional: set[Row]
    gone: list[int]
    told: list[set[str]]


class QueryLife(Invariants):
    """One query's life, by its drivers, executors, operator and machines."""

    patience = 100
    """Questions without news after which rows that are missing are lost."""

    def __init__(self, plan: Plan, make_coordinator: Callable[..., Any] = Coordinator) -> None:
        given = plan.setting
        super().__init__(given["sources"], given["files"])
        self.plan = plan
        self.make_coordinator = make_coordinator
        self.scheduler = Scheduler(plan.seed, given["switching"])
        self.weather, self.habits = Weather(), Habits()
        self.machines: list[dict[str, Any]] = [{}, {}]
        self.remembers = False
        """The sink is newer than the state and Spark's checkpoint."""
        self.backup: Backup | None = None
        self.damaged = self.failing = False
        """An object is damaged on disk; an enumerator or a file fails."""
        self.disturbed_at = -AFTERMATH
        self.others_at = -AFTERMATH
        self.offset = 0.0
        settings = CoordinatorSettings(
            limits=BatchLimits(given["files"], given.get("bytes"), given.get("rows")),
            parallelism=given["parallelism"],
            at_least_readers=1,
            max_split_attempts=given["attempts"],
            checkpoints_ahead=given["ahead"],
            retained_checkpoints=given["retained"],
            deltas_per_base=given["deltas"],
            commit_patience=given["patience"],
            idle_patience=0.05,
            batches_may_be_unread=given["unread"],
            clean_after=max(0.0, given["cleans"]),
            clean_while_retained=given["cleans"] == 0.0,
        )
        self.setting = Setting(settings, given["is_async"], given["is_bounded"])
        self.row_limits: list[int | None] = [given.get("rows")]
        """As `file_limits`."""
        self._directories = self.starts = self.ends = 0
        """How many there were; ends without a batch in a row."""
        self.directories = self._new_directories()
        self.logs, self.sink = self.new_logs(), Sink()
        self.query: Query | None = None
        self.zombies: list[Query] = []

    # The world of the query -------------------------------------------------------------------

    def make_source(self, number: int) -> RowSource:
        cleans = self.plan.setting["cleans"] >= 0
        me = self.scheduler.current
        owner = next(q for q in [self.query, *self.zombies] if q and me and q.process is me.process)
        return SimulatedSource(self, number, owner if cleans else None)

    def _new_query(self, *arguments: Any) -> Query:
        return Query(*arguments)

    def new_logs(self) -> Logs:
        """Of a query that begins."""
        return Logs(query_id=f"query {self.starts}")

    def _new_directories(self) -> list[Directory]:
        self._directories += 1
        count = len(self.files)
        return [Directory(f"sim://{self._directories}/{number}") for number in range(count)]

    # The run ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Carry out the plan, then let the query read everything in peace, and look at the rows."""
        tell = Journal._tell

        def told(journal: Any, level: int, name: str, message: str, values: Any) -> None:
            # Queries that other tests of the process have left behind tell something, too.
            if not is_simulated():
                tell(journal, level, name, message, values)
                return
            self.counts[f"journal: {message}"] += 1
            shown = message % tuple(values) if values else message
            self.trace.append(f"{self.scheduler.now:9.3f} {name}: {shown}")

        patches = contextlib.ExitStack()
        for patch in getattr(self.make_coordinator, "patches", ()):
            patches.enter_context(mock.patch.object(*patch))
        WORLD.append(self.scheduler)
        Journal._tell = told  # type: ignore[method-assign,assignment]
        try:
            self._start()
            for steps, name, how in self.plan.actions:
                self._let_run(steps)
                self.count(f"action: {name}")
                try:
                    getattr(self, f"_act_{name}")(how)
                except SluiceError as error:
                    # A person's command is refused: the state is damaged.
                    self.trace.append(f"{name} is refused: {error}")
                    self._start_if_none()
            self._to_end()
            self._check_rows()
            self._check_told()
        except Find:
            raise
        except AssertionError as error:
            raise self._find or Find(f"an assertion of the run: {error!r}") from error
        finally:
            Journal._tell = tell  # type: ignore[method-assign]
            patches.close()
            for thread in list(self.scheduler.threads):
                thread.process.dead = True
            self.scheduler.failure = None
            while self.scheduler.threads:
                self.scheduler.kill(self.scheduler.threads[0].process)
            WORLD.pop()

    def _let_run(self, steps: int, seconds: float = 30.0) -> None:
        self.scheduler.run(steps, seconds)
        self._look()
        self._check_heartbeat()
        self._check_references()
        if self._find is not None:
            raise self._find

    def _start(self) -> None:
        self.starts += 1
        machine = self.machines[self.starts // 2 % len(self.machines)]
        process = Process(f"driver{self.starts}", machine)
        process.offset = self.offset
        logs, sink = self.logs, self.sink
        self.query = self._new_query(process, self, logs, sink, self.setting, self.directories)
        self.query.start()
        self.count("a driver starts")

    def _start_if_none(self) -> None:
        if self.query is None or self.query.is_over:
            self._start()

    def _look(self) -> None:
        for query in [*self.zombies, self.query]:
            if self.zombies:
                self.others_at = self.scheduler.now
            if query is not None and query.is_over:
                self._judge(query)
                if query is self.query:
                    self._start()
                else:
                    self.zombies.remove(query)

    def _judge(self, query: Query) -> None:
        error, now = query.error, self.scheduler.now
        for executor in query.executors:
            if not self.scheduler.random.random() < self.habits.straggles:
                executor.dead = True
        if error is None:
            return
        text = f"{type(error).__name__}: {error}"
        self.trace.append(f"{now:9.3f} {query.process.name} ends: {text}")
        self.counts[f"a query ends by {type(error).__name__}"] += 1
        self.ends = 1 if query.batches else self.ends + 1
        if self._is_seen_to(query, text):
            return
        if isinstance(error, Concurrent):
            excused = max(self.others_at, self.disturbed_at) >= query.began
        elif not isinstance(error, SluiceError):
            self.unnamed(error)
            return
        elif max(self.others_at, self.disturbed_at) >= query.began:
            excused = True
        elif isinstance(error, FencedError):
            excused = False
        else:
            killing = [kind for kind, kills in KINDS.items() if kills]
            last = max(self.weather.until.get(kind, -AFTERMATH) for kind in killing)
            habits = self.habits.fails or self.habits.dies or self.failing
            last = max(last, *(p.hurt_at for p in (query.process, *query.executors)))
            # After a pause a request is not repeated: so much time has passed.
            last = max(last, query.process.paused_until or -AFTERMATH)
            excused = bool(habits) or self.damaged or max(last, self.disturbed_at) > now - AFTERMATH
        # A query does without permission to delete, also in bad weather.
        if not excused or "AccessDenied" in text:
            self.found(f"a query ends without a reason: {text}")

    def _is_seen_to(self, query: Query, text: str) -> bool:
        """Whether a person knows the reason of an end, and has done what it takes."""
        if "no reader ran in a batch" in text and self.remembers and self.backup:
            self.count("the sink is restored, too, as the error says")
            self._restored(self.backup, sink=True)
            return True
        return False

    def _to_end(self) -> None:
        self.weather.until.clear()
        self.weather.due.clear()
        self.habits = Habits()
        for files in self.files:
            files.listing_failures = files.event_failures = 0
            files.poisoned.clear()
        for query in self.zombies:
            query.process.paused_until = 0.0
        assert self.query is not None
        self.query.process.paused_until = 0.0
        self.scheduler.switching = max(0.2, self.scheduler.switching)
        self._kill(self.query)
        self._start()
        deadline, self.ends = self.scheduler.steps + LONGEST, 0
        while self.scheduler.steps < deadline:
            self._let_run(1000, 20.0)
            if self.ends > 12:
                if self.damaged:
                    return
                raise Find(f"a query does not start again: {self.trace[-1]}")
            if self._is_quiet():
                break
        else:
            raise Find(f"the query does not come to its end: {self.missing()}")

    def _is_quiet(self) -> bool:
        assert self.query is not None
        if self.setting.is_bounded:
            return not self.missing()
        return self.query.quiet > self.patience or (self.query.quiet > 20 and not self.missing())

    # What a person does ---------------------------------------------------------------------

    def _kill(self, query: Query) -> None:
        self.scheduler.kill(query.process)
        for executor in query.executors:
            if not self.scheduler.random.random() < self.habits.straggles:
                self.scheduler.kill(executor)

    def _restored(self, backup: Backup, *, sink: bool) -> None:
        self.disturbed_at = self.scheduler.now
        self.logs = backup.logs.copy()
        self.remembers = not sink
        for directory, objects in zip(self._objects(), backup.objects, strict=True):
            directory.objects.clear()
            directory.objects.update(objects)
            directory.owner = None
        for row in self.due:
            # What was ordered since then is not in it.
            self.due[row] = backup.due.get(row, 1)
        self.optional |= backup.optional
        self.told = [set(told) for told in backup.told]
        for files, gone in zip(self.files, backup.gone, strict=True):
            self.optional.update((f.path, r) for f in files.gone[gone:] for r in range(f.size))
        if sink:
            self.sink = backup.sink.copy()

    def _leave(self, *, goes_on: bool) -> None:
        """What runs has other logs and another sink from now on, or is killed."""
        for query in [*self.zombies, self.query]:
            assert query is not None
            # One that takes the state over later would be its rightful owner.
            owns = len(query.coordinators) == len(self.files)
            if goes_on and owns and all(c._opened is not None for c in query.coordinators):
                query.logs, query.sink = query.logs.copy(), query.sink.copy()
                self.others_at = self.scheduler.now
            else:
                self._kill(query)
        left = [query for query in [*self.zombies, self.query] if query and not query.is_over]
        self.zombies = left

    def _from_nothing(self) -> None:
        self.backup, self.remembers = None, False
        self.logs, self.sink = self.new_logs(), Sink()
        self.optional = {(f.path, r) for of in self.files for f in of.gone for r in range(f.size)}
        self.due = Counter(dict.fromkeys(self.due, 1))
        self.told = [set() for _ in self.files]
        self._set(starting_state=None)

    def _set(self, **settings: Any) -> None:
        self.setting = replace(self.setting, settings=replace(self.setting.settings, **settings))

    def _objects(self) -> list[Directory]:
        """The directories of the state, and of the log where that is one."""
        return [each for d in self.directories for each in (d, d.above) if each is not None]

    def _copy(self) -> Backup:
        return Backup(
            self.logs.copy(), self.sink.copy(), [dict(d.objects) for d in self._objects()],
            Counter(self.due), set(self.optional), [len(f.gone) for f in self.files],
            [set(told) for told in self.told],
        )  # fmt: skip


# The files of the query ----------------------------------------------------------------------


class SimulatedSource(RowSource):
    """Rows, with the cleaner of the product."""

    def __init__(self, world: QueryLife, number: int, query: Query | None) -> None:
        super().__init__(world.files[number], policy=PATIENT)
        self._files = None if query is None else _SimulatedFiles(world, number, query)

    def create_cleaner(self, state: OpenState) -> SourceCleaner | None:
        if self._files is None:
            return None
        self._files.opened_at = self._files.world.scheduler.now
        return SourceCleanup(_Cleaner(self._files), cast("FilesSource", self), state)


class _Cleaner(FileCleaner):
    def __init__(self, storage: LocalStorage) -> None:
        super().__init__(CleaningPolicy("delete", ()), {})
        self._storage = storage

    def _storage_of(self, path: str) -> Storage:
        return self._storage


class _SimulatedFiles(LocalStorage):
    """The files of a simulated world, in place of those of this machine."""

    def __init__(self, world: QueryLife, number: int, query: Query) -> None:
        super().__init__()
        self.world, self.number, self.query = world, number, query
        self.opened_at = 0.0

    def name(self, url: str) -> str:
        return url

    def stat(self, name: str) -> FileStatus:
        self.world.scheduler.point()
        for file in self.world.files[self.number].files:
            if file.path == name:
                return FileStatus(file.size, file.modified, file.etag)
        raise FileNotFoundError(name)

    def look(self, name: str) -> Look:
        return Look(self.stat(name), "")

    def delete(self, name: str, mark: str = "") -> None:
        self.world.scheduler.point()
        if self.query.process.dead:
            raise SimulatedCrash
        if self.world.weather.has("no permission to delete", self.world.scheduler.now):
            raise PermissionError(name)
        for known in list(self.world.files[self.number].files):
            if known.path == name:
                self.world.deleted(self.number, known, self.query, self.opened_at)

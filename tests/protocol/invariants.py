"""What has to hold in a run of the simulator, while it goes on and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    Continuation,
    CustomEvent,
)
from pyspark_sluice.checkpoint_meta.documents.heartbeat import HEARTBEAT_SECONDS
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.connector.query.partitions import ReaderShare

from .rows import Row, is_lane
from .rows import World as Files
from .scheduler import Scheduler
from .shared_directory import Directory, Weather
from .spark_query import Logs, Query, Setting, Sink
from .spark_tasks import Job

LONGEST_BEAT = 2.5 * HEARTBEAT_SECONDS
"""Seconds after which a query that nothing disturbs has written a heartbeat."""


class Find(AssertionError):
    """Something that must never be."""

    @property
    def kind(self) -> str:
        return str(self).split(":", maxsplit=1)[0]


class Invariants:
    """The state of a run, and the checks of it."""

    scheduler: Scheduler
    weather: Weather
    setting: Setting
    query: Query | None
    logs: Logs
    sink: Sink
    directories: list[Directory]
    damaged: bool
    disturbed_at: float
    others_at: float

    def __init__(self, sources: int, files: int | None) -> None:
        """`files` is the limit of each batch."""
        self.files = [Files() for _ in range(sources)]
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self.landed_at: dict[str, float] = {}
        self.clock_changes: list[tuple[float, float]] = []
        self.due: Counter[Row] = Counter()
        """How often each row belongs into the sink."""
        self.optional: set[Row] = set()
        """Rows that are there or not: a person has seen to that."""
        self.plans: dict[tuple[str, int, int], object] = {}
        self.told: list[set[str]] = [set() for _ in self.files]
        """By source: events of readers, which the state has counted once in the end."""
        self.returns: dict[tuple[int, Row, int], set[str]] = {}
        """Source, beginning and end of a split -> events of the commits that have sent it back."""
        self.file_limits: list[int | None] = [files]
        """The limits of this run on files, in turn."""
        self.headers: dict[bytes, CheckpointHeader] = {}
        """By object, of checkpoints and bases."""
        self.savepoints: list[tuple[Directory, dict[str, bytes]]] = []
        self._find: Find | None = None

    def count(self, transition: str) -> None:
        self.counts[transition] += 1
        who = self.scheduler.current
        name = who.process.name if who else "operator"
        self.trace.append(f"{self.scheduler.now:9.3f} {name}: {transition}")

    def found(self, message: str) -> None:
        self._find = self._find or Find(message)
        self.trace.append(f"FOUND {message}")

    def unnamed(self, error: BaseException) -> None:
        self.found(f"an error without a name: {type(error).__name__}: {error}")

    def handed_out(self, query: Query, against_a_claim: Iterable[bool]) -> None:
        """An offset may be under way while another driver claims the state, and no other.

        By source: whether the claim was there before the question.
        """
        if any(against_a_claim) and not query.process.was_stale:
            self.found(f"two drivers of one state: {query.process.name} continues with batches")

    def planned(self, logs: Logs, batch: int, jobs: Sequence[Job]) -> None:
        self.count("a batch is planned")
        files: dict[tuple[int, str], set[str]] = {}
        events: dict[tuple[int, int], list[Any]] = {}
        for job in jobs:
            for part in job.partition.parts:
                key = part.checkpoint.checksum, job.source, job.partition.reader
                plan = part.packed, tuple(map(str, part.sent))
                if self.plans.setdefault(key, plan) != plan:
                    self.found("another plan for one offset")
                numbers = [sent.event for sent in part.sent if isinstance(sent, CustomEvent)]
                events.setdefault(key[1:], []).extend(numbers)
                self.counts["an event is sent"] += len(numbers)
                whole = (s for s in part.sent if isinstance(s, Continuation) and s.index is None)
                self.counts["a part is continued whole"] += sum(1 for _ in whole)
                self.counts["a part has a budget"] += part.budget is not None
                files.setdefault((job.source, key[0]), set()).update(paths_of(part))
        self._check_limits(files.values())
        logs.events[batch] = events
        if logs is self.logs and not self.setting.is_async:
            self._check_events()

    def _check_limits(self, files: Iterable[set[str]]) -> None:
        limit = max(at or 1_000_000 for at in self.file_limits)
        if any(len(paths) > limit for paths in files):
            self.found(f"too many files in a batch: {list(files)}")

    def _check_events(self) -> None:
        """What the source sends arrives in order, without gaps."""
        arrived = self._events()
        if any(numbers != list(range(1, len(numbers) + 1)) for numbers in arrived.values()):
            self.found(f"events out of order: {arrived}")

    def _events(self) -> dict[tuple[int, int], list[Any]]:
        arrived: dict[tuple[int, int], list[Any]] = {}
        for _, events in sorted(self.logs.events.items()):
            for reader, numbers in events.items():
                arrived.setdefault(reader, []).extend(numbers)
        return arrived

    def acknowledged(self, job: Job, told: Sequence[str]) -> None:
        if job.query is self.query and job.query.logs is self.logs:
            self.told[job.source].update(told)

    def returned(self, job: Job, split: FileSplit, name: str) -> None:
        key = job.source, (split.file.path, split.start), split.end
        names = self.returns.setdefault(key, set())
        names.add(name)
        if len(names) >= self.setting.settings.max_split_attempts:
            self.count("a split is given up")
            self.optional.update((split.file.path, at) for at in range(split.start, split.end))

    def missing(self) -> Counter[Row]:
        rows, low = self.sink.rows, self.due
        lost = Counter({r: n - rows[r] for r, n in low.items() if n > rows[r]})
        skipped = self.optional | self.sink.unread
        return Counter({row: n for row, n in lost.items() if row not in skipped})

    def _check_rows(self) -> None:
        more = {r: n for r, n in self.sink.rows.items() if n > self.due[r]}
        more = {r: n for r, n in more.items() if r not in self.optional or n > self.due[r] + 1}
        if more and not self.setting.is_async:
            raise Find(f"rows doubled: {more}")
        if self.missing() and not self.damaged:
            raise Find(f"rows lost: {self.missing()}")

    def _check_told(self) -> None:
        """Each event of a reader is counted once, in the end and with its commit."""
        assert self.query is not None
        for of, coordinator in zip(self.told, self.query.coordinators, strict=False):
            if coordinator._opened is None or self.damaged:
                continue
            counted = Counter(coordinator._opened.enumerator.told)
            if twice := [event for event, times in counted.items() if times > 1]:
                raise Find(f"an event of a reader is counted twice: {twice}")
            lost = of.difference(counted)
            if lost and not (self.setting.is_async or self.setting.is_bounded):
                raise Find(f"an event of a reader is lost: {lost}")

    def _check_references(self) -> None:
        """Walks the references of all bases, also of those that no chain leads to.

        Not of one that arrives after its driver was superseded, and after the next one has deleted
        what it refers to: no look can prevent that, and each restore passes over it.
        """
        for directory in [] if self.damaged else self.directories:
            objects = directory.objects
            checkpoints = [
                self._header(name, data)
                for name, data in objects.items()
                if name.startswith("checkpoints/")
            ]
            named = {identity for of in checkpoints for identity in (of.identity, of.cut_after)}
            for name, data in objects.items():
                if not name.startswith("bases/") or name in directory.under_way:
                    continue
                header = self._header(name, data)
                gone = {f"index/{of.name}" for of in header.attachments}.difference(objects)
                # A driver whose directory was removed may still write a base into the next one.
                if gone and header.identity in named:
                    self.found(f"a base refers to what is gone: {name} {gone}")
        for directory, before in self.savepoints:
            if without_commits(directory.objects) != before:
                self.found(f"a savepoint was touched: {directory.location}")

    def _header(self, name: str, data: bytes) -> CheckpointHeader:
        if data not in self.headers:
            self.headers[data] = Checkpoint.from_bytes(data, name).header
        return self.headers[data]

    def _check_heartbeat(self) -> None:
        query, now = self.query, self.scheduler.now
        assert query is not None
        troubles = [*self.weather.until.values(), self.disturbed_at, self.others_at, query.began]
        calm = now - max(*troubles, query.process.paused_until)
        if calm < LONGEST_BEAT or query.is_over or self.damaged:
            return
        for directory in self.directories:
            beats = [directory.born[n] for n in directory.objects if n.startswith("heartbeats/")]
            if now - max(beats, default=-LONGEST_BEAT) > LONGEST_BEAT:
                raise Find(f"no heartbeat: since {max(beats, default=0.0)}, and it is {now}")

    def deleted(self, number: int, file: FileVersion, query: Query, began: float) -> None:
        """The source has lost a file."""
        self.count("a file is cleaned up")
        self.files[number].files.remove(file)
        self.files[number].gone.append(file)
        rows = [(file.path, row) for row in range(file.size)]
        if query is not self.query:
            self.optional.update(rows)
        sink = query.sink
        unread = [
            r for r in rows
            if sink.rows[r] < self.due[r] and r not in sink.unread and r not in self.optional
        ]  # fmt: skip
        if unread and query is self.query:
            self.found(f"a file is deleted that was not read: {file.path} {unread}")
        landed = self.landed_at[file.path]
        # What the clock did before this driver began, it cannot know.
        ahead = sum(by for at, by in self.clock_changes if landed <= at <= began and by > 0)
        age = self.scheduler.now - landed + ahead
        if age < self.setting.settings.clean_after:
            self.found(f"a file is deleted before its retention: {file.path} {age}")


def paths_of(part: ReaderShare) -> set[str]:
    """The files of which a part has splits."""
    splits = [s for batch in part.splits() for s in FileSplitSerializer().read(part.version, batch)]
    return {split.file.path for split in splits if not is_lane(split.file.path)}


def without_commits(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    # An executor that goes on may acknowledge.
    return {name: data for name, data in objects.items() if not name.startswith("readers/")}

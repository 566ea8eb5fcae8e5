"""A file enumerator turned by hand: what it finds, files of event times, chains of its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachment, Attachments
from pyspark_sluice.checkpoint_meta.files.file_columns import changes_of, ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter, SplitSpreader
from pyspark_sluice.enumerator.files.discovery.api import (
    Discovery,
    FoundFiles,
    KnownFiles,
    Skipped,
    SkippedFile,
)
from pyspark_sluice.enumerator.files.discovery.selection.event_times import EventTimes
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy, OnLateFile
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.ledger.file_state import FileState, FileStateSerializer, fold
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder
from pyspark_sluice.enumerator.large_state import StateDocument
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext


class AnyByte:
    def may_cut_anywhere(self, file):
        return True

    def blocks(self, file):
        return None


class Bench:
    """An enumerator over a list of files."""

    def __init__(
        self,
        *files,
        state=None,
        bounded=False,
        parallelism=2,
        grows=False,
        discovery=None,
        chunk=2,
        interval=7.0,
        attachments=None,
        **policy,
    ):
        self.files = list(files)
        self.errors: list[Exception] = []
        self.context: HandCrankedContext[FileSplit] = HandCrankedContext(
            parallelism, bounded, grows
        )
        self.context.attachments = attachments or Attachments(MemoryStateStore(), 1)
        self.enumerator = FileSplitEnumerator(
            self.context,
            discovery or Listed(self.list, chunk),
            SplitCutter(AnyByte(), 100),
            SplitSpreader(1000, 1, 1),
            FilePolicy(interval=interval, attempts=3, **policy),
            state,
        )
        self.enumerator.start()

    def list(self):
        if self.errors:
            raise self.errors.pop(0)
        return self.files

    def snapshot(self, checkpoint_id):
        return list(self.enumerator.snapshot_state(checkpoint_id))

    def discover(self):
        self.context.run_calls()

    def plan(self, limits=UNLIMITED):
        before = len(self.context.assigned)
        self.enumerator.plan_batch(BatchBudget(limits))
        return [split for _, split in self.context.assigned[before:]]


def file(name, size=10, modified=0, etag=""):
    return FileVersion(name, size, modified, etag)


def whole(file):
    return FileSplit(file, 0, file.size)


def found(files: Sequence[FileVersion]) -> FoundFiles:
    return FoundFiles(
        [file.path for file in files],
        np.array([file.size for file in files], np.int64),
        np.array([file.modified for file in files], np.int64),
        [file.etag for file in files] if any(file.etag for file in files) else None,
    )


class Listed(Discovery):
    """Hands out what a function lists, some files at a time; known ones only on demand."""

    def __init__(
        self,
        files: Callable[[], Iterable[FileVersion]],
        chunk: int = 1000,
        *,
        with_known: bool = False,
    ) -> None:
        self._files = files
        self._chunk = chunk
        self._with_known = with_known

    @property
    def skipped(self) -> Skipped:
        return Skipped()

    def listing(self, known: KnownFiles) -> Iterator[FoundFiles]:
        files = list(self._files())
        for at in range(0, len(files), self._chunk):
            part = files[at : at + self._chunk]
            are_known = known.are_known([file.path for file in part]).tolist()
            new = [f for f, old in zip(part, are_known, strict=True) if self._with_known or not old]
            if new:
                yield found(new)

    def left_out(self, known: KnownFiles) -> Iterator[SkippedFile]:
        return iter(())

    def position(self) -> Mapping[str, Any]:
        return {}

    def resume(self, position: Mapping[str, Any]) -> None:
        """No files."""


DELETING = LedgerPolicy(on_overwrite=OnOverwrite.REPLACE, retracts=True)
"""The table has what the files have."""


class Deleting(Listed):
    """Looks for files by their names."""

    def __init__(self, files):
        super().__init__(files.values, with_known=True)
        self.present = files

    def are_gone(self, paths):
        return [path for path in paths if path not in self.present]


def bench_of(files, state=None, ledger=DELETING, clock=None, attachments=None, *, discovers=True):
    """An enumerator over what `files` holds now."""
    bench = Bench(
        state=state,
        parallelism=1,
        ledger=ledger,
        discovery=Deleting(files),
        retract_after=10,
        attachments=attachments,
    )
    if clock is not None:
        bench.enumerator._clock = clock
    if discovers:
        bench.discover()
    return bench


class Query:
    """A query over files that change, and the chain of its checkpoints."""

    def __init__(self, files=()):
        self.files = dict(files)
        self.now = self.number = 0
        self.attachments = Attachments(MemoryStateStore(), 1)
        self.chain, self.commits = [], []
        """Of commits: checkpoint, what is sent back, events, what nobody read, is it counted."""
        self.start(None)

    def start(self, state):
        self.bench = bench_of(
            self.files, state, DELETING, lambda: self.now, self.attachments, discovers=False
        )

    def delete(self, name, *_):
        self.files.pop(name, None)

    def discover(self, *_):
        self.bench.discover()

    def cut(self, assigned=()):
        """What the checkpoint says of files that are absent."""
        self.number += 1
        state = self.bench.enumerator.snapshot_state(self.number)
        self.chain.append(document(self.number, state, assigned))
        self.commits = [commit for commit in self.commits if not commit[-1]]
        return state.absent

    def count(self, *_):
        enumerator = self.bench.enumerator
        for commit in self.commits:
            number, back, events, unread, is_counted = commit
            if not is_counted:
                for event in events:
                    enumerator.handle_reader_event(0, "replaced", event)
                if unread:
                    enumerator.left_unread(unread)
                if back:
                    enumerator.add_splits_back(back, 0)
                enumerator.notify_checkpoint_complete(number)
                commit[-1] = True

    def base(self, *_):
        """A base that replaces the chain."""
        self.cut()
        written = self.bench.enumerator.freeze_state().write(self.attachments)
        state = FileState(written.rows)
        self.chain = [document(self.number, state, (), written.attachments)]

    def crash(self, *_):
        """What is in no checkpoint is forgotten, and what was counted since."""
        self.start(folded(self.chain, self.attachments, details=True) if self.chain else None)
        for commit in self.commits:
            commit[-1] = False


HOUR = 3_600_000_000


def moment(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def times(pattern="", *bases, may_be_missing=False):
    return EventTimes(pattern, bases, "UTC", moment, may_be_missing=may_be_missing)


def in_event_time(skew=HOUR, on_late=OnLateFile.READ, found=None):
    """What an enumerator is given for `fileOrder=eventTime`."""
    found = found or times()
    return {
        "event_time": EventTimePolicy(found, skew, on_late),
        "ledger": LedgerPolicy(EventTimeOrder(found)),
    }


def hourly(hour, name="a", modified=0):
    """A file of one hour of event time."""
    return file(f"date=2026-01-{1 + hour // 24:02}/hour={hour % 24:02}/{name}", 10, modified)


def hours(splits):
    """Hours since the first of January, of splits in order of their time."""
    begin = times().of(hourly(0).path)
    return sorted((times().of(split.file.path) - begin) // HOUR for split in splits)


def document(
    checkpoint: int,
    state: FileState | Sequence[FileSplit],
    assigned: Sequence[FileSplit] = (),
    attachments: Sequence[Attachment] = (),
) -> StateDocument:
    """What a checkpoint says that became pending in it, and that it assigned."""
    if not isinstance(state, FileState):
        state = FileState([changes_of(ranges_of(state), known=True)])
    rows = FileStateSerializer().serialize_all(state)
    if state.absent is not None:
        attachments = [*attachments, state.absent]
    return StateDocument(checkpoint, checkpoint, 1, rows, 1, [ranges_of(assigned)], attachments)


def folded(
    chain: Sequence[StateDocument], attachments: Attachments | None = None, *, details: bool = False
) -> FileState:
    """The state after a chain."""
    return fold(chain, attachments or Attachments(MemoryStateStore(), 1), details=details)

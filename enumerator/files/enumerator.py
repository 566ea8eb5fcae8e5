"""The file source's enumerator: lists, remembers, cuts and spreads.

A pass of discovery comes chunk by chunk, and a batch is planned of what has come; with too much
pending the pass rests.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from typing_extensions import override

from ...checkpoint_meta.documents.checkpoint import PartBudget
from ...checkpoint_meta.files.file_split import FIGURES, SCHEMA, FileSplit, FileVersion
from ..api import SplitEnumeratorContext
from ..batch_budget import BatchBudget
from .absences import Absences
from .aligned_batches import AlignedBatches
from .backlog import BacklogFigures, ListingStats
from .batch_choice import BatchChoice, FreshShare
from .cutting import SplitCutter, SplitSpreader
from .discovery.api import Discovery, FoundFiles
from .event_time_batches import BatchOrder, EventTimeBatches
from .file_policy import FilePolicy
from .ledger.file_state import FileState
from .ledger.ledger import Ledger, NewFiles
from .ledger.seen_files import Marks
from .ledger_source import LedgerEnumerator
from .part_plans import PartPlans
from .rewrites import RewrittenDirectories

_MANY = 1000
"""A pass that brings so many new files took its time for them, and the next one comes soon."""

_FLUSH_DELAY = 0.2
"""Seconds between two looks whether the index of a first listing is written."""

_UNSAVED = 20_000
"""Files of which times were read after which a checkpoint is due that remembers them."""

_PATIENCE = 0.5
"""Seconds after which what a pass has found is handed over, however little it is."""


@dataclass(frozen=True, slots=True)
class _Portion:
    """The files that one call to discovery brought."""

    sifted: NewFiles
    ended: bool
    """The pass has ended with it."""
    seconds: float
    """How long discovery took for it."""
    gone: Sequence[str] = ()
    """Files that the pass has found to be gone."""
    error: BaseException | None = None
    """What the pass failed with after it had brought this."""


@dataclass(slots=True)
class _Pass:
    """A pass of discovery, from its beginning to that of the next one."""

    listing: Iterator[FoundFiles] | None = None
    """The files that it still brings; None once it has ended."""
    marks: Marks | None = None
    slices: deque[FoundFiles] = field(default_factory=deque)
    """Those that it has brought and nobody has looked at."""
    seconds: float = 0.0
    new: int = 0


class FileSplitEnumerator(LedgerEnumerator):
    """Discovers files and assigns ranges of them."""

    def __init__(
        self,
        context: SplitEnumeratorContext[FileSplit],
        discovery: Discovery,
        cutter: SplitCutter,
        spreader: SplitSpreader,
        policy: FilePolicy,
        state: FileState | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._context = context
        self._discovery = discovery
        if context.bounded:
            discovery.will_end()
        if context.store is not None and state is not None and state.checkpoints:
            discovery.recall(context.store, state.checkpoints)
        self._spreader = spreader
        self._policy = policy
        self._clock = clock
        self.ledger = Ledger(policy.ledger, state)
        self._parts = PartPlans(spreader.cores, policy.is_archive, whole_files=policy.whole_files)
        self._share = FreshShare(policy.fresh_share)
        self._batch_order = BatchOrder()
        if policy.event_time is not None:
            self._batch_order = EventTimeBatches(policy.event_time, context)
            if policy.alignment is not None:
                first = self.ledger.pending.first
                self._batch_order = AlignedBatches(
                    policy.event_time, context, policy.alignment, first
                )
        contents = self.ledger.contents
        self._choice = BatchChoice(self.ledger.pending, contents, cutter, self._parts, self._share)
        self._listings = ListingStats(context.journal, clock)
        self._backlog = BacklogFigures(self.ledger.pending, clock)
        delay = int(policy.retract_after * 1_000_000)
        self._absences: Absences | None = None
        if policy.ledger.retracts:
            restored = None if state is None else state.absent_files
            self._absences = Absences(self.ledger.seen, delay, context.attachments, restored)
        self._rewrites: RewrittenDirectories | None = None
        if policy.ledger.whole_directories:
            self._rewrites = RewrittenDirectories(self.ledger, discovery, delay)
        self._pass = _Pass()
        self._is_paused = False
        self._delay = 0.0
        """Seconds before the next listing, once the pause ends."""
        # At the first start only: a state that is restored knows what was there.
        self._is_baseline = state is None and not policy.include_existing
        self._has_discovered = False
        self._passed_over = Counter[str]()
        """Files that count as seen and are not read, by the option that says so."""
        self._schema_version = 0
        """The newest version of the schema that a reader has stored; 0 if none was."""
        self._figures = dict.fromkeys(("rows", "bytes", "droppedRecords", "skippedFiles"), 0)
        self._wants_checkpoint = False
        self._unsaved = 0
        """Files that became pending since the last checkpoint while nothing may be planned."""

    # Discovery ------------------------------------------------------------------------------

    @override
    def start(self) -> None:
        self._schedule(0.0)

    def _schedule(self, delay: float) -> None:
        self._context.call_async(self._discover, self._discovered, delay)

    def _discover(self) -> _Portion:
        # On a worker thread, one call at a time: nothing is entered into the ledger meanwhile.
        began = time.monotonic()
        if self._pass.listing is None:
            listing = self._discovery.listing(self.ledger.seen)
            marks = None if self._absences is None else self._absences.begin()
            self._pass = _Pass(listing, marks)
            if self._rewrites is not None:
                self._rewrites.begin()
        parts: list[FoundFiles] = []
        count, size, ended, error = 0, 0, False, None
        try:
            while (
                count < self._policy.portion
                and size < (self._policy.portion_bytes or math.inf)
                and time.monotonic() - began < _PATIENCE
            ):
                files = self._next_slice()
                if files is None:
                    ended = True
                    break
                parts.append(files)
                count, size = count + len(parts[-1]), size + int(parts[-1].sizes.sum())
        except Exception as raised:  # noqa: BLE001 - told once what was found is entered
            error = raised
        if ended or error is not None:
            self._pass.listing = None
        if ended and not self.ledger.has_learned:
            self._discovery.remember()
        try:
            wanted = not (self._is_baseline and not self._has_discovered)
            now = int(self._clock() * 1_000_000)
            sifted, gone = self._select_new(parts, now, wanted=wanted, ended=ended)
        except BaseException:
            # These files were taken from the pass and entered nowhere: only a new pass finds them.
            self._pass.listing = None
            self._pass.slices.clear()
            raise
        return _Portion(sifted, ended, time.monotonic() - began, gone, error)

    def _select_new(
        self, parts: Sequence[FoundFiles], now: int, *, wanted: bool, ended: bool
    ) -> tuple[NewFiles, Sequence[str]]:
        """What of these files is new, or of all that the pass held back; and which are gone."""
        rewrites = self._rewrites if wanted else None
        holds = rewrites is not None and (ended or rewrites.has_room)
        hold = rewrites.hold if rewrites is not None and holds else None
        marks = self._pass.marks
        sifted = self.ledger.select_new(parts, now, wanted=wanted, hold=hold, marks=marks)
        if self._absences is None or not ended:
            return sifted, ()
        directories = rewrites.directories() if rewrites is not None else ()
        absent = self._absences.end(now, directories)
        if rewrites is None:
            return sifted, self._are_gone(list(absent))
        held, leaving, together = rewrites.end(absent, now)
        gone = self._are_gone(leaving)
        return self.ledger.select_new([held], now, rewritten=together), gone

    def _are_gone(self, paths: Sequence[str]) -> Sequence[str]:
        return self._discovery.are_gone(paths) if paths else ()

    def _next_slice(self) -> FoundFiles | None:
        listing, slices = self._pass.listing, self._pass.slices
        while not slices and listing and (files := next(listing, None)) is not None:
            slices.extend(self._sliced(files))
        return slices.popleft() if slices else None

    def _sliced(self, files: FoundFiles) -> Iterable[FoundFiles]:
        """The files in parts of about `portion_bytes`, if new ones are read before a batch."""
        if not self._policy.portion_bytes:
            return [files]
        part_of = np.cumsum(files.sizes) // self._policy.portion_bytes
        cuts = [0, *(np.flatnonzero(np.diff(part_of)) + 1).tolist(), len(files)]
        return [files.part(a, b) for a, b in pairwise(cuts) if a < b]

    def _discovered(self, portion: _Portion | None, error: BaseException | None) -> None:
        if portion is None:
            self._retry_or_raise(error)
            return
        self._listings.found(portion.sifted.new)
        self._pass.seconds += portion.seconds
        self._pass.new += portion.sifted.new
        had_to_wait = self._batch_order.is_waiting
        self.ledger.enter(self._batch_order.on_found(portion.sifted, ended=portion.ended))
        # Not before its files are in the ledger: a checkpoint between would skip them.
        if not self._pass.slices:
            self._discovery.notify_entered()
        if portion.gone:
            self.ledger.retract(portion.gone, int(self._clock() * 1_000_000))
            self._context.journal.info("discovery", "%d files are gone", len(portion.gone))
        if not portion.sifted.wanted:
            self._passed_over["includeExistingFiles"] += portion.sifted.new
        if self._batch_order.is_waiting and self._policy.ledger.times is not None:
            self._unsaved += portion.sifted.ranges.num_rows
            self._wants_checkpoint = self._wants_checkpoint or self._unsaved >= _UNSAVED
        if portion.sifted.ranges.num_rows or portion.gone or had_to_wait:
            self._context.request_planning()
        if portion.error is not None:
            self._retry_or_raise(portion.error)
            return
        if not portion.ended:
            self._list_again_after(0.0)
            return
        # Not at each portion: a pass that always fails at the same place would be retried for ever.
        self._listings.ended(self._pass.seconds, self._discovery.skipped.counts)
        if self._is_baseline and not self._has_discovered:
            self.ledger.flushes_all = bool(self.ledger.seen.runs) or self.ledger.can_improve
            self._end_baseline()
        else:
            self._end_pass()

    def _end_baseline(self, *_: Any) -> None:
        """Make what was there known for sure before anything new is read."""
        if self.ledger.can_improve:
            # The upkeep is at it: what is written for these files is written before the next start.
            self._context.call_async(lambda: None, self._end_baseline, _FLUSH_DELAY)
            return
        self.ledger.flushes_all = False
        self._wants_checkpoint = True
        self._end_pass()

    def _end_pass(self) -> None:
        self._has_discovered = True
        if self._absences is not None:
            self._absences.notify_entered()
        # An AvailableNow run reads what its one pass has found.
        if not self._context.bounded:
            rest = self._discovery.rest(self._pass.seconds) if self._pass.new < _MANY else 0.0
            self._list_again_after(max(self._policy.interval, rest))

    def _list_again_after(self, delay: float) -> None:
        """With this pass or the next one, unless there is enough to do: then once there is not."""
        # While nothing may be planned no pause would end.
        is_full = len(self.ledger.pending) >= self._policy.max_pending
        self._is_paused = is_full and not self._batch_order.is_waiting
        self._delay = delay
        if not self._is_paused:
            self._schedule(delay)

    def _retry_or_raise(self, error: BaseException | None) -> None:
        # What has worked may work again, unless a file is not what it was.
        has_worked = self._has_discovered or self._pass.new > 0
        self._schedule(self._listings.failed(error, self._policy.attempts, has_worked=has_worked))

    @property
    @override
    def has_discovered(self) -> bool:
        contents = self.ledger.contents
        is_ready = self._batch_order.is_ready and not (contents and contents.being_read)
        return self._has_discovered and is_ready

    # Assignment -----------------------------------------------------------------------------

    @override
    def plan_batch(self, budget: BatchBudget) -> None:
        if self._batch_order.is_waiting or (self._is_baseline and not self._has_discovered):
            # A checkpoint of a part of what was there would count the rest as new.
            return
        pending, continuing = self.ledger.pending, self._context.continuing
        if self.ledger.contents is not None:
            self.ledger.contents.begin(awaits_readers=self._context.awaits_readers)
        if budget.is_empty:
            pending.begin_batch()
        readers = self._context.parallelism
        if self._waits_for_parts or not self._parts.limit(
            budget, continuing, readers, pending.first()
        ):
            return
        chosen = self._choice.take(budget, self._spreader.cores, self._batch_order)
        if self.ledger.contents is not None:
            self._pass_over(self.ledger.contents.end())
        if chosen:
            wanted = self._parts.most_readers(
                self._parts.readers_wanted(self._spreader.readers_wanted(chosen))
            )
            readers = self._parts.most_readers(self._context.request_parallelism(wanted))
            left = {reader: self._parts.left_by(reader) for reader in continuing}
            assignment = self._spreader.spread(chosen, readers, left)
            self._send_schema(assignment)
            self._context.assign_splits(assignment)
            if not pending.replaces:
                self._parts.sent(assignment)
        # What was taken may have made room for more files.
        if self._is_paused:
            self._list_again_after(self._delay)

    def _pass_over(self, repeats: Sequence[FileSplit]) -> None:
        """These have the content of files that were read."""
        if not repeats:
            return
        self.ledger.pass_over(repeats, int(self._clock() * 1_000_000))
        self._passed_over["identity"] += len(repeats)
        # At the end of a run no other checkpoint would say so.
        self._wants_checkpoint = True
        for split in repeats:
            self._context.journal.debug(
                "discovery", "not read, as its content was (identity=content): %s", split.file.path
            )

    @property
    def _waits_for_parts(self) -> bool:
        """True while a batch that replaces rows would have other ones, which readers leave."""
        return self.ledger.pending.replaces and bool(self._context.continuing)

    def _send_schema(self, readers: Iterable[int]) -> None:
        """Send the newest schema, which is held with the splits: they are read with it."""
        if self._schema_version:
            for reader in readers:
                self._context.send_event(reader, {SCHEMA: self._schema_version})

    @override
    def is_decided(self, budget: BatchBudget) -> bool:
        """Full, or the next file in order does not fit, or nothing more comes in this run."""
        if self._batch_order.is_cut_when_asked or self._waits_for_parts:
            return False
        if self._parts.are_limited or self._context.continuing:
            # What readers leave comes first in the order of event time.
            if self._policy.event_time is not None:
                return False
            if budget.is_empty:
                readers = self._context.parallelism
                return self._parts.is_enough(self._context.continuing, readers)
        nothing_comes = self._context.bounded and self._has_discovered
        return budget.is_full or len(self.ledger.pending) > 0 or nothing_comes

    @override
    def part_budgets(self, checkpoint_id: int, readers: Sequence[int]) -> Mapping[int, PartBudget]:
        if self.ledger.pending.replaces:
            # A part that its reader may end would leave rows to another batch.
            return {}
        return self._parts.cut(checkpoint_id, readers, self._context.continuing)

    @override
    def add_splits_back(self, splits: Sequence[FileSplit], reader: int) -> None:
        self.ledger.put_back(splits)

    @override
    def requeue_splits(self, splits: Sequence[FileSplit]) -> None:
        self.ledger.requeue(splits, int(self._clock() * 1_000_000))
        files = [split.file for split in splits if split.is_whole_file and not split.replaces]
        self._identify(files, are_ordered=True)
        self._context.request_planning()

    @override
    def file_replaced(self, old: FileVersion, new: FileVersion) -> None:
        super().file_replaced(old, new)
        self._identify([new], are_ordered=False)
        self._context.request_planning()

    def _identify(self, files: Sequence[FileVersion], *, are_ordered: bool) -> None:
        """Find out the contents of pending files that no listing has brought."""
        contents, digest = self.ledger.contents, self._policy.ledger.digest
        if contents is None or digest is None:
            return
        told = {file: file.digest for file in files if file.digest}
        self.ledger.identify(told, are_ordered=are_ordered)
        if unread := [file for file in files if not file.digest]:
            contents.being_read.update(unread)
            handler = partial(self._identified, unread, are_ordered)
            self._context.call_async(partial(digest, unread), handler)

    def _identified(
        self,
        files: Sequence[FileVersion],
        are_ordered: bool,
        contents: list[str] | None,
        _: BaseException | None,
    ) -> None:
        # What could not be read is left to a reader, whose options say what that means.
        found = dict(zip(files, contents or [""] * len(files), strict=True))
        self.ledger.identify(found, are_ordered=are_ordered)
        self._context.request_planning()

    @override
    def forget_splits(self, splits: Sequence[FileSplit]) -> None:
        self.ledger.forget(splits, int(self._clock() * 1_000_000))

    # Checkpoints ----------------------------------------------------------------------------

    @override
    def snapshot_state(self, checkpoint_id: int) -> FileState:
        """The ranges that became pending since the snapshot before and still are."""
        self._spreader.start_batch()
        self._share.start_batch()
        self._batch_order.cut(checkpoint_id)
        self._wants_checkpoint, self._unsaved = False, 0
        # Under the lock: what is known at this instant is what this checkpoint and its parents
        # hold.
        self._discovery.notify_cut(checkpoint_id, self.ledger.seen)
        if self._absences is not None and self._absences.attachment is not None:
            self._absences.is_news = False
            self.ledger.note_absent(self._absences.attachment)
        return self.ledger.snapshot(checkpoint_id)

    @override
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._parts.completed(checkpoint_id)
        self._discovery.notify_checkpoint_complete(checkpoint_id)
        self._batch_order.completed(checkpoint_id)
        if self.ledger.contents is not None:
            self.ledger.contents.completed(checkpoint_id)

    @override
    def cursors(self) -> Mapping[str, Any]:
        positions = {
            "discovery": self._discovery.position(),
            "eventTime": self._batch_order.cursors(),
            "speeds": self._parts.to_json(),
        }
        return {name: cursors for name, cursors in positions.items() if cursors}

    @override
    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        self._discovery.resume(cursors.get("discovery", {}))
        self._parts.restore(cursors.get("speeds", {}))
        self._batch_order.resume_from(cursors.get("eventTime", {}))

    @override
    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.ledger.aborted(checkpoint_id)
        self._parts.aborted(checkpoint_id)
        self._batch_order.aborted(checkpoint_id)
        self._discovery.notify_aborted(checkpoint_id)

    @property
    @override
    def wants_checkpoint(self) -> bool:
        has_absent = self._absences is not None and self._absences.is_news
        return has_absent or self._wants_checkpoint or self._batch_order.wants_checkpoint

    @override
    def attachments_in_use(self) -> Collection[str]:
        written = () if self._absences is None else self._absences.names_in_use()
        return self.ledger.attachments().union(written)

    @override
    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        super().handle_reader_event(reader, event_type, value)
        if event_type == SCHEMA:
            self._schema_version = max(self._schema_version, value)
        if event_type != FIGURES:
            return
        self._parts.learn(value)
        for name in self._figures:
            self._figures[name] += int(value.get(name, 0))

    @override
    def backlog(self) -> Mapping[str, Any]:
        skipped = {**self._discovery.skipped.counts, **self._passed_over}
        return {
            **self._backlog.report(),
            **self._listings.report(),
            **self._batch_order.report(),
            "filesSeen": len(self.ledger.seen),
            **({"filesSkipped": skipped} if skipped else {}),
            **({"discoveryPaused": True} if self._is_paused else {}),
            "read": dict(self._figures),
            **self._discovery.report(),
        }

    @override
    def close(self) -> None:
        self._discovery.close()

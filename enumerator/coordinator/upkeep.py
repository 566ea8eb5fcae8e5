"""What is done for the state in the background: bases, merges of their objects, deleting old state.

One piece of work at a time, each bounded, on a worker thread; a worker that is killed in the middle
of it leaves the work to the next incarnation. A base is frozen at a cut, and written once its
checkpoint has been handed out; one that is overdue when a query starts is frozen from what was
restored, so that runs of a single batch come to their bases, too. The source is cleaned up next to
that, and says what it still needs of the state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...checkpoint_meta.documents.checkpoint import CheckpointHeader
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.retention import Retention
from ...errors import FencedError
from ..api import SplitEnumerator
from ..source_api import SourceCleaner
from .context import CoordinatorParts
from .in_flight import CheckpointRecord, CheckpointsInFlight, FrozenBase
from .restore import RestoredState, base_of, folded_state
from .returned_splits import ReturnedSplits
from .threads import Threads

_ROWS_PER_BASE = 200_000
"""A base is due when so many rows were written since the last one, however few checkpoints."""


_BASE, _PRUNING, _MERGING = "writing a base", "deleting old state", "merging the index"
_CLEANING = "cleaning up the source"

_LONGEST_RETRY: Final = 300.0
"""Most seconds until what has failed is tried again."""


class Backoff:
    """The time at which failing work is tried again: after 5 seconds, then twice as many."""

    _delay, _retry_at = 2.5, 0.0

    def failed(self) -> float:
        """Return the seconds until the next try."""
        self._delay = min(_LONGEST_RETRY, self._delay * 2)
        self._retry_at = time.monotonic() + self._delay
        return self._delay

    @property
    def is_due(self) -> bool:
        """True unless the work has failed a short time ago."""
        return time.monotonic() >= self._retry_at


class OptionalWork:
    """Work that a query can do without for a while, and what of it fails at the moment.

    It warns, is tried again later, and is reported. A store may refuse it, for example to a role
    that may not delete, and batches go on.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._failures: dict[str, str] = {}
        self._backoffs: dict[str, Backoff] = {}

    def failed(self, work: str, error: BaseException) -> float:
        """Note that `work` has failed; the seconds until it is to be tried again.

        A superseded coordinator must stop: that, and the end of the process, make the query fail.
        """
        if isinstance(error, FencedError) or not isinstance(error, Exception):
            self._threads.fail(error)
        delay = self._backoffs.setdefault(work, Backoff()).failed()
        self._failures[work] = f"{type(error).__name__}: {error}"
        self._threads.journal.warning(
            "upkeep", "%s failed and is tried again in %.0f s: %s", work, delay, error
        )
        return delay

    def succeeded(self, work: str) -> None:
        """Note that `work` was done."""
        self._failures.pop(work, None)
        self._backoffs.pop(work, None)

    def is_due(self, work: str) -> bool:
        """True unless `work` has failed a short time ago."""
        return work not in self._backoffs or self._backoffs[work].is_due

    def report(self) -> Mapping[str, object]:
        """For Spark's progress: what fails, and why."""
        return {"failingUpkeep": dict(self._failures)} if self._failures else {}


class Upkeep:
    """For one open coordinator; everything public is called under its lock."""

    def __init__(
        self,
        parts: CoordinatorParts[Any, Any],
        flight: CheckpointsInFlight,
        enumerator: SplitEnumerator[Any, Any],
        returned_splits: ReturnedSplits,
    ) -> None:
        self._parts = parts
        self._enumerator = enumerator
        self._returned_splits = returned_splits
        self._settings, self._threads = parts.settings, parts.threads
        self.optional = OptionalWork(parts.threads)
        self._cleaner = parts.source.create_cleaner(parts)
        self._may_clean = self._cleaner is not None
        """True if something to clean up may be due."""
        self._flight = flight
        self._deltas = 0
        """Checkpoints that Spark knows of, since the last one of which a base was frozen."""
        self._rows = 0
        """In them."""
        self._due: FrozenBase | None = None
        """To be written now."""
        self._new_bases = False
        self._prune_to: CheckpointRef | None = None
        self._pruned_to = NO_CHECKPOINT
        """The head of the deletion that is under way, or of the last one."""
        self._behind: Sequence[CheckpointHeader] = ()
        """Of checkpoints behind that head that name attachments; replaced as a whole."""
        self.is_busy = False
        """True as long as something is being done."""
        self._retention = Retention(
            parts.store,
            parts.history,
            parts.epoch,
            parts.check_still_ours,
            parts.attachments,
            self._attachments_in_use,
            self._settings.commits_go,
        )
        self._was_overdue = False
        self._began, self._began_at = parts.clock(), time.monotonic()
        """When the query started, by the wall clock or by its newest checkpoint, and by elapsed
        time."""

    # What happens ---------------------------------------------------------------------------

    def restored(
        self,
        restored: RestoredState[Any],
        newest: CheckpointRef,
        complete: CheckpointRef,
        there: int,
    ) -> None:
        """The coordinator resumes from `newest`, which is on every chain to come.

        Args:
            restored: the state as of `newest`.
            newest: what was cut last.
            complete: Spark will never ask for it or before again.
            there: how many checkpoints are in the directory.
        """
        self._deltas, self._rows = restored.deltas, restored.rows
        self._behind = [record.checkpoint.header for record in self._flight.cut_records]
        if self._settings.retained_seconds and newest.checkpoint > 0:
            self._began = self._parts.history.header(newest).created / 1e6
        often = self._settings.deltas_per_base
        # A run may end before a base that it has begun is written: nothing was deleted then.
        surplus = there - self._settings.retained_checkpoints
        if surplus > often and complete.checkpoint > 0:
            self._prune_to = complete
            self._was_overdue = surplus >= 2 * often
            self._go()
        if self._is_due:
            self._was_overdue |= restored.deltas >= 2 * often
            head = self._parts.history.load(newest)
            frozen = self._enumerator.freeze_state()
            self._write_soon(FrozenBase(head, list(restored.quarantined), frozen))

    def start(self) -> None:
        """Begin to clean up, if the source has a cleaner."""
        if self._cleaner is not None:
            # Spark has gone beyond it in an earlier run, or is about to: it never goes back.
            self._cleaner.completed(self._flight.latest_completed)
            self._threads.calls.call(self._cleaner.step, partial(self._cleaned, self._cleaner), 0.0)

    def _cleaned(
        self, cleaner: SourceCleaner, did: bool | None, error: BaseException | None
    ) -> None:
        self._may_clean = bool(did)
        if error is not None:
            delay = self.optional.failed(_CLEANING, error)
        else:
            self.optional.succeeded(_CLEANING)
            delay = 0.0 if did else max(1.0, self._settings.background_interval)
        self._threads.calls.call(cleaner.step, partial(self._cleaned, cleaner), delay)

    def cut(self, record: CheckpointRecord) -> None:
        """A checkpoint has just been cut. If it is taken back, so is what was frozen with it."""
        if record.checkpoint.header.attachments:
            self._behind = [*self._behind, record.checkpoint.header]
        # At the cut, since the next change of the state belongs to the next checkpoint.
        if self._due is None and self._is_due:
            quarantined = self._returned_splits.quarantined_at_cut()
            frozen = self._enumerator.freeze_state()
            record.base = FrozenBase(record.checkpoint, quarantined, frozen)

    def handed_out(self, record: CheckpointRecord) -> None:
        """Spark has got the oldest checkpoint that was not handed out."""
        header = record.checkpoint.header
        self._deltas += 1
        self._rows += header.state_rows + header.assigned_splits
        if record.base is not None:
            self._write_soon(record.base)

    def _write_soon(self, base: FrozenBase) -> None:
        self._deltas = self._rows = 0
        self._due = base
        self._go()

    def completed(self, end: CheckpointRef) -> None:
        """Spark will never ask for `end` or before again."""
        if self._cleaner is not None:
            self._cleaner.completed(end)
            self._may_clean = True
        if end.checkpoint > 0 and self._new_bases:
            self._new_bases = False
            self._prune_to = end
            self._go()

    def look(self) -> None:
        """A moment to see whether there is anything to tidy."""
        if not self._is_frozen and self._enumerator.can_improve_state:
            self._go()

    @property
    def is_overdue(self) -> bool:
        """True if there is cleaning to do, or a base or deletion long overdue at the start."""
        if self._may_clean:
            return True
        fails = bool(self.optional.report())
        return self._was_overdue and not fails and bool(self._due or self._prune_to)

    def report(self) -> dict[str, Any]:
        """For Spark's progress: how far cleaning up has come, and what fails."""
        cleaned = {} if self._cleaner is None else {"cleaned": dict(self._cleaner.figures())}
        return {**cleaned, **self.optional.report()}

    @property
    def _is_due(self) -> bool:
        """Counts what waits for Spark, too, unless a base of it is frozen."""
        ahead = [r.checkpoint.header for r in self._flight.ahead]
        rows = self._rows + sum(header.state_rows + header.assigned_splits for header in ahead)
        by_count = self._deltas + len(ahead) >= self._settings.deltas_per_base
        is_due = by_count or rows >= _ROWS_PER_BASE
        return is_due and not self._is_frozen and self.optional.is_due(_BASE)

    @property
    def _is_frozen(self) -> bool:
        return any(record.base is not None for record in self._flight.ahead)

    # One thing after the other --------------------------------------------------------------

    def _go(self) -> None:
        # One at a time: neither a base nor a merge may change the runs under the other.
        if self.is_busy:
            return
        doing, work = self._next()
        self.is_busy = work is not None
        if work is None:
            self.optional.succeeded(doing)
        else:
            self._threads.calls.call(work, partial(self._ended, doing), 0.0)

    def _next(self) -> tuple[str, Callable[[], None] | None]:
        if self._due is not None:
            return _BASE, partial(self._write, self._due)
        if self._prune_to is not None:
            hold = (self._prune_to, 0) if self._cleaner is None else self._cleaner.hold()
            if hold is not None:
                self._pruned_to = hold[0]
                return _PRUNING, partial(self._prune, *hold)
            self._prune_to, self._new_bases = None, True
        # Not while something is frozen: it would be written twice. What is frozen after it contains
        # all that is merged.
        improve = None if self._is_frozen else self._enumerator.improve_state()
        return _MERGING, improve and partial(improve, self._parts.attachments)

    def _ended(self, doing: str, _: None, error: BaseException | None) -> None:
        if error is not None:
            # Busy until then: what comes meanwhile is done after it.
            delay = self.optional.failed(doing, error)
            if doing == _BASE:
                # What was frozen may be half written. The next cut freezes the state again.
                self._due, self._deltas = None, self._settings.deltas_per_base
            self._threads.calls.call(lambda: None, self._rested, delay)
            return
        self.optional.succeeded(doing)
        if doing == _BASE:
            self._due, self._new_bases = None, True
        elif doing == _PRUNING:
            self._prune_to, least = None, self._pruned_to.checkpoint
            self._behind = [header for header in self._behind if header.checkpoint > least]
        self._rested()

    def _rested(self, *_: object) -> None:
        self.is_busy = False
        self._go()

    def _attachments_in_use(self) -> Collection[str]:
        # First those of the enumerator: a cut hands them over to its checkpoint. A deletion looks
        # at its head and what comes before, and a restart may begin behind it.
        mine = set(self._enumerator.attachments_in_use())
        return mine.union(each.name for header in self._behind for each in header.attachments)

    def _prune(self, head: CheckpointRef, needed: int) -> None:
        count = max(self._settings.retained_checkpoints, needed)
        seconds = self._settings.retained_seconds
        # Two clocks: a wall clock that is set ahead would make every checkpoint old at once. The
        # other one does not run while the query is stopped, which only retains more.
        now = min(self._parts.clock(), self._began + time.monotonic() - self._began_at)
        younger = int((now - seconds) * 1_000_000) if seconds else None
        self._retention.prune(head, count, younger)
        self._threads.journal.info("upkeep", "old state was deleted, up to %s", head)

    def _write(self, due: FrozenBase) -> None:
        parts = self._parts
        if due.frozen is not None:
            written = due.frozen.write(parts.attachments)
        else:
            ref = due.head.ref
            written = folded_state(parts.history, ref, parts.source, parts.attachments)
        # Writing the objects may have taken minutes: a superseded coordinator adds no base to the
        # chain.
        parts.check_still_ours()
        parts.attachments.check(written.attachments)
        version = parts.source.state_serializer.version
        parts.history.publish_base(base_of(due.head, due.quarantined, written, version))
        self._threads.journal.info("upkeep", "the base of %s is written", due.head.ref)

"""What is done for the state in the background: bases, tidying beside them, letting old state go.

One piece of work at a time, each bounded, on a worker thread; whatever is killed in the middle of
it is done anew by the next incarnation. A base is frozen at a cut, and written once its checkpoint
has been handed out; one that is overdue when a query starts is frozen from what was restored, so
that runs of a single batch come to their bases, too.

Not here: what a base is made of (`restore.py`, `large_state.py`), what may go
(`checkpoint_meta/retention.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..checkpoint_meta.attachments import Attachments
from ..checkpoint_meta.checkpoint import Checkpoint, QuarantinedSplit
from ..checkpoint_meta.epochs import raise_format
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reference import CheckpointRef
from ..checkpoint_meta.retention import Retention
from ..checkpoint_meta.state_store import StateStore
from .api import EnumeratorSource, SplitEnumerator
from .large_state import FrozenState
from .restore import RestoredState, base_of, folded_state
from .sent_back import SentBackSplits
from .settings import CoordinatorSettings
from .threads import Threads

_ROWS_PER_BASE = 200_000
"""A base is due when so many rows were written since the last one, however few checkpoints."""


@dataclass(frozen=True)
class _Base:
    """What is needed to write the base of one checkpoint."""

    head: Checkpoint
    quarantined: Sequence[QuarantinedSplit]
    frozen: FrozenState | None


@dataclass(frozen=True)
class StateDirectory:
    """Where the state is, and what is known of it."""

    store: StateStore
    history: CheckpointHistory
    attachments: Attachments
    epoch: int
    check_still_ours: Callable[[], None]


class Upkeep:
    """For one open coordinator; everything public is called under its lock."""

    def __init__(
        self,
        directory: StateDirectory,
        source: EnumeratorSource[Any, Any],
        enumerator: SplitEnumerator[Any, Any],
        sent_back: SentBackSplits,
        settings: CoordinatorSettings,
        threads: Threads,
        clock: Callable[[], float],
    ) -> None:
        self._directory = directory
        self._source = source
        self._enumerator = enumerator
        self._sent_back = sent_back
        self._settings = settings
        self._threads = threads
        self._clock = clock
        self.hold: Callable[[], tuple[CheckpointRef, int] | None] | None = None
        """Says what others still need of the state: see `Cleaning.hold`."""
        self._deltas = 0
        self._rows = 0
        self._frozen: _Base | None = None
        """Of a checkpoint that is not handed out yet."""
        self._due: _Base | None = None
        """To be written now."""
        self._new_bases = False
        self._let_go: CheckpointRef | None = None
        self._is_busy = False
        self._retention = Retention(
            directory.store,
            directory.history,
            directory.epoch,
            directory.check_still_ours,
            directory.attachments,
            enumerator.attachments_in_use,
        )
        self.bases_written = 0
        self.is_overdue = False
        """True if a base was long overdue when the query started, and is still not written."""

    # What happens ---------------------------------------------------------------------------

    def restored(self, restored: RestoredState[Any], newest: CheckpointRef) -> None:
        """The coordinator goes on from `newest`, which is on every chain to come."""
        self._deltas, self._rows = restored.deltas, restored.rows
        if self._is_due(0, 0):
            self.is_overdue = restored.deltas >= 2 * self._settings.deltas_per_base
            head = self._directory.history.load(newest)
            frozen = self._enumerator.freeze_state()
            self._due = _Base(head, list(restored.quarantined), frozen)
            self._deltas = self._rows = 0
            self._go()

    def cut(self, checkpoint: Checkpoint) -> None:
        """A checkpoint has just been cut."""
        header = checkpoint.header
        rows = header.state_rows + header.assigned_splits
        if self._due is None and self._is_due(1, rows):
            quarantined = self._sent_back.quarantined_at_cut()
            self._frozen = _Base(checkpoint, quarantined, self._enumerator.freeze_state())

    def taken_back(self) -> None:
        """What was cut will never be handed out."""
        self._frozen = None

    def handed_out(self, checkpoint: Checkpoint) -> None:
        """Spark has got the checkpoint that was cut last."""
        header = checkpoint.header
        self._deltas += 1
        self._rows += header.state_rows + header.assigned_splits
        if self._frozen is not None:
            self._due, self._frozen = self._frozen, None
            self._deltas = self._rows = 0
            self._go()

    def completed(self, end: CheckpointRef) -> None:
        """Spark will never ask for `end` or before again."""
        if end.checkpoint > 0 and self._new_bases:
            self._new_bases = False
            self._let_go = end
            self._go()

    def look(self) -> None:
        """A moment to see whether there is anything to tidy."""
        if self._frozen is None and self._enumerator.can_improve_state:
            self._go()

    @property
    def is_busy(self) -> bool:
        """True as long as something is being done."""
        return self._is_busy

    def _is_due(self, deltas: int, rows: int) -> bool:
        by_count = self._deltas + deltas >= self._settings.deltas_per_base
        return by_count or self._rows + rows >= _ROWS_PER_BASE

    # One thing after the other --------------------------------------------------------------

    def _go(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._threads.calls.call(self._step, self._stepped, 0.0)

    def _stepped(self, did: bool | None, error: BaseException | None) -> None:
        self._is_busy = False
        if error is not None:
            self._threads.fail(error)
        elif did:
            self._go()

    def _step(self) -> bool:
        with self._threads.lock:
            due, let_go = self._due, self._let_go
        if due is not None:
            self._write(due)
            with self._threads.lock:
                self._due = None
                self.is_overdue = False
                self._new_bases = True
                self.bases_written += 1
        elif let_go is not None:
            self._prune(let_go)
            with self._threads.lock:
                self._let_go = None
        else:
            # Not while something is frozen: it would be written twice.
            did = self._frozen is None and self._enumerator.improve_state(
                self._directory.attachments
            )
            if did:
                self._threads.journal.info("upkeep", "parts of the index were merged")
            return did
        return True

    def _prune(self, end: CheckpointRef) -> None:
        with self._threads.lock:
            held = self.hold() if self.hold is not None else (end, 0)
            if held is None:
                self._new_bases = True
                return
        head, needed = held
        # One more than promised: the oldest may have commits of its parent to count.
        count = max(self._settings.retained_checkpoints, needed) + 1
        seconds = self._settings.retained_seconds
        younger = int((self._clock() - seconds) * 1_000_000) if seconds else None
        self._retention.prune(head, count, younger)
        self._threads.journal.info("upkeep", "old state was let go of, up to %s", head)

    def _write(self, due: _Base) -> None:
        directory = self._directory
        if due.frozen is not None:
            written = due.frozen.write(directory.attachments)
        else:
            ref, source = due.head.ref, self._source
            written = folded_state(directory.history, ref, source, directory.attachments)
        if written.attachments:
            raise_format(directory.store)
        directory.check_still_ours()
        version = self._source.state_serializer.version
        directory.history.publish_base(base_of(due.head, due.quarantined, written, version))
        self._threads.journal.info("upkeep", "the base of %s is written", due.head.ref)

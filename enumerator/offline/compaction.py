"""Makes a state directory small while no query runs: what its upkeep would come to, at once.

Of the checkpoints that are retained two get a base: the oldest, whose runs are merged, and the
newest, which refers to the same runs and one more. Then nothing needs what is below the oldest, nor
the bases between. Each step leaves every retained checkpoint with a chain that can be restored:
a base is only replaced or dropped where the checkpoints below it are all there. So anything that it
is killed at, Spark's offset leads to a whole state.

Not here: which checkpoint is the newest that counts, and who may do this (connector); what may be
deleted (`checkpoint_meta/retention.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.epochs import check_not_fenced
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.retention import Retention
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateError, StateMissingError
from ..coordinator.restore import base_of, restore
from ..source_api import EnumeratorSource
from .bootstrap_checkpoint import offline_state


class Compaction:
    """Makes one state directory small, under an epoch that was claimed for it.

    Fenced like a query: one that begins meanwhile stops it before its next step.
    """

    def __init__(self, store: StateStore, source: EnumeratorSource[Any, Any], epoch: int) -> None:
        self._store = store
        self._source = source
        self._epoch = epoch
        self._attachments = Attachments(store, epoch)
        self._check_still_ours = partial(check_not_fenced, store, epoch)

    def run(self, newest: CheckpointRef, retained: int, younger_than: int | None = None) -> None:
        """Compact what leads to `newest`.

        Args:
            newest: a checkpoint that is in Spark's log. What descends from it stays as it is.
            retained: so many before it stay.
            younger_than: those cut after it stay, too; microseconds since the epoch.

        Raises:
            FencedError: a query has begun.
            StateError: the state is damaged; nothing is deleted then.
        """
        retention = Retention(
            self._store,
            CheckpointHistory(self._store),
            self._epoch,
            self._check_still_ours,
            self._attachments,
            commits_go=self._without_landed,
        )
        oldest = retention.oldest(newest, retained, younger_than)
        if oldest is not None and oldest != newest and self._may_write(oldest):
            self._write_base(oldest, {oldest}, merge=True)
        floor = self._floor(newest, oldest)
        between = self._between(newest, floor)
        if between or not self._is_on_top_of(newest, floor):
            self._write_base(newest, {*between, newest}, merge=False)
        for ref in between:
            self._check_still_ours()
            CheckpointHistory(self._store).drop_base(ref)
        retention.prune(newest, retained, younger_than)

    def _without_landed(self, refs: Collection[CheckpointRef]) -> Collection[CheckpointRef]:
        """Those whose commits name no other files: only the query knows where to sweep first."""
        commits = ReaderCommits(self._store)
        return [
            ref
            for ref in refs
            if not any(c.landed is not None or c.bad_records for c in commits.of(ref))
        ]

    def _may_write(self, ref: CheckpointRef) -> bool:
        """True if the base of `ref` is not there, or can be done without for a moment."""
        if ref not in CheckpointHistory(self._store).bases():
            return True
        history = CheckpointHistory(self._store, {ref})
        try:
            # The proof that it can be done without is to do without it.
            restore(history, ref, self._source, Attachments(self._store, 0))
        except StateError:
            return False
        return True

    def _floor(self, newest: CheckpointRef, oldest: CheckpointRef | None) -> CheckpointRef | None:
        """The base that everything retained rests on; None if that is the very beginning."""
        history = CheckpointHistory(self._store)
        bases, ref = set(history.bases()), newest
        lowest: CheckpointRef | None = None
        while ref != NO_CHECKPOINT:
            if ref in bases and ref != newest:
                lowest = ref
            if ref == oldest and ref in bases:
                return ref
            try:
                ref = history.header(ref).parent
            except StateMissingError:
                # What is gone was deleted because of the lowest base.
                return lowest or newest
        return None

    def _between(
        self, newest: CheckpointRef, floor: CheckpointRef | None
    ) -> Collection[CheckpointRef]:
        history = CheckpointHistory(self._store)
        above = NO_CHECKPOINT if floor is None else floor
        # What a newer incarnation has written is not ours to drop.
        return [ref for ref in history.bases() if above < ref < newest and ref.epoch <= self._epoch]

    def _is_on_top_of(self, newest: CheckpointRef, floor: CheckpointRef | None) -> bool:
        """True if the base of `newest` is there, and has the floor's runs and one more at most."""
        history = CheckpointHistory(self._store)
        if newest not in history.bases():
            return False
        if newest == floor or not self._may_write(newest):
            return True
        below = () if floor is None else history.read_base(floor).header.attachments
        mine = history.read_base(newest).header.attachments
        return list(mine[: len(below)]) == list(below) and len(mine) <= len(below) + 2

    def _write_base(
        self, ref: CheckpointRef, passed_over: Collection[CheckpointRef], *, merge: bool
    ) -> None:
        history = CheckpointHistory(self._store, passed_over)
        restored = restore(history, ref, self._source, self._attachments)
        enumerator = offline_state(self._source, restored).enumerator
        while merge and enumerator.improve_state(self._attachments):
            self._check_still_ours()
        frozen = enumerator.freeze_state()
        assert frozen is not None, "only for sources that keep their whole state"
        written = frozen.write(self._attachments)
        version = self._source.state_serializer.version
        base = base_of(history.load(ref), restored.quarantined, written, version)
        self._check_still_ours()
        # `publish_base` keeps a base that can be read. A crash between dropping and publishing
        # leaves none, which `_may_write` has permitted.
        if ref in history.bases():
            history.drop_base(ref)
        history.publish_base(base)

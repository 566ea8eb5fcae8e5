"""Lets old state go, without ever touching what a chain that is alive can need.

Not here: when that happens (the coordinator, in the background).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..errors import StateCorruptError, StateMissingError
from .documents.attachments import Attachments
from .documents.checkpoint import CheckpointHeader
from .documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef, refs_in
from .documents.layout import ABANDONED, INDEX, READERS, base_object, checkpoint_object
from .history import CheckpointHistory
from .stores.contract import StateStore


class Retention:
    """Deletes for one incarnation of the coordinator.

    What a newer epoch has written is never deleted. What an older one has written may be part of
    a newer one's chain as well; a newer one that Spark knows of builds on what this one has
    handed to Spark, and so on something that is retained. `check_still_ours` is asked before
    each deletion all the same: a superseded coordinator that begins to delete stops at once.
    """

    def __init__(
        self,
        store: StateStore,
        history: CheckpointHistory,
        epoch: int,
        check_still_ours: Callable[[], None],
        attachments: Attachments,
        in_use: Callable[[], Collection[str]] = tuple,
        commits_go: Callable[[Collection[CheckpointRef]], Collection[CheckpointRef]] = list,
    ) -> None:
        """`in_use` names attachments that stay, whether anything refers to them or not.

        `commits_go` is asked before reader commits of some checkpoints are deleted: whose may be.
        """
        self._commits_go = commits_go
        self._store = store
        self._history = history
        self._epoch = epoch
        self._check_still_ours = check_still_ours
        self._attachments = attachments
        self._in_use = in_use
        self._headers: dict[CheckpointRef, CheckpointHeader] = {}
        """Of the checkpoints that the last walk came by."""
        self._referred: dict[CheckpointRef, frozenset[str]] = {}
        """What bases refer to."""

    def prune(self, head: CheckpointRef, retained: int, younger_than: int | None = None) -> None:
        """Delete what no restore of `head` or of the `retained` checkpoints before it can need.

        Checkpoints cut after `younger_than` (microseconds since the epoch) are retained as well.
        Only what lies below the newest base on their chain goes, and older bases last, so a crash
        in the middle leaves every retained chain whole. A base of a dead incarnation is on no
        chain and never counts, nor does one that cannot be read; ids are not counted either,
        since an aborted checkpoint leaves a gap. Attachments go when nothing refers to them.

        Raises:
            FencedError: by way of `check_still_ours`; what was to go stays.
        """
        oldest, floor = self.oldest_and_floor(head, retained, younger_than)
        if oldest is not None and floor is not None:
            self._prune_below(oldest, floor)
        self._prune_attachments()

    def _prune_below(self, oldest: CheckpointRef, floor: CheckpointRef) -> None:
        old = [r for r in refs_in(self._store.list(READERS)) if r.checkpoint < oldest.checkpoint]
        commits = self._commits_go(old) if old else ()
        for ref in self._history.checkpoints():
            if ref.checkpoint <= floor.checkpoint and ref.checkpoint < oldest.checkpoint:
                self._delete(checkpoint_object(ref), ref.epoch)
        for ref in commits:
            self._delete(f"{READERS}/{ref.name}", ref.epoch)
        for ref in refs_in(self._store.list(ABANDONED)):
            if ref.checkpoint < oldest.checkpoint:
                self._delete(f"{ABANDONED}/{ref.name}", ref.epoch)
        for ref in self._history.bases():
            if ref.checkpoint <= floor.checkpoint and ref != floor:
                self._delete(base_object(ref), ref.epoch)

    def _delete(self, name: str, epoch: int) -> None:
        if epoch <= self._epoch:
            self._check_still_ours()
            self._store.delete(name)

    def oldest_and_floor(
        self, head: CheckpointRef, retained: int, younger_than: int | None
    ) -> tuple[CheckpointRef | None, CheckpointRef | None]:
        """The oldest checkpoint that stays, and the base that it is restored from.

        None where everything stays, and where nothing below can go for want of a base.
        """
        bases = set(self._history.bases())
        ref, oldest = head, None
        earlier, self._headers = self._headers, {}
        while ref != NO_CHECKPOINT:
            try:
                header = earlier.get(ref) or self._history.header(ref)
            except StateMissingError:
                # Pruned already, when fewer were to be retained or by the same floor: it can be
                # the floor still, but not the oldest that stays.
                header = None
            if retained <= 0 and oldest is None and header is not None:
                is_old = younger_than is None or header.created < younger_than
                oldest = ref if is_old else None
            retained -= 1
            if oldest is not None and ref in bases and self._is_whole(ref):
                return oldest, ref
            if header is None:
                break
            self._headers[ref] = header
            ref = header.parent
        return oldest, None

    def _is_whole(self, ref: CheckpointRef) -> bool:
        # What lies below it goes on the strength of this object alone, and of what it refers to.
        try:
            for attachment in self._history.read_base(ref).header.attachments:
                if attachment.name not in self._attachments.sound:
                    self._attachments.read(attachment)
        except (StateCorruptError, StateMissingError):
            return False
        return True

    def _prune_attachments(self) -> None:
        # Listed before anything that may refer to them: what is published later is not listed.
        there = [leaf for leaf in self._store.list(INDEX) if _epoch_of(leaf) is not None]
        mine = [leaf for leaf in there if (_epoch_of(leaf) or 0) <= self._epoch]
        referred = self._all_referred()
        if referred is None:
            return
        kept = referred.union(self._in_use())
        for leaf in mine:
            if leaf not in kept:
                self._delete(f"{INDEX}/{leaf}", _epoch_of(leaf) or 0)

    def _all_referred(self) -> frozenset[str] | None:
        """What any base refers to, or a checkpoint on the chain; None if that cannot be known."""
        earlier, self._referred = self._referred, {}
        for ref in self._history.bases():
            try:
                self._referred[ref] = earlier.get(ref) or _names(
                    self._history.read_base(ref).header
                )
            except (StateCorruptError, StateMissingError):
                # Damaged, or just deleted by somebody who has written a newer one.
                return None
        return frozenset().union(*self._referred.values(), *map(_names, self._headers.values()))


def _names(header: CheckpointHeader) -> frozenset[str]:
    return frozenset(attachment.name for attachment in header.attachments)


def _epoch_of(leaf: str) -> int | None:
    stem = leaf.partition("-")[0]
    return int(stem) if stem.isascii() and stem.isdigit() else None

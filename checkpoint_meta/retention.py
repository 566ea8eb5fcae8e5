"""Lets old state go, without ever touching what a chain that is alive can need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from ..errors import StateCorruptError, StateMissingError
from .documents.attachments import Attachments
from .documents.checkpoint import CheckpointHeader
from .documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointIdentity,
    CheckpointRef,
    identities_in,
    refs_in,
)
from .documents.layout import ABANDONED, INDEX, READERS, REREADS, base_object, checkpoint_object
from .history import CheckpointHistory
from .stores.contract import StateStore

CommitsGo: TypeAlias = Callable[[Collection[CheckpointIdentity]], Collection[CheckpointIdentity]]
"""Asked before reader commits of some checkpoints are deleted: whose may be."""


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
        commits_go: CommitsGo = list,
    ) -> None:
        """`in_use` names attachments that stay, whether anything refers to them or not."""
        self._commits_go = commits_go
        self._store = store
        self._history = history
        self._epoch = epoch
        self._check_still_ours = check_still_ours
        self._attachments = attachments
        self._in_use = in_use
        self._headers: dict[CheckpointRef, CheckpointHeader] = {}
        """Headers of the checkpoints that the last walk visited; they do not change."""
        self._referred: dict[CheckpointRef, frozenset[str]] = {}
        """What bases refer to."""

    def prune(self, head: CheckpointRef, retained: int, younger_than: int | None = None) -> None:
        """Delete what neither `head` nor any of the `retained` checkpoints before it needs.

        Checkpoints cut after `younger_than` (microseconds since the epoch) are retained as well.
        Only what lies below the newest base on their chain goes, and older bases last, so a crash
        in the middle leaves every retained chain whole. A base of a dead incarnation is on no
        chain and never counts, nor does one that cannot be read; ids are not counted either,
        since an aborted checkpoint leaves a gap. Attachments go when nothing refers to them.

        Raises:
            FencedError: by way of `check_still_ours`; what was to go stays.
        """
        # Not from memory: a directory restored from a backup while this query runs may have its
        # claim, and lacks what it has cut since.
        self._store.read_part(checkpoint_object(head), 0, 1)
        # Decided as a whole before anything is deleted: this walk reads what goes then.
        oldest = self.oldest(head, retained, younger_than)
        floor = self._floor(oldest) if oldest is not None else None
        if oldest is not None and floor is not None:
            self._headers = {ref: header for ref, header in self._headers.items() if ref >= floor}
            self._prune_below(oldest, floor)
        self._prune_attachments()

    def _prune_below(self, oldest: CheckpointRef, floor: CheckpointRef) -> None:
        def old(refs: Iterable[CheckpointRef]) -> list[CheckpointRef]:
            # A checkpoint whose object is there has its commits: a query may start from it.
            below = (ref for ref in refs if ref.checkpoint <= floor.checkpoint)
            return [ref for ref in below if ref.checkpoint < oldest.checkpoint]

        commits = self._folders(READERS, old)
        if commits:
            commits = list(self._commits_go(commits))
        # A crash anywhere below leaves commits without a checkpoint, which the next run deletes,
        # and never a checkpoint without its commits or a retained chain without its base.
        for ref in old(self._history.checkpoints()):
            self._delete(checkpoint_object(ref), ref.epoch)
        for folder in commits:
            self._delete(f"{READERS}/{folder.name}", folder.ref.epoch)
        gone = {folder.ref for folder in commits}
        for leaf in self._store.list(REREADS):
            for ref in gone.intersection(refs_in([leaf])):
                # After the commits, of which it says which ones count.
                self._delete(f"{REREADS}/{leaf}", ref.epoch)
        for folder in self._folders(ABANDONED, old):
            self._delete(f"{ABANDONED}/{folder.name}", folder.ref.epoch)
        for ref in self._history.bases():
            if ref.checkpoint <= floor.checkpoint and ref != floor:
                self._delete(base_object(ref), ref.epoch)

    def _folders(
        self, directory: str, old: Callable[[Iterable[CheckpointRef]], Collection[CheckpointRef]]
    ) -> list[CheckpointIdentity]:
        folders = identities_in(self._store.list(directory))
        refs = old({folder.ref for folder in folders})
        return [folder for folder in folders if folder.ref in refs]

    def _delete(self, name: str, epoch: int) -> None:
        if epoch <= self._epoch:
            self._check_still_ours()
            self._store.delete(name)

    def oldest(
        self, head: CheckpointRef, retained: int, younger_than: int | None = None
    ) -> CheckpointRef | None:
        """The oldest checkpoint that has to stay; None if all do.

        It is older than what is `retained`. A restore of that counts commits of what was in flight
        at its cut, and each of these resolves its continuations from commits before it. What is in
        flight at a later cut was so at an earlier one, or was cut since.
        """
        promised = self._promised(head, retained, younger_than)
        if promised is None:
            return None
        in_flight = filter(None, map(self._header, promised.in_flight))
        origins = {origin for header in in_flight for origin in header.origins}
        needed = {promised.parent, *promised.in_flight, *origins} - {NO_CHECKPOINT}
        return min(ref for ref in needed if self._header(ref) is not None)

    def _promised(
        self, head: CheckpointRef, retained: int, younger_than: int | None
    ) -> CheckpointHeader | None:
        """The oldest that is retained for its own sake; None if the chain ends before it."""
        # `head` comes before the retained ones and is not counted, so the walk takes a step more.
        oldest, left, ref = None, retained, head
        while ref != NO_CHECKPOINT and (header := self._header(ref)) is not None:
            is_young = younger_than is not None and header.created >= younger_than
            if left < 0 and not is_young:
                break
            oldest, left, ref = header, left - 1, header.parent
        return oldest if left < 0 else None

    def _floor(self, ref: CheckpointRef) -> CheckpointRef | None:
        """The newest base that `ref` can be restored from; None if no base can."""
        bases, header = set(self._history.bases()), self._header(ref)
        due = header.identity if header else None
        while due is not None and due.ref != NO_CHECKPOINT:
            if due.ref in bases and self._is_whole(due):
                return due.ref
            header = self._header(due.ref)
            due = header.cut_after if header else None
        return None

    def _header(self, ref: CheckpointRef) -> CheckpointHeader | None:
        """None if it was deleted already: fewer were retained then, or a base replaces it."""
        if ref not in self._headers:
            try:
                self._headers[ref] = self._history.header(ref)
            except StateMissingError:
                return None
        return self._headers[ref]

    def _is_whole(self, due: CheckpointIdentity) -> bool:
        # What lies below it goes on the strength of this object alone, and of what it refers to.
        try:
            base = self._history.read_base(due.ref)
            # A query whose directory was deleted while it wrote may have left one of this name.
            if base.identity != due:
                return False
            self._attachments.check(base.header.attachments)
        except (StateCorruptError, StateMissingError):
            return False
        return True

    def _prune_attachments(self) -> None:
        # Listed before anything that may refer to them: what is published later is not listed.
        there = {leaf: _epoch_of(leaf) for leaf in self._store.list(INDEX)}
        referred = self._all_referred()
        if referred is None:
            return
        kept = referred.union(self._in_use())
        for leaf, epoch in there.items():
            if epoch is not None and leaf not in kept:
                self._delete(f"{INDEX}/{leaf}", epoch)

    def _all_referred(self) -> frozenset[str] | None:
        """Return what any base or checkpoint on the chain refers to; None if that is unknown."""
        earlier, self._referred = self._referred, {}
        for ref in self._history.bases():
            try:
                self._referred[ref] = earlier.get(ref) or _names(
                    self._history.read_base(ref).header
                )
            except (StateCorruptError, StateMissingError):
                # Damaged, or just deleted by a query that has written a newer one.
                return None
        return frozenset().union(*self._referred.values(), *map(_names, self._headers.values()))


def _names(header: CheckpointHeader) -> frozenset[str]:
    return frozenset(attachment.name for attachment in header.attachments)


def _epoch_of(leaf: str) -> int | None:
    stem = leaf.partition("-")[0]
    # Objects with other names are not ours to delete.
    return int(stem) if stem.isascii() and stem.isdigit() else None

"""The chain of checkpoints in a state directory: publish, find, walk, compact.

A checkpoint is a delta on its parent; a base is the whole state as of one checkpoint. Restoring
reads the newest base on the chain and the deltas after it, so its cost follows what is new.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from ..errors import FencedError, StateCorruptError, StateError, StateMissingError
from .documents.checkpoint import Checkpoint, CheckpointHeader
from .documents.checkpoint_ref import NO_CHECKPOINT, CheckpointIdentity, CheckpointRef, refs_in
from .documents.layout import BASES, CHECKPOINTS, base_object, checkpoint_object
from .documents.visibility_check import VisibilityCheck
from .stores.contract import StateStore

LOG: Final = logging.getLogger("pyspark_sluice.state")

_CACHED = 4
"""Checkpoints kept in memory at least: the one just cut is read again at once by `partitions`."""


class CheckpointHistory:
    """The checkpoints of one state directory. Safe for use by several threads."""

    def __init__(
        self, store: StateStore, passed_over: Collection[CheckpointRef] = (), ahead: int = 0
    ) -> None:
        """Bases of the checkpoints `passed_over` are not used; `ahead` wait to be handed out."""
        self._cached = _CACHED + ahead
        self._store = store
        self._recent: OrderedDict[CheckpointRef, Checkpoint] = OrderedDict()
        self._unreadable: frozenset[str] = frozenset()
        self._skipped_bases = frozenset(passed_over)
        self._reason: StateError | None = None

    def publish(self, checkpoint: Checkpoint) -> Checkpoint:
        """Make a checkpoint durable, create-only; only then may its offset be shown to Spark.

        Returns:
            The checkpoint as it would be loaded: with its visibility check, and without its file.

        Raises:
            FencedError: another query has published one of that name, after its directory was
                deleted or restored from a backup.
        """
        name = checkpoint_object(checkpoint.ref)
        # Mostly signed already, at the cut: the next one names it by its checksum.
        signed = checkpoint.signed()
        data = signed.to_bytes()
        try:
            self._store.publish(name, data)
        except FileExistsError as error:
            raise FencedError(
                "another query has taken over this state directory",
                f"{self._store.location}/{name}",
                "a checkpoint of this epoch by another query",
                "checkpoints of this query alone",
                "The directory was deleted, or restored from a backup, while a query ran. Start "
                "the query again.",
            ) from error
        visibility = VisibilityCheck.of(name, data, signed.header.checksum)
        # It is durable now, and its bytes need not stay in memory for as long as it is remembered.
        published = replace(signed, visibility=visibility, file=None)
        self._remember(published)
        return published

    def _remember(self, checkpoint: Checkpoint) -> None:
        # Replaced, never changed: other threads read it without a lock, and may lose an entry at
        # most.
        recent = self._recent.copy()
        recent[checkpoint.ref] = checkpoint
        while len(recent) > self._cached:
            recent.popitem(last=False)
        self._recent = recent

    def load(self, ref: CheckpointRef) -> Checkpoint:
        """The checkpoint named `ref`.

        Raises:
            StateMissingError: it is not there.
            StateError: it is damaged or newer than this release.
        """
        checkpoint = self._recent.get(ref)
        if checkpoint is None:
            checkpoint = self._read(checkpoint_object(ref), ref)
            self._remember(checkpoint)
        return checkpoint

    def _read(self, name: str, ref: CheckpointRef) -> Checkpoint:
        where = f"{self._store.location}/{name}"
        try:
            data = self._store.read(name)
        except FileNotFoundError as error:
            raise StateMissingError(
                f"{ref} is not in the state directory",
                where,
                "no such object",
                f"the checkpoint that Spark's offset log refers to as {ref}",
                "Check that checkpointLocation (or stateLocation) and sourceName are those of "
                "the earlier run; if the state is lost, start with a new checkpoint.",
            ) from error
        checkpoint = Checkpoint.from_bytes(data, where)
        # A copy can change the name of an object; what it says of itself is covered by its
        # checksum.
        if checkpoint.ref != ref:
            raise StateCorruptError(
                "a checkpoint is stored under the name of another checkpoint",
                where,
                str(checkpoint.ref),
                str(ref),
                "Restore the object from a copy.",
            )
        return replace(
            checkpoint, visibility=VisibilityCheck.of(name, data, checkpoint.header.checksum)
        )

    def between(self, start: CheckpointRef, end: CheckpointRef) -> list[Checkpoint]:
        """The checkpoints after `start` up to and including `end`, oldest first.

        Raises:
            StateCorruptError: `end` does not descend from `start`.
        """
        links: list[Checkpoint] = []
        ref = end
        while ref != start:
            # Ids grow along a chain, so nothing below `start` can still lead to it.
            if ref.checkpoint <= start.checkpoint:
                raise StateCorruptError(
                    f"{end} does not descend from {start}",
                    self._store.location,
                    f"its ancestor {ref}",
                    str(start),
                    "The state directory and Spark's offset log belong to different runs: check "
                    "checkpointLocation and sourceName.",
                )
            checkpoint = self.load(ref)
            self._check_link(checkpoint, links)
            links.append(checkpoint)
            ref = checkpoint.header.parent
        if links and start != NO_CHECKPOINT:
            self._check_link(self.load(start), links)
        return links[::-1]

    def _check_link(self, parent: Checkpoint, newer: Sequence[Checkpoint]) -> None:
        # Links of one name may come from a backup, or from a copy that has gone its own way.
        if newer:
            self.check_identity(
                newer[-1].header.cut_after, f"the parent of {newer[-1].ref}", parent
            )

    def check_identity(
        self, expected: CheckpointIdentity, named_by: str, found: Checkpoint | None = None
    ) -> None:
        """Raise unless the checkpoint of that name is this very one.

        Args:
            expected: names a checkpoint.
            named_by: what names it, for messages.
            found: that of this directory, or a base of it; loaded where it is not given.

        Raises:
            StateMissingError: it is not there.
            StateCorruptError: it belongs to another query, or to another copy of the directory.
        """
        identity = (found or self.load(expected.ref)).identity
        if identity == expected:
            return
        is_other = identity.lineage != expected.lineage
        raise StateCorruptError(
            f"{expected.ref} is not the expected checkpoint: it is from "
            + ("another query" if is_other else "another copy of the state"),
            self._store.location,
            f"lineage {identity.lineage}, checksum {identity.checksum}",
            f"lineage {expected.lineage}, checksum {expected.checksum} ({named_by})",
            (
                "Give each source its own sourceName, and keep it at every start. Spark "
                "identifies the sources of a query only by their order."
            )
            if is_other
            else "Restore Spark's checkpoint and the state directory from one backup, both whole, "
            "or use startingState in a new checkpointLocation.",
        )

    def chain(self, ref: CheckpointRef) -> list[Checkpoint]:
        """Return what to fold for the state as of `ref`: a base where there is one, then deltas.

        A base that cannot be read is skipped for the chain below it, with a warning.

        Raises:
            StateMissingError: a link is gone.
            StateCorruptError: a link is damaged, or a base is and what it replaces is gone.
        """
        bases = set(self.bases()) - self._skipped_bases
        # The listing is only needed for the base of `ref` itself, which no newer link vouches for.
        checkpoints = self.checkpoints() if ref in bases else ()
        links: list[Checkpoint] = []
        skipped = self._reason
        while ref != NO_CHECKPOINT:
            if ref in bases:
                try:
                    base = self.read_base(ref)
                    self._check_link(base, links)
                    # Retention may have deleted the checkpoint that a base replaces; then the base
                    # counts alone.
                    if not links and ref in checkpoints:
                        self.check_identity(base.identity, f"the base of {ref}")
                    links.append(base)
                    break
                except StateCorruptError as error:
                    skipped = skipped or error
                    self._skip(base_object(ref), error)
            try:
                checkpoint = self.load(ref)
            except StateMissingError as error:
                # The chain below is gone because a base replaced it, so the base's damage is the
                # cause.
                raise skipped or error from error
            self._check_link(checkpoint, links)
            links.append(checkpoint)
            ref = checkpoint.header.parent
        return links[::-1]

    def skip_base(self, ref: CheckpointRef, error: StateError) -> None:
        """The base of `ref` is not to be used: an object that it refers to is gone or damaged."""
        self._skipped_bases = self._skipped_bases | {ref}
        self._reason = self._reason or error
        self._skip(base_object(ref), error)

    def _skip(self, name: str, error: StateError) -> None:
        if name not in self._unreadable:
            LOG.warning("skipping a base, reading the checkpoints below it: %s", error)
        self._unreadable = self._unreadable | {name}

    @property
    def unreadable(self) -> Sequence[str]:
        """Objects that were damaged and did without, by name; for progress reports."""
        return sorted(self._unreadable)

    def header(self, ref: CheckpointRef) -> CheckpointHeader:
        """The header of `ref`, read again: walking far back must not empty the memory.

        Raises:
            StateMissingError: it is not there.
            StateError: it is damaged or newer than this release.
        """
        return self._read(checkpoint_object(ref), ref).header

    def read_base(self, ref: CheckpointRef) -> Checkpoint:
        """The base as of `ref`, whole and verified."""
        return self._read(base_object(ref), ref)

    def bases(self) -> Sequence[CheckpointRef]:
        """Checkpoints of which a base is there, oldest first."""
        return refs_in(self._store.list(BASES))

    def checkpoints(self) -> Sequence[CheckpointRef]:
        """Checkpoints retained, orphans included, oldest first."""
        return refs_in(self._store.list(CHECKPOINTS))

    def publish_base(self, base: Checkpoint) -> None:
        """Write a base; one that is there already is as good, if it is of the same checkpoint."""
        name, data = base_object(base.ref), base.to_bytes()
        try:
            self._store.publish(name, data)
        except FileExistsError:
            if self._is_usable(base.identity):
                return
            # No query can have restored from it, or ever could.
            # A crash between the two leaves no base, and the checkpoints below it are all there.
            self._store.delete(name)
            self._store.publish(name, data)
            self._skipped_bases = self._skipped_bases - {base.ref}

    def drop_base(self, ref: CheckpointRef) -> None:
        """Delete a base that no chain needs: what is below it is all there."""
        self._store.delete(base_object(ref))

    def _is_usable(self, due: CheckpointIdentity) -> bool:
        try:
            base = self.read_base(due.ref)
        except StateCorruptError:
            return False
        return base.identity == due and due.ref not in self._skipped_bases

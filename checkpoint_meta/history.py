"""The chain of checkpoints in a state directory: publish, find, walk, compact, let go.

A checkpoint is a delta on its parent; a base is the whole state as of one checkpoint. Restoring
reads the newest base on the chain and the deltas after it, so its cost follows what is new.

Not here: what a delta means for a source's state (the source folds them).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ..errors import StateCorruptError, StateMissingError
from .checkpoint import Checkpoint
from .layout import BASES, CHECKPOINTS, READERS, base_object, checkpoint_object
from .reference import NO_CHECKPOINT, CheckpointRef
from .state_store import StateStore

_CACHED = 4
"""Checkpoints kept in memory: the one just cut is read again at once by `partitions`."""


class CheckpointHistory:
    """The checkpoints of one state directory. Safe for use by several threads."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._recent: OrderedDict[CheckpointRef, Checkpoint] = OrderedDict()

    def publish(self, checkpoint: Checkpoint) -> None:
        """Make a checkpoint durable, create-only; only then may its offset be shown to Spark.

        Raises:
            FileExistsError: a checkpoint of that name is there: the protocol was broken.
        """
        self._store.publish(checkpoint_object(checkpoint.ref), checkpoint.to_bytes())
        self._remember(checkpoint)

    def _remember(self, checkpoint: Checkpoint) -> None:
        recent = self._recent.copy()
        recent[checkpoint.ref] = checkpoint
        while len(recent) > _CACHED:
            recent.popitem(last=False)
        self._recent = recent

    def load(self, ref: CheckpointRef) -> Checkpoint:
        """The checkpoint named `ref`.

        Raises:
            StateMissingError: it is not there.
            StateError: it is damaged or newer than this release.
        """
        found = self._recent.get(ref)
        if found is None:
            found = self._read(checkpoint_object(ref), ref)
            self._remember(found)
        return found

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
        if checkpoint.ref != ref:
            raise StateCorruptError(
                "a checkpoint stands under another's name",
                where,
                str(checkpoint.ref),
                str(ref),
                "Restore the object from a copy.",
            )
        return checkpoint

    def between(self, start: CheckpointRef, end: CheckpointRef) -> list[Checkpoint]:
        """The checkpoints after `start` up to and including `end`, oldest first.

        Raises:
            StateCorruptError: `end` does not descend from `start`.
        """
        found: list[Checkpoint] = []
        ref = end
        while ref != start:
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
            found.append(checkpoint)
            ref = checkpoint.header.parent
        return found[::-1]

    def chain(self, ref: CheckpointRef) -> list[Checkpoint]:
        """What to fold for the state as of `ref`: a base where there is one, then deltas."""
        bases = set(self.bases())
        found: list[Checkpoint] = []
        while ref != NO_CHECKPOINT:
            if ref in bases:
                found.append(self._read(base_object(ref), ref))
                break
            checkpoint = self.load(ref)
            found.append(checkpoint)
            ref = checkpoint.header.parent
        return found[::-1]

    def bases(self) -> Sequence[CheckpointRef]:
        """Checkpoints of which a base is there, oldest first."""
        return self._refs(BASES)

    def checkpoints(self) -> Sequence[CheckpointRef]:
        """Checkpoints retained, orphans included, oldest first."""
        return self._refs(CHECKPOINTS)

    def _refs(self, directory: str) -> list[CheckpointRef]:
        leaves = self._store.list(directory)
        return [CheckpointRef.from_name(leaf.split(".")[0]) for leaf in leaves]

    def publish_base(self, base: Checkpoint) -> None:
        """Write a base; one that is there already is as good, since it holds the same state."""
        try:
            self._store.publish(base_object(base.ref), base.to_bytes())
        except FileExistsError:
            return

    def prune(self, head: CheckpointRef, retained: int) -> None:
        """Delete what no restore of `head` or of the `retained` checkpoints before it can need.

        Only what lies below the newest base on their chain goes, and older bases last, so a crash
        in the middle leaves every retained chain whole. A base of a dead incarnation is on no
        chain and never counts; ids are not counted either, since an aborted checkpoint leaves a
        gap.
        """
        bases = self.bases()
        oldest, floor = self._oldest_and_floor(head, retained, set(bases))
        if oldest is None or floor is None:
            return
        for ref in self.checkpoints():
            if ref.checkpoint <= floor.checkpoint and ref.checkpoint < oldest.checkpoint:
                self._store.delete(checkpoint_object(ref))
        for leaf in self._store.list(READERS):
            if CheckpointRef.from_name(leaf).checkpoint < oldest.checkpoint:
                self._store.delete(f"{READERS}/{leaf}")
        for ref in bases:
            if ref.checkpoint <= floor.checkpoint and ref != floor:
                self._store.delete(base_object(ref))

    def _oldest_and_floor(
        self, head: CheckpointRef, retained: int, bases: AbstractSet[CheckpointRef]
    ) -> tuple[CheckpointRef | None, CheckpointRef | None]:
        ref, oldest = head, None
        while ref != NO_CHECKPOINT:
            if retained == 0:
                oldest = ref
            retained -= 1
            if oldest is not None and ref in bases:
                return oldest, ref
            try:
                ref = self._read(checkpoint_object(ref), ref).header.parent
            except StateMissingError:
                break  # Pruned already, when fewer were to be retained or by the same floor.
        return oldest, None

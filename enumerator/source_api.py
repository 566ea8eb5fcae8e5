"""The part of a source that the coordinator uses: its enumerator, serializers and cleaner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from ..checkpoint_meta.documents.attachments import Attachment, Attachments
from ..checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.stores.contract import StateStore
from .api import SplitEnumerator, SplitEnumeratorContext, SplitT, StateT
from .large_state import StateDocument
from .settings import CoordinatorSettings


class SourceCleaner(ABC):
    """Removes from the source what no restore reads again, on a worker thread.

    Removals may be repeated after a crash, so each must be idempotent.
    """

    @abstractmethod
    def completed(self, end: CheckpointRef) -> None:
        """Spark will never ask for `end` or before again. Called under the coordinator's lock."""

    @abstractmethod
    def hold(self) -> tuple[CheckpointRef, int] | None:
        """A checkpoint, and how many up to it are still needed; None if that is not known yet."""

    @abstractmethod
    def step(self) -> bool:
        """Do a bounded part of the work, on a worker thread; False if nothing is due now."""

    @abstractmethod
    def figures(self) -> Mapping[str, Any]:
        """Progress so far, as JSON values for Spark's progress events. Called on any thread."""


@dataclass(frozen=True)
class OpenState:
    """The state of a query, as one incarnation of its coordinator has opened it."""

    settings: CoordinatorSettings
    clock: Callable[[], float]
    store: StateStore
    history: CheckpointHistory
    epoch: int
    lineage: str
    """That of the query's checkpoints; commits of others do not count."""

    check_still_ours: Callable[[], None]
    """Raises FencedError once a newer coordinator has claimed the state directory."""


class EnumeratorSource(ABC, Generic[SplitT, StateT]):
    """The driver's part of a source: creates enumerators and serializes their state."""

    @property
    def name(self) -> str:
        """Stored in every checkpoint; a source with another name cannot restore it."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @abstractmethod
    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: StateT | None
    ) -> SplitEnumerator[SplitT, StateT]:
        """Create an enumerator; it resumes from `state` unless that is None. Must not do I/O."""

    def create_cleaner(self, state: OpenState) -> SourceCleaner | None:
        """Create the cleaner that removes splits after they were read, if any. Must not do I/O."""
        return None

    @property
    @abstractmethod
    def split_serializer(self) -> VersionedSerializer[Sequence[SplitT]]:
        """Return how splits are written into checkpoints and sent to readers."""

    @property
    @abstractmethod
    def state_serializer(self) -> VersionedSerializer[StateT]:
        """Return how the enumerator's state is written into checkpoints."""

    @property
    def reader_event_types(self) -> frozenset[str]:
        """Types of the events that this source's readers send; others raise `ProtocolError`."""
        return frozenset()

    def is_unbounded(self, split: SplitT) -> bool:
        """True if `split` never ends. If its reader abandons it, it is read again from its start.

        A bounded split that Spark stops reading early (because of a `limit`) counts as read.
        """
        return False

    @property
    def snapshots_are_changes(self) -> bool:
        """True if `snapshot_state` returns changes, which `advance_state` applies."""
        return False

    def attachments_of(self, state: StateT) -> Sequence[Attachment]:
        """Objects, written by the enumerator, that a snapshot needs in addition to its rows."""
        return ()

    def advance_state(
        self, state: StateT | None, changes: StateT, assigned: Sequence[SplitT]
    ) -> StateT:
        """The state after one checkpoint, from the state before it. A pure function.

        Args:
            state: the state of the parent checkpoint; None at the start of a chain.
            changes: the snapshot of this checkpoint.
            assigned: the splits that this checkpoint assigned.
        """
        return changes

    def restore_state(
        self, chain: Sequence[StateDocument], attachments: Attachments
    ) -> StateT | None:
        """The state after the last document of `chain`; None if it is empty. A pure function.

        The chain begins with a base or with the first checkpoint. Override this if the state is too
        large for `advance_state`; `attachments` reads the objects next to bases.
        """
        state: StateT | None = None
        for document in chain:
            read, version = self.state_serializer.read, document.state_version
            changes = [read(version, batch) for batch in document.state]
            # One snapshot in several batches: what was assigned comes once, after all of it.
            for earlier in changes[:-1]:
                state = self.advance_state(state, earlier, ())
            splits = self.split_serializer.read
            assigned = [s for b in document.assigned for s in splits(document.split_version, b)]
            state = self.advance_state(state, changes[-1], assigned)
        return state

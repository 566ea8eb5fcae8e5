"""What the coordinator knows of a source: how its enumerator and serializers are made.

Not here: what an enumerator does (`api.py`), and the reader's half (`connector/source/api.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic

from ..checkpoint_meta.documents.attachments import Attachment, Attachments
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from .api import SplitEnumerator, SplitEnumeratorContext, SplitT, StateT
from .cleaner_api import SourceCleaner
from .large_state import StateDocument


class EnumeratorSource(ABC, Generic[SplitT, StateT]):
    """The driver's part of a source: creates enumerators and serializes their state."""

    @property
    def name(self) -> str:
        """Is in every checkpoint; a restore by a source of another name is refused."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @abstractmethod
    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: StateT | None
    ) -> SplitEnumerator[SplitT, StateT]:
        """A fresh enumerator (`state` None) or one that resumes from a checkpoint. No I/O."""

    def create_cleaner(self) -> SourceCleaner[SplitT] | None:
        """What takes read splits out of the way, for sources that want that. No I/O."""
        return None

    @property
    @abstractmethod
    def split_serializer(self) -> VersionedSerializer[Sequence[SplitT]]:
        """How splits are written into checkpoints and sent to readers."""

    @property
    @abstractmethod
    def state_serializer(self) -> VersionedSerializer[StateT]:
        """How the enumerator's state is written into checkpoints."""

    @property
    def reader_event_types(self) -> frozenset[str]:
        """Types of the events that this source's readers send; any other is a protocol error."""
        return frozenset()

    def is_unbounded(self, split: SplitT) -> bool:
        """True if `split` never ends: abandoned by its reader, it is read again from its start.

        A bounded split that Spark wanted no more of (a `limit`) counts as read.
        """
        return False

    @property
    def snapshots_are_changes(self) -> bool:
        """True if `snapshot_state` gives changes that `advance_state` folds."""
        return False

    def attachments_of(self, state: StateT) -> Sequence[Attachment]:
        """Objects that a snapshot needs in addition to its rows; they are the enumerator's own."""
        return ()

    def advance_state(
        self, state: StateT | None, changes: StateT, assigned: Sequence[SplitT]
    ) -> StateT:
        """The state after one checkpoint, from the state before it. A pure function.

        Args:
            state: as of the parent; None at the start of a chain.
            changes: what `snapshot_state` gave for this checkpoint.
            assigned: the splits this checkpoint assigned.
        """
        return changes

    def restore_state(
        self, chain: Sequence[StateDocument], attachments: Attachments
    ) -> StateT | None:
        """The state after the last of `chain`; None if there is nothing in it. A pure function.

        The first of `chain` is a base, or the first checkpoint of all. Overridden by a source
        whose state is too large for `advance_state`; `attachments` reads what is stored next to
        bases.
        """
        state: StateT | None = None
        for document in chain:
            read, version = self.state_serializer.read, document.state_version
            changes = [read(version, batch) for batch in document.state]
            for earlier in changes[:-1]:
                state = self.advance_state(state, earlier, ())
            splits = self.split_serializer.read
            assigned = [s for b in document.assigned for s in splits(document.split_version, b)]
            state = self.advance_state(state, changes[-1], assigned)
        return state

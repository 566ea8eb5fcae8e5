"""The driver's half of a hybrid source: two sources, and what is between them.

Not here: the public class, which adds the readers (`connector/source/hybrid_source.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.documents.hybrid_split import HybridSplit, HybridSplitSerializer
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...errors import OptionError
from ..api import SplitEnumeratorContext
from ..large_state import StateDocument
from ..source_api import EnumeratorSource
from .enumerator import HybridEnumerator
from .state import HalfChain, HybridState, HybridStateSerializer


class HybridEnumeratorSource(EnumeratorSource[HybridSplit, HybridState]):
    """Reads one source to its end, then another one from a position that the end decides."""

    @property
    @abstractmethod
    def halves(self) -> Sequence[EnumeratorSource[Any, Any]]:
        """The first source and the second; the same objects at each call."""

    @abstractmethod
    def position_after(self, position: Any, splits: Sequence[Any]) -> Any:
        """See `HybridSource.position_after`."""

    @abstractmethod
    def state_at(self, position: Any) -> Any:
        """See `HybridSource.state_at`."""

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit], state: HybridState | None
    ) -> HybridEnumerator:
        return HybridEnumerator(context, self, state)

    @override
    def create_cleaner(self) -> None:
        if any(half.create_cleaner() is not None for half in self.halves):
            raise OptionError(
                "cleanSource: a hybrid source does not clean up what it has read",
                type(self).__qualname__,
                "another value than off",
                "cleanSource=off",
                "Remove the files of the first half once the query is in the second.",
            )

    @cached_property
    def _split_serializer(self) -> HybridSplitSerializer:
        return HybridSplitSerializer([half.split_serializer for half in self.halves])

    @property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[HybridSplit]]:
        return self._split_serializer

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[HybridState]:
        return HybridStateSerializer(self.halves)

    @property
    @override
    def reader_event_types(self) -> frozenset[str]:
        first, second = self.halves
        return first.reader_event_types | second.reader_event_types

    @override
    def is_unbounded(self, split: HybridSplit) -> bool:
        return self.halves[split.half].is_unbounded(split.split)

    @property
    @override
    def snapshots_are_changes(self) -> bool:
        return True

    @override
    def attachments_of(self, state: HybridState) -> Sequence[Attachment]:
        source = self.halves[state.half]
        return [of for snapshot in state.snapshots for of in source.attachments_of(snapshot)]

    @override
    def restore_state(
        self, chain: Sequence[StateDocument], attachments: Attachments
    ) -> HybridState | None:
        own = HalfChain.of(chain)
        if own is None:
            return None
        source = self.halves[own.half]
        for document in own.documents:
            # Newer versions are refused before a source looks at the columns.
            source.state_serializer.check_version(document.state_version)
            source.split_serializer.check_version(document.split_version)
        state = source.restore_state(own.documents, attachments)
        return HybridState(own.half, own.position, () if state is None else (state,))

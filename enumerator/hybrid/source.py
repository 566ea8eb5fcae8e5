"""The driver's half of a hybrid source: several sources, and what is between them.

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
from .hybrid_enumerator import HybridEnumerator
from .state import HybridState, HybridStateSerializer, PartChain


class HybridEnumeratorSource(EnumeratorSource[HybridSplit, HybridState]):
    """Reads each source to its end, then the next one from a position that the end decides."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[EnumeratorSource[Any, Any]]:
        """The sources in the order in which they are read; the same objects at each call."""

    @abstractmethod
    def position_after(self, part: int, position: Any, splits: Sequence[Any]) -> Any:
        """See `HybridSource.position_after`."""

    @abstractmethod
    def state_at(self, part: int, position: Any) -> Any:
        """See `HybridSource.state_at`."""

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit], state: HybridState | None
    ) -> HybridEnumerator:
        return HybridEnumerator(context, self, state)

    @override
    def create_cleaner(self) -> None:
        if any(part.create_cleaner() is not None for part in self.parts):
            raise OptionError(
                "cleanSource: a hybrid source does not clean up what it has read",
                type(self).__qualname__,
                "another value than off",
                "cleanSource=off",
                "Remove the files of a part once the query is in the next one.",
            )

    @cached_property
    def _split_serializer(self) -> HybridSplitSerializer:
        return HybridSplitSerializer([part.split_serializer for part in self.parts])

    @property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[HybridSplit]]:
        return self._split_serializer

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[HybridState]:
        return HybridStateSerializer(self.parts)

    @property
    @override
    def reader_event_types(self) -> frozenset[str]:
        return frozenset().union(*(part.reader_event_types for part in self.parts))

    @override
    def is_unbounded(self, split: HybridSplit) -> bool:
        return self.parts[split.part].is_unbounded(split.split)

    @property
    @override
    def snapshots_are_changes(self) -> bool:
        return True

    @override
    def attachments_of(self, state: HybridState) -> Sequence[Attachment]:
        source = self.parts[state.part]
        return [of for snapshot in state.snapshots for of in source.attachments_of(snapshot)]

    @override
    def restore_state(
        self, chain: Sequence[StateDocument], attachments: Attachments
    ) -> HybridState | None:
        own = PartChain.of(chain)
        if own is None:
            return None
        source = self.parts[own.part]
        for document in own.documents:
            # Newer versions are refused before a source looks at the columns.
            source.state_serializer.check_version(document.state_version)
            source.split_serializer.check_version(document.split_version)
        state = source.restore_state(own.documents, attachments)
        return HybridState(own.part, own.position, () if state is None else (state,))

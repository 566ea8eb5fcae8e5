"""Flink's HybridSource (FLIP-150): one source to its end, then another one from there.

Not here: the switch (`enumerator/hybrid`) and the readers (`reader/hybrid.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from typing_extensions import override

from ...checkpoint_meta.documents.hybrid_split import HybridSplit
from ...enumerator.hybrid.source import HybridEnumeratorSource
from ...enumerator.hybrid.state import HybridState
from ...reader.api import ReaderContext
from ...reader.hybrid import HybridReader
from .api import Source


class HybridSource(HybridEnumeratorSource, Source[HybridSplit, HybridState]):
    """Files up to a point, then a log: each row exactly once, also at the seam.

    Any two sources will do. The first runs as it does with Trigger.AvailableNow: it reads what is
    there when the query starts. Once nothing of it is pending, and its splits are all acknowledged,
    the second begins with `state_at(position)`. The switch is part of a checkpoint that is durable
    before the first row of the second half is read. After that the first half is not opened again.
    """

    @abstractmethod
    def first(self) -> Source[Any, Any]:
        """The source that is read to its end. Built in every process: cheap, without I/O."""

    @abstractmethod
    def second(self) -> Source[Any, Any]:
        """The source that is read after it. Built in every process: cheap, without I/O."""

    @abstractmethod
    @override
    def position_after(self, position: Any, splits: Sequence[Any]) -> Any:
        """What the end of the first half means for the second, as far as it is known.

        Called with all splits of the first half that are assigned, some at a time. A split may come
        more than once, and in any order, so this keeps the newest of something (per partition). It
        must not block.

        Args:
            position: what this returned before; None at first.
            splits: of the first half, about to be assigned.

        Returns:
            Any JSON value. It is part of each checkpoint.
        """

    @abstractmethod
    @override
    def state_at(self, position: Any) -> Any:
        """The state with which the second source's enumerator begins; None for a fresh one.

        Called once, at the end of the first half, on a worker thread: it may look something up.
        Called again only if the process dies before the switch is durable. What it raises fails the
        query.

        Args:
            position: the last that `position_after` returned; None if the first half was empty.
        """

    @cached_property
    def _halves(self) -> tuple[Source[Any, Any], Source[Any, Any]]:
        return self.first(), self.second()

    @property
    @override
    def halves(self) -> tuple[Source[Any, Any], Source[Any, Any]]:
        return self._halves

    @override
    def create_reader(self, context: ReaderContext) -> HybridReader:
        return HybridReader([half.create_reader for half in self.halves], context)

"""Flink's HybridSource (FLIP-150): each source to its end, then the next one from there.

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
from ...errors import OptionError
from ...reader.api import ReaderContext
from ...reader.hybrid import HybridReader
from .api import Source


class HybridSource(HybridEnumeratorSource, Source[HybridSplit, HybridState]):
    """Files up to a point, then a log, or any other sources: each row exactly once, at seams too.

    Each source but the last runs as it does with Trigger.AvailableNow: it reads what is there when
    the query starts. Once nothing of it is pending, and its splits are all acknowledged, the next
    one begins with `state_at`. The switch is part of a checkpoint that is durable before the first
    row of the next source is read. After that the source before is not opened again.
    """

    @abstractmethod
    def sources(self) -> Sequence[Source[Any, Any]]:
        """What is read, in this order. Built in every process: cheap, without I/O.

        A query's state knows them by their numbers: a source may be added at the end, but not
        before one that has begun.
        """

    @abstractmethod
    @override
    def position_after(self, part: int, position: Any, splits: Sequence[Any]) -> Any:
        """What the end of a source means for the next ones, as far as it is known.

        Called with all splits that are assigned of all sources but the last, some at a time. A
        split may come more than once, and in any order, so this keeps the newest of something (per
        partition). It must not block.

        Args:
            part: the number of the source in `sources`: 0, 1 ...
            position: what this returned before; None at first.
            splits: of that source, about to be assigned.

        Returns:
            Any JSON value. It is part of each checkpoint.
        """

    @abstractmethod
    @override
    def state_at(self, part: int, position: Any) -> Any:
        """The state with which the enumerator of the next source begins; None for a fresh one.

        Called once, at the end of the source before, on a worker thread: it may look something up.
        Called again only if the process dies before the switch is durable. What it raises fails the
        query.

        Args:
            part: the number of the source that begins: 1, 2 ...
            position: the last that `position_after` returned; None if nothing was read before.
        """

    @cached_property
    def _parts(self) -> Sequence[Source[Any, Any]]:
        parts = tuple(self.sources())
        for part in parts:
            if part.options.alignment_group:
                # Between two sources nobody says where the query is, and others would run ahead.
                raise OptionError(
                    "alignmentGroup: a hybrid source is not aligned with other sources",
                    type(self).__qualname__,
                    f"alignmentGroup={part.options.alignment_group}",
                    "no alignmentGroup",
                    "Remove the option, or read the first source in a query of its own.",
                )
        return parts

    @property
    @override
    def parts(self) -> Sequence[Source[Any, Any]]:
        return self._parts

    @override
    def create_reader(self, context: ReaderContext) -> HybridReader:
        return HybridReader([part.create_reader for part in self.parts], context)

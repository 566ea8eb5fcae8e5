"""Flink's HybridSource (FLIP-150): each source to its end, then the next one from there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.hybrid_split import HybridSplit
from ...enumerator.hybrid.hybrid_enumerator import HybridEnumeratorSource
from ...enumerator.hybrid.state import HybridState
from ...errors import OptionError
from ...reader.api import (
    PartEnded,
    ReaderContext,
    ReceivedEvent,
    Report,
    SplitReader,
    SplitUnfinished,
)
from .api import Source


class HybridSource(HybridEnumeratorSource, Source[HybridSplit, HybridState]):
    """Reads several sources one after another, such as files and then a log, each row exactly once.

    Each source except the last runs as with Trigger.AvailableNow: it reads what exists when the
    query starts. When none of its splits is pending and all are acknowledged, the next source
    begins with `state_at`. The switch is part of a checkpoint that is durable before the first row
    of the next source is read. After that, the previous source is not opened again.
    """

    @abstractmethod
    def sources(self) -> Sequence[Source[Any, Any]]:
        """The sources in the order in which they are read. Called in every process, without I/O.

        The state of a query identifies them by position: you can append a source, but not insert
        one before a source that has begun.
        """

    @abstractmethod
    @override
    def position_after(self, part: int, position: Any, splits: Sequence[Any]) -> Any:
        """Record what the next source needs to know of these splits, to start where they end.

        Called with the splits of every source except the last, when they are assigned. The same
        split can come more than once, and in any order: return the newest value, such as a maximum
        (per partition, if there are partitions). Must not block.

        Args:
            part: index of the source in `sources`.
            position: the value returned by the previous call; None in the first call.
            splits: splits of that source that are about to be assigned.

        Returns:
            Any JSON value. It is stored in each checkpoint.
        """

    @abstractmethod
    @override
    def state_at(self, part: int, position: Any) -> Any:
        """The initial state of the next source's enumerator, or None to start without a state.

        Called once, when the previous source has ended, on a worker thread, so it may do I/O. It is
        called again only if the process dies before the switch is durable. An exception fails the
        query.

        Args:
            part: index in `sources` of the source that begins, at least 1.
            position: the last value of `position_after`; None if nothing has been read.
        """

    @cached_property
    @override
    def parts(self) -> Sequence[Source[Any, Any]]:
        parts = tuple(self.sources())
        for part in parts:
            if part.options.alignment_group:
                # While it switches it publishes no position, and others would run ahead.
                raise OptionError(
                    "alignmentGroup: a hybrid source is not aligned with other sources",
                    type(self).__qualname__,
                    f"alignmentGroup={part.options.alignment_group}",
                    "no alignmentGroup",
                    "Remove the option, or read the first source in a query of its own.",
                )
        return parts

    @override
    def create_reader(self, context: ReaderContext) -> HybridReader:
        # Makers, not readers: a task builds those of the parts that it reads.
        return HybridReader([part.create_reader for part in self.parts], context)


class HybridReader(SplitReader[HybridSplit]):
    """Makes the reader of a part when a split of it is to be read, and only then."""

    def __init__(
        self, makers: Sequence[Callable[[ReaderContext], SplitReader[Any]]], context: ReaderContext
    ) -> None:
        """`makers` make the readers of each part."""
        self._makers = makers
        self._context = context
        self._readers: list[SplitReader[Any]] = []

    @override
    def read(self, splits: Sequence[HybridSplit]) -> Iterator[pa.RecordBatch | Report]:
        first = 0
        for part, group in groupby(splits, key=lambda split: split.part):
            run = list(group)
            reader = self._makers[part](self._context_of(part, first))
            first += len(run)
            self._readers.append(reader)
            for item in reader.read([split.split for split in run]):
                if isinstance(item, SplitUnfinished):
                    yield replace(item, remainder=HybridSplit(part, item.remainder))
                else:
                    yield item
                    # Sources share the budget, and read one after the other.
                    if isinstance(item, PartEnded):
                        return

    def _context_of(self, part: int, first: int) -> ReaderContext:
        return replace(
            self._context,
            until={name: split.split for name, split in self._context.until.items()},
            events=[
                ReceivedEvent(event.value[1], max(0, event.before - first))
                for event in self._context.events
                if event.value[0] == part
            ],
        )

    @override
    def close(self) -> None:
        for reader in self._readers:
            reader.close()

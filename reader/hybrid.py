"""Reads splits of a hybrid source with the reader of the part that they belong to.

Not here: which part is read when (`enumerator/hybrid`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ..checkpoint_meta.documents.hybrid_split import HybridSplit
from .api import ReaderContext, Report, SplitReader, SplitUnfinished


class HybridReader(SplitReader[HybridSplit]):
    """Makes the reader of a part when a split of it is to be read, and only then."""

    def __init__(
        self,
        makers: Sequence[Callable[[ReaderContext], SplitReader[Any]]],
        context: ReaderContext,
    ) -> None:
        """`makers` make the readers of each part."""
        self._makers = makers
        self._context = context
        self._readers: list[SplitReader[Any]] = []

    @override
    def read(self, splits: Sequence[HybridSplit]) -> Iterator[pa.RecordBatch | Report]:
        for part, run in groupby(splits, key=lambda split: split.part):
            reader = self._makers[part](self._context_of(part))
            self._readers.append(reader)
            for item in reader.read([split.split for split in run]):
                if isinstance(item, SplitUnfinished):
                    yield replace(item, remainder=HybridSplit(part, item.remainder))
                else:
                    yield item

    def _context_of(self, part: int) -> ReaderContext:
        return replace(
            self._context,
            until={name: split.split for name, split in self._context.until.items()},
            events=[event for of, event in self._context.events if of == part],
        )

    @override
    def close(self) -> None:
        for reader in self._readers:
            reader.close()

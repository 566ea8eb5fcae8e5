"""A split of one half of a hybrid source: the half's own split, and the number of the half.

The columns of both parts are next to each other, and each row says with which version of its
half's serializer it was written, so any source can be either half.

Not here: the switch from one half to the other (`enumerator/hybrid`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

import pyarrow as pa
from typing_extensions import override

from .serializer import VersionedSerializer

FIRST: Final = 0
SECOND: Final = 1


@dataclass(frozen=True, slots=True)
class HybridSplit:
    """A split, and the half that it belongs to."""

    half: int
    split: Any

    @property
    def split_id(self) -> str:
        """The id that its part gives it: no checkpoint has splits of two parts."""
        return str(self.split.split_id)


class HybridSplitSerializer(VersionedSerializer[Sequence[HybridSplit]]):
    """Four columns: the half, the version of its serializer, and the columns of each half."""

    def __init__(self, halves: Sequence[VersionedSerializer[Any]]) -> None:
        self._halves = halves
        self._types = [pa.struct(half.serialize([]).schema) for half in halves]

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: Sequence[HybridSplit]) -> pa.RecordBatch:
        return pa.concat_batches(self.serialize_all(value))

    @override
    def serialize_all(self, value: Sequence[HybridSplit]) -> list[pa.RecordBatch]:
        batches = []
        for half, run in groupby(value, key=lambda split: split.half):
            own = self._halves[half].serialize_all([split.split for split in run])
            batches += [self._wrapped(half, batch) for batch in own]
        return batches or [self._wrapped(FIRST, self._halves[FIRST].serialize([]))]

    def _wrapped(self, half: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.num_rows
        columns = {
            "half": pa.array([half] * rows, pa.int8()),
            "version": pa.array([self._halves[half].version] * rows, pa.int32()),
            "first": pa.nulls(rows, self._types[FIRST]),
            "second": pa.nulls(rows, self._types[SECOND]),
        }
        columns[_COLUMNS[half]] = batch.to_struct_array()
        return pa.record_batch(columns)

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> list[HybridSplit]:
        return [
            HybridSplit(half, split)
            for half, of, own in rows_by_half(batch)
            for split in self._halves[half].read(of, own)
        ]


_COLUMNS = ("first", "second")


def rows_by_half(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """(half, version of its serializer, the half's own columns) of each run of equal rows."""
    keys = [
        *zip(
            batch.column("half").to_pylist(),
            batch.column("version").to_pylist(),
            strict=True,
        )
    ]
    changes = [at for at, (one, next_) in enumerate(pairwise(keys), 1) if one != next_]
    for start, end in pairwise([0, *changes, len(keys)] if keys else []):
        half, version = keys[start]
        structs = batch.column(_COLUMNS[half]).slice(start, end - start)
        own = pa.record_batch(structs.flatten(), schema=pa.schema(list(structs.type)))
        yield half, version, own


def own_split(split: Any) -> Any:
    """The half's own split, of one that is wrapped; any other as it is."""
    return split.split if isinstance(split, HybridSplit) else split

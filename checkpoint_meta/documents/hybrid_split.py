"""A split of one part of a hybrid source: the part's own split, and the number of the part.

The columns of all parts are next to each other, and each row says with which version of its
part's serializer it was written, so any source can be any part.
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

_NAMES: Final = ("first", "second", "third")


def part_name(part: int) -> str:
    """Return what a part is called: first, second, third, part4 ..."""
    return _NAMES[part] if part < len(_NAMES) else f"part{part + 1}"


@dataclass(frozen=True, slots=True)
class HybridSplit:
    """A split, and the part that it belongs to."""

    part: int
    split: Any

    @property
    def split_id(self) -> str:
        """The id that the part gives it: no checkpoint has splits of two parts."""
        return str(self.split.split_id)


class HybridSplitSerializer(VersionedSerializer[Sequence[HybridSplit]]):
    """The part, the version of its serializer, and a column with the columns of each part."""

    version = 1

    def __init__(self, parts: Sequence[VersionedSerializer[Any]]) -> None:
        self._parts = parts
        self._types = [pa.struct(part.serialize([]).schema) for part in parts]

    @override
    def serialize(self, value: Sequence[HybridSplit]) -> pa.RecordBatch:
        return pa.concat_batches(self.serialize_all(value))

    @override
    def serialize_all(self, value: Sequence[HybridSplit]) -> list[pa.RecordBatch]:
        batches = []
        for part, run in groupby(value, key=lambda split: split.part):
            own = self._parts[part].serialize_all([split.split for split in run])
            batches += [self._wrapped(part, batch) for batch in own]
        # A checkpoint needs the columns even if there is no split to write.
        return batches or [self._wrapped(FIRST, self._parts[FIRST].serialize([]))]

    def _wrapped(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.num_rows
        columns = {
            "part": pa.array([part] * rows, pa.int8()),
            "version": pa.array([self._parts[part].version] * rows, pa.int32()),
            **{part_name(at): pa.nulls(rows, kind) for at, kind in enumerate(self._types)},
        }
        columns[part_name(part)] = batch.to_struct_array()
        return pa.record_batch(columns)

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> list[HybridSplit]:
        return [
            HybridSplit(part, split)
            for part, part_version, own in rows_by_part(batch)
            for split in self._parts[part].read(part_version, own)
        ]


def rows_by_part(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """(part, version of its serializer, the part's own columns) of each run of equal rows."""
    keys = [
        *zip(batch.column("part").to_pylist(), batch.column("version").to_pylist(), strict=True)
    ]
    changes = [at for at, (one, next_) in enumerate(pairwise(keys), 1) if one != next_]
    for start, end in pairwise([0, *changes, len(keys)] if keys else []):
        # Parts may be written by different versions, so each run is decoded by itself.
        part, version = keys[start]
        structs = batch.column(part_name(part)).slice(start, end - start)
        own = pa.record_batch(structs.flatten(), schema=pa.schema(list(structs.type)))
        yield part, version, own

"""The times of files that are known and that listings do not have: one object, written whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..documents.serializer import to_ipc
from ..files.file_columns import Numbers, numbers_array, words_in
from .fingerprints import Names, SeenKeys

ABSENT: Final = "absent.arrow"
"""The suffix of such an object."""

_SCHEMA: Final = pa.schema(
    [("high", pa.uint64()), ("low", pa.uint64()), ("since", pa.int64())],
    metadata={b"sluice": json.dumps({"format": 1, "kind": "absent files"}).encode()},
)


@dataclass(frozen=True, slots=True)
class AbsentFiles:
    """Absent files, sorted by the fingerprints of their names."""

    names: Names = field(default_factory=lambda: Names.join([]))
    since: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Microseconds since the epoch: the first complete listing without the file."""

    def find(self, names: Names) -> npt.NDArray[np.intp]:
        """The position of each of `names`, -1 for those that are not here."""
        return SeenKeys(self.names, None, None).find(names)

    def to_bytes(self) -> bytes:
        """The object: an Arrow file, compressed, since few times are different ones."""
        columns = [pa.array(words, pa.uint64()) for words in (self.names.high, self.names.low)]
        rows = pa.record_batch([*columns, numbers_array(self.since)], schema=_SCHEMA)
        return to_ipc(_SCHEMA, [rows], compression="zstd")

    @classmethod
    def from_bytes(cls, data: bytes) -> AbsentFiles:
        """The inverse of `to_bytes`."""
        with pa.ipc.open_file(pa.BufferReader(data)) as reader:
            batch = reader.get_batch(0)
        high, low = (words_in(batch.column(at), np.uint64) for at in range(2))
        return cls(Names(high, low), words_in(batch.column(2), np.int64))

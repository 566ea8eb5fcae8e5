"""One run of the index of files seen, and the times of absent files: objects that are written once.

`<name>.keys.arrow` holds the fingerprints, sorted: all that is needed to know a file again.
`<name>.files.arrows` holds the files themselves, for people and views; nothing that the query does
depends on it, so runs are merged without their paths being looked at. `<name>.absent.arrow` holds
the times of files that are known and that listings do not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..documents.attachments import Attachment
from ..documents.serializer import to_ipc
from ..files.file_columns import FILES, Numbers, numbers_array, words_in
from .fingerprints import Names, SeenKeys

_KEYS = pa.schema(
    [("high", pa.uint64()), ("low", pa.uint64()), ("version", pa.uint64()), ("end", pa.int64())],
    metadata={b"sluice": json.dumps({"format": 1, "kind": "seen files"}).encode()},
)

SEEN_FILES = pa.schema(
    [
        *FILES,
        ("end", pa.int64()),
        ("checkpoint", pa.int64()),
        ("discovered", pa.timestamp("us", "UTC")),
    ],
    metadata={b"sluice": json.dumps({"format": 1, "kind": "seen files"}).encode()},
)
"""A file a row. `end` as in `SeenKeys`, `checkpoint` is the first that knew of the file, and
`discovered` when it was found; of files that were restored, when that checkpoint was cut."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is durable, and its keys in memory."""

    keys: SeenKeys
    attachments: tuple[Attachment, ...]
    """The keys, then the files."""


def write_keys(keys: SeenKeys) -> bytes:
    """The object of the keys: an Arrow file, not compressed, since fingerprints are not."""
    assert keys.version is not None
    assert keys.end is not None
    words = (keys.names.high, keys.names.low, keys.version)
    columns = [pa.array(each, pa.uint64()) for each in words]
    return to_ipc(_KEYS, [pa.record_batch([*columns, numbers_array(keys.end)], schema=_KEYS)])


def read_keys(data: bytes) -> SeenKeys:
    """The inverse of `write_keys`, over the memory of `data`."""
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        batch = reader.get_batch(0)
    high, low, version = (words_in(batch.column(at), np.uint64) for at in range(3))
    return SeenKeys(Names(high, low), version, words_in(batch.column(3), np.int64))


def write_files(batches: Iterable[pa.RecordBatch]) -> bytes:
    """The object of the files, rows of `SEEN_FILES`: an Arrow stream, compressed."""
    return to_ipc(SEEN_FILES, batches, pa.ipc.new_stream, compression="zstd")


def join_files(objects: Sequence[bytes]) -> bytes:
    """The files of several runs, the oldest first: their batches as stored, compressed."""
    # Without a batch it is the schema, then the mark of the end.
    parts = [write_files([])[: -len(_END)]]
    for data in objects:
        # Messages are copied as they are: nothing is decompressed, however many files were seen.
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
        parts.extend(m.serialize() for m in messages if m.type == "record batch")
    return b"".join([*parts, _END])


_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""End-of-stream mark of Arrow IPC."""


def read_files(data: bytes, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The rows that `write_files` or `join_files` wrote, batch by batch; or some columns."""
    # What is left out is not decompressed.
    chosen = [at for at, name in enumerate(SEEN_FILES.names) if name in columns] or None
    options = pa.ipc.IpcReadOptions(included_fields=chosen)
    with pa.ipc.open_stream(pa.BufferReader(data), options=options) as reader:
        yield from reader


def seen_rows(files: pa.RecordBatch, end: Any, checkpoint: int, discovered: int) -> pa.RecordBatch:
    """Rows of `SEEN_FILES` for files that became known together."""
    count = files.num_rows
    columns = [
        *(files.column(name) for name in FILES.names),
        numbers_array(end),
        numbers_array(np.full(count, checkpoint, np.int64)),
        numbers_array(np.full(count, discovered, np.int64)).view(pa.timestamp("us", "UTC")),
    ]
    return pa.record_batch(columns, schema=SEEN_FILES)


ABSENT: Final = "absent.arrow"
"""The suffix of such an object."""

_ABSENT: Final = pa.schema(
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
        rows = pa.record_batch([*columns, numbers_array(self.since)], schema=_ABSENT)
        return to_ipc(_ABSENT, [rows], compression="zstd")

    @classmethod
    def from_bytes(cls, data: bytes) -> AbsentFiles:
        """The inverse of `to_bytes`."""
        with pa.ipc.open_file(pa.BufferReader(data)) as reader:
            batch = reader.get_batch(0)
        high, low = (words_in(batch.column(at), np.uint64) for at in range(2))
        return cls(Names(high, low), words_in(batch.column(2), np.int64))

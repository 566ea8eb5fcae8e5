"""How much a reader may hold: the one place where that is said.

A reader decodes about `batchBytes` at a time. What cannot be decoded in parts is held whole: a
record of text, a JSON document that is one record, a row of a columnar file, a block of Avro, a
record batch of Arrow. That may have `maxRecordBytes` bytes, decompressed, and is refused beyond.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileVersion
from ....errors import MalformedDataError
from ..options import ReaderOptions

HELD = 6
"""How many times over a reader may hold what it decodes: as bytes, as what parsers make of them, as
Arrow. `make bench BENCH=memory` measures it for each format."""


def held_at_most(options: ReaderOptions, longest: int = 0) -> int:
    """Bytes that a reader holds at most, without Python, Arrow and their imports.

    `longest` is the longest record, row or block that there is, where that is known.
    """
    unit = min(longest or options.max_record_bytes, options.max_record_bytes)
    return HELD * (options.batch_bytes + unit)


def place_of_byte(position: int, since: int) -> str:
    """A position in a file, or in what is compressed from byte `since` on, for an error."""
    place = f"byte {position}"
    return f"{place} of the content that starts at compressed byte {since}" if since else place


def too_long(
    path: str,
    place: str,
    options: ReaderOptions,
    *,
    what: str = "record",
    found: str = "",
    times: int = 1,
) -> MalformedDataError:
    """The error for what is longer than `maxRecordBytes`; `found` says how long it is, if known.

    `place` says where it begins, such as `byte 17`. What is not copied while it is decoded may be
    several `times` as long.
    """
    most = times * options.max_record_bytes
    limit = "maxRecordBytes" if times == 1 else f"{times} times maxRecordBytes"
    return MalformedDataError(
        f"a {what} is longer than {limit}",
        f"{path}, {place}",
        found or f"more than {most} bytes",
        f"at most {most} bytes",
        f"If that length is correct, set maxRecordBytes higher: a reader holds up to {HELD} times "
        "as much. If not, check the file and options such as lineSep, quote, multiLine and "
        "compression, or set ignoreCorruptFiles to skip and count the rest of the file.",
    )


class RecordLimit:
    """The greatest length of a record of one file: `maxRecordBytes`."""

    def __init__(self, file: FileVersion, options: ReaderOptions) -> None:
        self._file, self._options = file, options
        self.bytes = options.max_record_bytes

    def error(self, position: int, since: int = 0) -> MalformedDataError:
        """Return the error for a longer record; see `place_of_byte` for where it begins."""
        return too_long(self._file.path, place_of_byte(position, since), self._options)


class Spill:
    """Tables of one schema in a temporary file, of which nothing is left when it is closed."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file: IO[bytes] | None = None

    def put(self, rows: pa.Table | pa.RecordBatch) -> int:
        """Keep some rows; returns where they are."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="sluice-spill-")  # noqa: SIM115 - closed by close
        # Each is a stream of its own, which can be read from where it starts.
        start = self._file.seek(0, 2)
        with pa.ipc.new_stream(self._file, self._schema) as writer:
            writer.write(rows)
        return start

    def tables(self, places: Iterable[int]) -> Iterator[pa.Table]:
        """Rows that were put, in the order of their places."""
        for start in places:
            assert self._file is not None
            self._file.seek(start)
            yield pa.ipc.open_stream(self._file).read_all()

    def close(self) -> None:
        """The temporary file goes."""
        if self._file is not None:
            self._file.close()


class Spool:
    """Holds batches of one schema back until a split or document is known to be whole.

    They are put in, then taken out in order. A few stay in memory, the rest goes to a temporary
    file.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._limit = memory_bytes
        self._held = 0
        self._memory = list[pa.RecordBatch]()
        self._spill: Spill | None = None
        self._places = list[int]()

    def close(self) -> None:
        """Drop what is held."""
        self._memory.clear()
        if self._spill is not None:
            self._spill.close()

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep one batch in memory, or on disk once memory would exceed the limit."""
        # Once a batch is on disk, all that follow are, so that they stay in order.
        if self._spill is None and self._held + batch.nbytes <= self._limit:
            self._memory.append(batch)
            self._held += batch.nbytes
            return
        self._spill = self._spill or Spill(batch.schema)
        self._places.append(self._spill.put(batch))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches in order; nothing can be put in afterwards."""
        # What is in memory was put in before anything that went to disk.
        yield from self._memory
        for table in self._spill.tables(self._places) if self._spill else ():
            yield from table.to_batches()

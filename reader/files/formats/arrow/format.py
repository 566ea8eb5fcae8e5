"""Arrow IPC and Feather: files are cut at record batches, a stream is one block.

Where the batches lie is in the part of the footer that Arrow keeps to itself: `File.fbs` and
`Message.fbs` of its format say how. Only offsets and row counts are read there; data is decoded by
Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import ipc
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ...io.memory_bounds import HELD, too_long
from ..api import Block, contiguous
from ..blocks import BlockFormat, malformed, starting_in


class ArrowFormat(BlockFormat):
    """Arrow IPC files (Feather version 2 is the same) and streams, told apart by their first bytes.

    Arrow trusts what it reads from IPC; here every batch is validated to the last value before
    anything else touches it, since a broken offset would otherwise crash the process.
    """

    counts_rows = True
    checks_text = True
    what = "Arrow IPC file"

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        is_file = source.read(6) == MAGIC
        source.seek(0)
        return ipc.open_file(source).schema if is_file else ipc.open_stream(source).schema

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        if not self._is_file(file, source):
            return [Block(0, file.size, stream_rows(source))]
        return contiguous(record_batches(source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        if not self._is_file(split.file, source):
            if split.start == 0:
                yield from self._stream(split.file, source)
            return
        blocks = contiguous(record_batches(source), split.file.size)
        dictionaries = 0
        for start in messages(source):
            message = message_at(source, start)
            # All dictionaries are read with the first batch, and stay.
            self._check_message(split.file, message, start, dictionaries)
            if message is not None and not message.is_batch:
                dictionaries += message.held
        reader = self._open(split.file, source)
        for index in starting_in(split, blocks, reader.num_record_batches):
            batch = reader.get_batch(index)
            batch.validate(full=True)
            yield batch

    def _open(self, file: FileVersion, source: pa.NativeFile) -> ipc.RecordBatchFileReader:
        source.seek(0)
        reader = ipc.open_file(source)
        wanted = self._fitter.wanted(reader.schema, file.path)
        if len(wanted) == len(reader.schema):
            return reader
        # An empty list would mean all columns; one is needed anyway to count the rows.
        # No threads: Spark has a task on each core.
        options = ipc.IpcReadOptions(included_fields=wanted or [0], use_threads=False)
        return ipc.open_file(source, options=options)

    def _stream(self, file: FileVersion, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        # Writers that cannot say when they are done leave the end mark away, and Arrow reads on to
        # where the bytes end. What ends within a message is an error.
        source.seek(0)
        reader = ipc.open_stream(source)
        while self._is_next(file, source):
            batch = reader.read_next_batch()
            batch.validate(full=True)
            yield batch
        if next(reader, None) is not None or source.tell() != file.size:
            problem = f"an end-of-stream mark at byte {source.tell()}, before the end"
            raise malformed(file, "Arrow IPC stream", problem)

    def _is_next(self, file: FileVersion, source: pa.NativeFile) -> bool:
        """Return whether another batch of a stream follows, which may be read."""
        begin = at = source.tell()
        # Dictionaries may come before the batch, and are read with it.
        while (message := message_at(source, at)) is not None:
            self._check_message(file, message, at)
            at = message.end
            if message.is_batch:
                break
        source.seek(begin)
        return message is not None

    def _check_message(
        self, file: FileVersion, message: IpcMessage | None, at: int, held: int = 0
    ) -> None:
        # A batch is read whole, and handed on in parts. So it may have all that a reader may hold
        # of a record.
        if message is not None and held + message.held > HELD * self.options.max_record_bytes:
            raise too_long(
                file.path,
                f"byte {at}",
                self.options,
                what="record batch",
                found=f"{held + message.held} bytes, including the compressed data",
                times=HELD,
            )

    def _is_file(self, file: FileVersion, source: pa.NativeFile) -> bool:
        source.seek(0)
        first = source.read(8)
        if first[:4] == b"FEA1":
            raise malformed(file, self.what, "Feather version 1, which Arrow no longer reads")
        return bool(first[:6] == MAGIC)


MAGIC = b"ARROW1"
_DICTIONARIES = 2
_RECORD_BATCHES = 3
_HEADER = 2
_LENGTH = 0
_KIND, _BODY = 1, 3
_DICTIONARY = 2
_BUFFERS, _COMPRESSION = 2, 3
_BUFFER = struct.Struct("<qq")
_BLOCK = struct.Struct("<qi4xq")
_MAX_GAP = 64
"""Bytes between two messages at most: alignment and the end-of-stream mark."""


def record_batches(source: pa.NativeFile) -> list[tuple[int, int]]:
    """Start and number of rows of every record batch, in order.

    Raises:
        ValueError: the footer is not that of an Arrow IPC file.
    """
    with _parsing("the footer of the Arrow file"):
        return [(start, _rows(source, start, length)) for start, length in _blocks(source)]


@dataclass(frozen=True, slots=True)
class IpcMessage:
    """One message: where it ends, and what it takes in memory."""

    is_batch: bool
    end: int
    held: int
    """Bytes of its buffers, and of what they are decompressed from."""


def message_at(source: pa.NativeFile, start: int) -> IpcMessage | None:
    """Return the message that begins there; None at the end of a stream.

    Raises:
        ValueError: it does not parse.
    """
    with _parsing("a message of the Arrow file"):
        return _message(source, start)


def messages(source: pa.NativeFile) -> list[int]:
    """Return where the messages of an Arrow IPC file begin, in order."""
    footer = _footer(source)
    lists = (_vector(footer, _DICTIONARIES), _vector(footer, _RECORD_BATCHES))
    return sorted(start for entries in lists for start, _, _ in entries)


def stream_rows(source: pa.NativeFile) -> int:
    """Return rows of all record batches of a stream, as far as it goes; reads no data.

    Raises:
        ValueError: a message does not parse.
    """
    rows = at = 0
    with _parsing("a message of the Arrow stream"):
        while (metadata := _metadata(source, at)) is not None:
            data, begin, body = metadata
            if _kind(data) == _RECORD_BATCHES:
                rows += _batch_rows(data)
            at = begin + body
    return rows


@contextmanager
def _parsing(part: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError) as err:
        raise ValueError(f"{part} does not parse ({err})") from err


def _metadata(source: pa.NativeFile, start: int) -> tuple[bytes, int, int] | None:
    """Return a message without its body, where that begins, and how long it is; None at the end."""
    source.seek(start)
    head = source.read(8)
    marked = head[:4] == b"\xff\xff\xff\xff"
    if len(head) < 4 or not (length := _u32(head, 4 if marked else 0)):
        return None
    at = start + (8 if marked else 4)
    data = _read(source, at, length)
    field = _field(data, _u32(data, 0), _BODY)
    body = int(struct.unpack_from("<q", data, field)[0]) if field else 0
    if body < 0:
        raise ValueError(f"a message with a body of {body} bytes")
    return data, at + length, body


def _kind(data: bytes) -> int:
    field = _field(data, _u32(data, 0), _KIND)
    return data[field] if field else 0


def _message(source: pa.NativeFile, start: int) -> IpcMessage | None:
    metadata = _metadata(source, start)
    if metadata is None:
        return None
    data, begin, body = metadata
    kind = _kind(data)
    batch = _pointed(data, _field(data, _u32(data, 0), _HEADER))
    if kind == _DICTIONARY:
        batch = _pointed(data, _field(data, batch, 1))
    held = body
    if kind in (_DICTIONARY, _RECORD_BATCHES) and _field(data, batch, _COMPRESSION):
        vector = _pointed(data, _field(data, batch, _BUFFERS))
        for i in range(_u32(data, vector)):
            offset, stored = _BUFFER.unpack_from(data, vector + 4 + 16 * i)
            # A buffer of no bytes has no length in front; a length of -1 says that it is stored as
            # it is.
            if stored:
                claim = struct.unpack("<q", _read(source, begin + offset, 8))[0]
                held += max(0, claim)
    return IpcMessage(kind == _RECORD_BATCHES, begin + body, held)


def _pointed(data: bytes, at: int) -> int:
    if not at:
        raise ValueError("a message without a header")
    return at + _u32(data, at)


def _footer(source: pa.NativeFile) -> bytes:
    size = source.size()
    length, magic = struct.unpack("<i6s", _read(source, size - 10, 10))
    if magic != MAGIC or not 0 < length <= size - 10:
        raise ValueError("no Arrow footer at the end")
    return _read(source, size - 10 - length, length)


def _blocks(source: pa.NativeFile) -> list[tuple[int, int]]:
    footer = _footer(source)
    batches = _vector(footer, _RECORD_BATCHES)
    end = source.size() - 10 - len(footer)
    _check_complete([*batches, *_vector(footer, _DICTIONARIES)], end)
    return [(start, metadata) for start, metadata, _ in batches]


def _vector(footer: bytes, index: int) -> list[tuple[int, int, int]]:
    """Start, length of metadata and length of body of each message in a list of the footer."""
    vector = _field(footer, _u32(footer, 0), index)
    if not vector:
        return []
    at = vector + _u32(footer, vector)
    return [_BLOCK.unpack_from(footer, at + 4 + 24 * i) for i in range(_u32(footer, at))]


def _check_complete(messages: list[tuple[int, int, int]], end: int) -> None:
    """Refuse a footer that leaves out bytes between its messages: a batch would be lost."""
    ordered = sorted(messages)
    stops = [start + metadata + body for start, metadata, body in ordered]
    starts = [start for start, _, _ in ordered[1:]] + [end]
    for stop, start in zip(stops, starts, strict=False):
        if not 0 <= start - stop <= _MAX_GAP:
            raise ValueError(f"{start - stop} bytes between messages, from byte {stop}")


def _rows(source: pa.NativeFile, start: int, length: int) -> int:
    message = _read(source, start, length)
    # Since 0.15 a message begins with a continuation mark before its length.
    body = message[8:] if message[:4] == b"\xff\xff\xff\xff" else message[4:]
    return _batch_rows(body)


def _batch_rows(data: bytes) -> int:
    batch = _pointed(data, _field(data, _u32(data, 0), _HEADER))
    at = _field(data, batch, _LENGTH)
    return int(struct.unpack_from("<q", data, at)[0]) if at else 0


def _read(source: pa.NativeFile, start: int, length: int) -> bytes:
    if start < 0 or length < 0:
        raise ValueError("an offset outside the file")
    source.seek(start)
    data: bytes = source.read(length)
    if len(data) != length:
        raise ValueError("the file ends within its metadata")
    return data


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, index: int) -> int:
    """Position of a field of a FlatBuffers table, 0 if it has its default."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    (size,) = struct.unpack_from("<H", data, vtable)
    at = 4 + 2 * index
    if at + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", data, vtable + at)
    return table + offset if offset else 0

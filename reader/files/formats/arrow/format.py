"""Arrow IPC and Feather: files are cut at record batches, streams are read whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import ipc
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ...io.memory_bounds import too_long
from ..api import Block, contiguous
from ..blocks import BlockFormat, malformed, starting_in
from . import footer

_SWELLS = 16
"""A record batch may decompress to this many times its bytes; what does so further is a bomb."""


class ArrowFormat(BlockFormat):
    """Arrow IPC files (Feather version 2 is the same) and streams, told apart by their first bytes.

    Arrow trusts what it reads from IPC; here every batch is validated to the last value before
    anything else touches it, since a broken offset would otherwise crash the process.
    """

    counts_rows = True
    what = "Arrow IPC file"

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        is_file = source.read(6) == footer.MAGIC
        source.seek(0)
        return ipc.open_file(source).schema if is_file else ipc.open_stream(source).schema

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        if not self._is_file(file, source):
            return [Block(0, file.size, -1)]
        return _layout(source, file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        if not self._is_file(split.file, source):
            if split.start == 0:
                yield from self._stream(split.file, source)
            return
        blocks = _layout(source, split.file.size)
        for start in footer.messages(source):
            # All dictionaries are read with the first batch.
            self._check_message(split.file, footer.message_at(source, start), start)
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
            found = f"an end-of-stream mark at byte {source.tell()}, before the end"
            raise malformed(file, "Arrow IPC stream", found)

    def _is_next(self, file: FileVersion, source: pa.NativeFile) -> bool:
        """True if another batch of a stream follows, which may be read."""
        begin = at = source.tell()
        while (message := footer.message_at(source, at)) is not None:
            self._check_message(file, message, at)
            at = message.end
            if message.is_batch:
                break
        source.seek(begin)
        return message is not None

    def _check_message(self, file: FileVersion, message: footer.Message | None, at: int) -> None:
        if message is None:
            return
        most = max(self.options.max_record_bytes, _SWELLS * message.body)
        if message.plain > most:
            what, found = "compressed record batch", f"{message.plain} bytes"
            raise too_long(file.path, f"byte {at}", self.options, what=what, found=found)

    def _is_file(self, file: FileVersion, source: pa.NativeFile) -> bool:
        source.seek(0)
        first = source.read(8)
        if first[:4] == b"FEA1":
            raise malformed(file, self.what, "Feather version 1, which Arrow no longer reads")
        return bool(first[:6] == footer.MAGIC)


def _layout(source: pa.NativeFile, size: int) -> list[Block]:
    found = footer.record_batches(source)
    return contiguous([start for start, _ in found], [rows for _, rows in found], size)

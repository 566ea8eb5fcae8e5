"""binaryFile: each file is one row, in the columns of Spark's reader of that name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import SplitReadError
from ...evolution.column_names import ColumnNames
from ...options import ReaderOptions
from ...values.column_fitter import ColumnFitter
from ...values.rows import batch_of
from ..api import NO_CONTEXT, Decoded, FileFormat, FormatContext, Splittability
from ..blocks import opened, reading

SPARK_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("modificationTime", pa.timestamp("us", "UTC")),
        pa.field("length", pa.int64()),
        pa.field("content", pa.binary()),
    ]
)
"""All columns there are; the user's schema may leave some out."""

MAX_LENGTH = 2**31 - 1
"""Bytes of content at most: what a value can hold in Spark and in Arrow."""


class BinaryFormat(FileFormat):
    """Whole files as values. A file is only opened if its content is asked for."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        self._fitter = ColumnFitter(schema)
        wanted = ColumnNames(schema.names)
        self._names = [name for name in SPARK_SCHEMA.names if name in wanted]

    def splittability(self, file: FileVersion) -> Splittability:
        """Nowhere: a row is a file."""
        del file
        return Splittability.WHOLE

    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the one row of a file; see `FileFormat.decode`."""
        file = split.file
        # The row belongs to the split with the file's first byte.
        if split.start > 0:
            return
        if "content" in self._names and file.size > MAX_LENGTH:
            raise SplitReadError(
                "the file is too long to be one value",
                file.path,
                f"{file.size} bytes",
                f"at most {MAX_LENGTH} bytes",
                "Leave the column content out of the schema, or exclude such files.",
            )
        with reading(file, "binary file"):
            columns = {name: self._column(name, file) for name in self._names}
        schema = pa.schema([SPARK_SCHEMA.field(name) for name in self._names])
        yield Decoded(self._fitter.fit(batch_of(schema, 1, columns), file.path, 0))

    def _column(self, name: str, file: FileVersion) -> pa.Array:
        if name == "content":
            with opened(file, self.options) as source:
                return _one_value(source.read_buffer(file.size))
        if name == "path":
            # Hadoop's way of writing a local path, as Spark's column has it.
            return pa.array([file.path if "://" in file.path else f"file:{file.path}"])
        if name == "modificationTime":
            # Some file systems have no times.
            modified = file.modified if file.modified >= 0 else None
            return pa.array([modified], pa.int64()).view(pa.timestamp("us", "UTC"))
        return pa.array([file.size], pa.int64())


def _one_value(content: pa.Buffer) -> pa.Array:
    offsets = pa.array([0, content.size], pa.int32()).buffers()[1]
    # The value is the buffer that was read: `pa.array` would copy it.
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, content])

"""XML by the rules of Spark's reader: an element named `rowTag` is a record at any depth.

A file is cut where a record begins. Where that is takes a look from the file's beginning
(`records.py`), which the driver does once for a file that has to be cut; a record then is
parsed by itself (`elements.py`). Columns are inferred from the records at the beginning of files,
of which those that are not well-formed say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError
from ...options import ReaderOptions
from ...values.rows import Row, gc_paused
from ..api import (
    NO_CONTEXT,
    BadRecord,
    Block,
    Decoded,
    FileFormat,
    FormatContext,
    Splittability,
    contiguous,
)
from ..record_format import BLOCK_BYTES, asks_row_index, data_schema
from .elements import Names, parsed
from .records import beginning, is_read_in_place, records, starts
from .xml_rows import XmlRows, new_shape
from .xml_types import common_type

BLOCK_STEP = 1024 * 1024
"""How far apart files are cut, at least."""


class XmlFormat(FileFormat):
    """Elements of one name, parsed one by one."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        try:
            data = data_schema(schema, options)
            self._rows = XmlRows(schema, data, options, context.columns)
        except TypeError as err:
            raise OptionError("the schema cannot be read from XML", found=str(err)) from err
        self._block_bytes = min(BLOCK_BYTES, options.batch_bytes)

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        shape, names = new_shape(options), Names.of(options)
        for record in beginning(file, options, limit):
            try:
                shape.add(names.fields(parsed(record)))
            except ValueError:
                continue
        return shape.type()

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, known: pa.Schema
    ) -> pa.DataType:
        shape, rows = new_shape(options), XmlRows(known, data_schema(known, options), options)
        for record in beginning(file, options, limit):
            shape.add(rows.unknown_part(record))
        return shape.type()

    @classmethod
    @override
    def common_columns(cls, one: pa.DataType, other: pa.DataType, file: FileVersion) -> pa.DataType:
        return common_type(one, other)

    def splittability(self, file: FileVersion) -> Splittability:
        """Where records begin, unless the content is compressed or in another encoding."""
        # Numbering rows would take reading all that is before a split.
        may_cut = is_read_in_place(file, self.options) and not asks_row_index(self.schema)
        return Splittability.BLOCKS if may_cut else Splittability.WHOLE

    @override
    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """Stretches of whole records; reads all of the file, once."""
        found = starts(file, self.options, BLOCK_STEP)
        return contiguous(found, [-1] * len(found), file.size)

    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """The records that begin in `split`; see `FileFormat.decode`."""
        with closing(records(split, self.options)) as found:
            while True:
                with gc_paused():
                    decoded = self._block(split.file, found)
                if decoded is None:
                    return
                yield decoded

    def _block(self, file: FileVersion, found: Iterator[tuple[int, bytes]]) -> Decoded | None:
        """The next records of about one block; None if there are no more."""
        rows, bad, size, dropped = list[Row](), list[BadRecord](), 0, 0
        for at, record in found:
            row = self._rows.of_record(record, _place(file, at))
            if not isinstance(row, str):
                rows.append(row)
            else:
                dropped += 1
                if self.options.bad_records_path:
                    text = record.decode("utf-8", "replace")
                    bad.append(BadRecord(file.path, f"byte {at}", text, row))
            size += len(record)
            if size >= self._block_bytes:
                break
        if not rows and not dropped:
            return None
        return Decoded(self._rows.batch(rows), dropped, bad)


def _place(file: FileVersion, at: int) -> Callable[[], str]:
    return lambda: f"{file.path}, byte {at}"

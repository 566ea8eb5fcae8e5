"""JSON lines and JSON documents by the rules of Spark's reader.

Three paths, each of which refuses whatever it is not sure of: the fast parsers over blocks of whole
lines (`fast.py`), CPython's parser for records of which every value fits (`trees.py`), and tokens
as Spark's own parser sees them (`tokens.py`, `values.py`), which is slow and exact. A refused block
is tried again a few lines at a time, so that only the lines around a bad record go further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.splits import FileSplit, FileVersion
from .....errors import OptionError
from ...evolution.types import merged
from ...options import ReaderOptions
from ..api import Decoded, Parsed
from ..records import RecordFormat, Source, data_schema
from ..times.temporal import Temporal
from .borders import lines, lines_by, parseable, rows_by_file
from .documents import Documents
from .fast import FastRecords
from .inference import json_columns
from .rows import JsonRows, Row
from .types import json_leaf

_SMALL = 64 * 1024
"""Size of the pieces of a refused block that the fast path tries again."""


class JsonFormat(RecordFormat):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        return json_columns(file, options, limit)

    @classmethod
    @override
    def common_columns(cls, one: pa.DataType, other: pa.DataType, file: FileVersion) -> pa.DataType:
        return merged(one, other, json_leaf)

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        data, temporal = data_schema(schema, options), Temporal(options)
        try:
            self._rows = JsonRows(schema, data, options, temporal)
        except TypeError as err:
            raise OptionError("the schema cannot be read from JSON", found=str(err)) from err
        self._records = FastRecords(self._rows.out_schema, data, options, temporal)
        self._documents = Documents(options, self._rows, self._fast)

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        if not self.spans_lines:
            yield from super().decode(split)
            return
        for parsed in self._documents.read(split.file):
            yield Decoded(parsed.batch, parsed.dropped)

    @override
    def parse(self, data: bytes, source: Source) -> Parsed:
        parsed = self._fast(data, source) if self._feeds_are_borders(data) else None
        if parsed is not None:
            return parsed
        if len(data) <= _SMALL or len(source.files) > 1 or not self._feeds_are_borders(data):
            return self._exact(self._lines(data), source)
        return self._piecewise(data, source)

    def _feeds_are_borders(self, data: bytes) -> bool:
        separator = self.options.line_sep
        if separator == "\r\n":
            return data.count(b"\n") == data.count(b"\r\n")
        return separator in ("", "\n")

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        separator = self.options.line_sep.encode()
        return lines_by(data, separator) if separator else lines(data)

    def _piecewise(self, data: bytes, source: Source) -> Parsed:
        """The fast path for the good pieces of a block, the exact one for the others."""
        batches, dropped, at = [], 0, 0
        while at < len(data):
            end = data.find(b"\n", at + _SMALL) + 1 or len(data)
            here = source.moved(at)
            piece = data[at:end]
            parsed = self._fast(piece, here) or self._exact(self._lines(piece), here)
            batches.append(parsed.batch)
            dropped += parsed.dropped
            at = end
        return Parsed(pa.concat_batches(batches), dropped)

    def _fast(self, data: bytes, source: Source) -> Parsed | None:
        """Rows by a fast parser; None where they refuse or might be wrong."""
        batch = self._records.batch(data) if parseable(data) else None
        if batch is None:
            return None
        rows_of = rows_by_file(data, source, batch.num_rows)
        if rows_of is None:
            return None
        return Parsed(batch, rows_of=rows_of if len(source.files) > 1 else None)

    def _exact(self, records: Iterable[tuple[int, bytes]], source: Source) -> Parsed:
        rows, dropped = list[Row](), 0
        rows_of = [0] * len(source.files)
        dropped_of = [0] * len(source.files)
        for offset, line in records:
            index = source.locate(offset)[0] if len(source.files) > 1 else 0
            found, bad = self._rows.of_record(line, _locate(source, offset))
            rows.extend(found)
            rows_of[index] += len(found)
            dropped += bad
            dropped_of[index] += bad
        batch = self._rows.batch(rows)
        return Parsed(batch, dropped, rows_of if len(source.files) > 1 else None, dropped_of)


def _locate(source: Source, offset: int) -> Callable[[], str]:
    return lambda: source.locate(offset)[1]

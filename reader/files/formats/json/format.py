"""JSON lines and JSON documents by the rules of Spark's reader.

Three paths, each of which refuses whatever it is not sure of: the fast parsers over blocks of whole
lines (`fast_parsers.py`), CPython's parser for records of which every value fits
(`stdlib_parser.py`), and tokens as Spark's own parser sees them (`tokenizer.py`,
`token_values.py`), which is slow and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError, SluiceError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import merged, wider_or_text
from ...io.lines import LineBlock
from ...options import ReaderOptions
from ...values.rows import Row
from ...values.times.temporal import Temporal
from ..api import Decoded, Parsed
from ..fast_then_exact import TwoPathFormat
from ..record_format import Source, data_schema
from .fast_parsers import FastRecords
from .inference import json_columns, json_texts
from .json_rows import JsonRows
from .multiline import Documents
from .record_boundaries import parseable, rows_by_file
from .unknown_fields import JsonNews


class JsonFormat(TwoPathFormat):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    _rows: JsonRows

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        return json_columns(file, options, limit)

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, known: pa.Schema
    ) -> pa.DataType:
        news = JsonNews(data_schema(known, options), options)
        return news.of_records(json_texts(file, options, limit))

    @classmethod
    @override
    def common_columns(cls, one: pa.DataType, other: pa.DataType, file: FileVersion) -> pa.DataType:
        return merged(one, other, wider_or_text)

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
    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[LineBlock]) -> NewColumnsSeen:
        found, left = seen.found, self.options.infer_sample_bytes
        with suppress(ValueError, SluiceError):  # What cannot be read is named when it is its turn.
            for block in blocks:
                records = (record for _, record in self.records(block.data))
                found = merged(found, self._rows.news.of_records(records), wider_or_text)
                left -= len(block.data)
                if left <= 0:
                    break
        return NewColumnsSeen(seen.where, found)

    @override
    def quick(self, data: bytes, source: Source) -> Parsed | None:
        separator = self.options.line_sep
        feeds_are_borders = separator in ("", "\n")
        if separator == "\r\n":
            feeds_are_borders = data.count(b"\n") == data.count(b"\r\n")
        return self._fast(data, source) if feeds_are_borders else None

    def _fast(self, data: bytes, source: Source) -> Parsed | None:
        """Rows of lines by a fast parser; None where they refuse or might be wrong."""
        batch = self._records.batch(data) if parseable(data) else None
        if batch is None:
            return None
        rows_of = rows_by_file(data, source, batch.num_rows)
        if rows_of is None:
            return None
        return Parsed(batch, rows_of=rows_of if len(source.files) > 1 else None)

    @override
    def records(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        return (each for each in super().records(data) if each[1] and not each[1].isspace())

    @override
    def rows_of(self, record: bytes, where: Callable[[], str]) -> tuple[Sequence[Row], int]:
        return self._rows.of_record(record, where)

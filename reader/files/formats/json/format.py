"""JSON lines and JSON documents by the rules of Spark's reader.

Three paths, each of which refuses everything that it is not sure of: the fast parsers over blocks
of whole lines (`fast_parsers.py`), CPython's parser for records of which every value fits
(`stdlib_parser.py`), and tokens as Spark's own parser sees them (`tokenizer.py`,
`token_values.py`), which is slow and exact.

The parsers skip line feeds like blanks, so that `{"a":` and `1}` on two lines would be a record,
and two objects on one line would be two; for Spark both are malformed. So here is a look at whether
each line holds one record. Columns are inferred from the records at the beginning of files, of
which those that do not parse say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError, SluiceError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import merged, wider_or_text
from ...io.lines import LineBlock, whole_content
from ...options import ReaderOptions
from ...values.rows import Row
from ...values.strings import has_lone_return
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, Decoded, FormatContext, Parsed
from ..fast_then_exact import FastThenExactFormat
from ..record_format import Source, beginning, data_schema
from .fast_parsers import FastRecords
from .json_rows import JsonRows
from .json_values import type_of_json
from .multiline_json import Documents
from .unknown_fields import UnknownJsonFields, tree_of_record


class JsonFormat(FastThenExactFormat):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    _rows: JsonRows

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        exact = options.infer_column_types and not options.primitives_as_string
        texts = json_texts(file, options, limit)
        return type_of_json((r for text in texts for r in _records(text, options)), exact=exact)

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, known: pa.Schema
    ) -> pa.DataType:
        unknown_fields = UnknownJsonFields(data_schema(known, options), options)
        return unknown_fields.of_records(json_texts(file, options, limit))

    @classmethod
    @override
    def common_columns(
        cls, one: pa.DataType, other: pa.DataType, file: FileVersion, options: ReaderOptions
    ) -> pa.DataType:
        return merged(one, other, wider_or_text)

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        data, temporal = data_schema(schema, options), Temporal(options)
        try:
            self._rows = JsonRows(schema, data, options, temporal, context.columns)
        except TypeError as err:
            raise OptionError("the schema cannot be read from JSON", found=str(err)) from err
        self._records = FastRecords(self._rows.out_schema, data, options, temporal)
        self._documents = Documents(options, self._rows, self._fast)

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        return self._documents.read(split.file) if self.spans_lines else super().decode(split)

    @override
    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[LineBlock]) -> NewColumnsSeen:
        found, left = seen.found, self.options.infer_sample_bytes
        with suppress(ValueError, SluiceError):  # What cannot be read is named when it is its turn.
            for block in blocks:
                records = (record for _, record in self.records(block.data))
                found = merged(found, self._rows.unknown_fields.of_records(records), wider_or_text)
                left -= len(block.data)
                if left <= 0:
                    break
        return NewColumnsSeen(seen.where, found)

    @override
    def quick(self, data: bytes, source: Source) -> Parsed | None:
        separator = self.options.line_sep
        # The fast parsers take line feeds for borders, and no other separator.
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
    def rows_of(self, record: bytes, where: Callable[[], str]) -> tuple[Sequence[Row], str]:
        return self._rows.of_record(record, where)


def json_texts(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """The text of each record in the first `limit` bytes."""
    if options.multi_line:
        yield whole_content(file, options)
        return
    separator = options.line_sep.encode()
    for data in beginning(file, options, limit):
        yield from data.split(separator) if separator else data.splitlines()


def _records(text: bytes, options: ReaderOptions) -> Iterator[dict[str, object]]:
    if not text or text.isspace():
        return
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # What msgspec refuses may be JSON to Spark, such as single quotes.
        value = tree_of_record(text, options)
    for record in value if isinstance(value, list) else [value]:
        if isinstance(record, dict):
            yield record


_OPENS = re.compile(rb"\s*\{")


def parseable(data: bytes) -> bool:
    """True if the fast parsers may be given these bytes at all.

    They begin with an object, and every carriage return belongs to a line feed: a lone one ends a
    line for Spark.
    """
    return _OPENS.match(data) is not None and not has_lone_return(data)


def rows_by_file(data: bytes, source: Source, rows: int) -> list[int] | None:
    """Records of each file if each line held exactly one, or nothing but blanks; None if not.

    `rows` is what a parser found in `data`, which is valid JSON if blanks may be anywhere.
    Every line feed between `}` and `{` then is a boundary between two records: inside of one, a
    comma would be between them. With as many records as lines, each line has one.
    """
    raw = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(raw == ord("\n"))
    inner = feeds[:-1] if data.endswith(b"\n") else feeds
    clean = (
        data.startswith(b"{")
        and (raw[inner - 1] == ord("}")).all()
        and (raw[inner + 1] == ord("{")).all()
    )
    if clean and rows == len(inner) + 1:
        if len(source.files) == 1:
            return [rows]
        return source.by_file(feeds, len(data))
    return _rows_by_line(data, source, rows)


def _rows_by_line(data: bytes, source: Source, rows: int) -> list[int] | None:
    """The same for lines with blanks around the records, and for blank lines."""
    counts = []
    for begin, end in pairwise([*source.starts, len(data)]):
        lines = [line.strip() for line in data[begin:end].split(b"\n")]
        records = [line for line in lines if line]
        if not all(line.startswith(b"{") and line.endswith(b"}") for line in records):
            return None
        counts.append(len(records))
    return counts if sum(counts) == rows else None

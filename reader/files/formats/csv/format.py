"""CSV by the rules of Spark's reader: headers, quotes, comments, what a bad record does.

Blocks of whole records go to pyarrow's parser (`fast_parser.py`), what it refuses is parsed exactly
(`record_splitter.py`, `exact_rows.py`). Records that span lines are cut in `multiline_csv.py`.
Columns are inferred from the records at the beginning of files, of which those that do not parse
say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError
from ...evolution.type_growth import merged
from ...io.compressed.cut_places import KNOWN
from ...io.lines import line_blocks, without_mark
from ...options import ReaderOptions
from ...values.rows import Row
from ...values.strings import has_lone_return
from ...values.text_types import TextTypes, text_leaf
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, Decoded, FormatContext, Parsed
from ..fast_then_exact import PIECE, FastThenExactFormat, records_of
from ..record_format import Source, beginning, data_schema, malformed
from .exact_rows import CsvRows
from .fast_parser import CsvFast
from .header import Header, SkippedRows, field_names, header_misfit
from .multiline_csv import MultilineCsv
from .record_splitter import CsvTokens, break_of, shown
from .univocity_scanner import Token


class CsvFormat(FastThenExactFormat):
    """Records of fields, matched by position or by the header's names; see `Header`."""

    _rows: CsvRows

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        tokens = CsvTokens(options)
        types = TextTypes(Temporal(options))
        names: list[str] = []
        kinds: list[pa.DataType] = []
        for record in _csv_records(file, options, tokens, limit):
            if not names and options.header:
                names = field_names(record, file)
                kinds = [pa.null()] * len(names)
                continue
            for index, text in enumerate(record):
                # A header says how many columns there are; without one the longest record does.
                if index == len(kinds) and not options.header:
                    kinds.append(pa.null())
                if index < len(kinds) and text is not None and text != (options.null_value or ""):
                    kind = types.of(text) if options.infer_column_types else pa.string()
                    kinds[index] = merged(kinds[index], kind, text_leaf)
        names = names or [f"_c{index}" for index in range(len(kinds))]
        return pa.struct(list(zip(names, kinds, strict=True))) if names else pa.null()

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, known: pa.Schema
    ) -> pa.DataType:
        found = cls.columns_of(file, options, limit)
        if options.infer_column_types:
            return found
        # All of them are strings here; what is known has a type that somebody has chosen.
        names = {name.lower() for name in known.names}
        return pa.struct([field for field in found if field.name.lower() not in names])

    @classmethod
    @override
    def common_columns(
        cls, one: pa.DataType, other: pa.DataType, file: FileVersion, options: ReaderOptions
    ) -> pa.DataType:
        return merged(one, other, text_leaf)

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        self._data = data_schema(schema, options)
        temporal = Temporal(options)
        try:
            self._rows = CsvRows(schema, self._data, options, temporal)
        except TypeError as err:
            raise OptionError("the schema cannot be read from CSV", found=str(err)) from err
        self._tokens = CsvTokens(options)
        self._fast = CsvFast(self._rows.out_schema, self._data, options, temporal)
        self._columns = Header(self._data.names, options, context)
        self._multiline = MultilineCsv(self._tokens, self._fast, self._rows, self._columns, options)
        mark = re.escape(options.comment.encode())
        self._comments = re.compile(rb"^%s[^\n]*(?:\n|\Z)" % mark, re.MULTILINE) if mark else None
        self._separator = options.line_sep.encode()
        self._names: Sequence[str] = self._data.names
        self._header = b""
        self._header_names = self._names

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        if self.spans_lines:
            # Its rows are counted by the reader, from the beginning.
            whole = split._replace(skip=0)
            return self._multiline.parse(whole, self._data.names, self._block_bytes)
        return self._by_lines(split)

    def _by_lines(self, split: FileSplit) -> Iterator[Decoded]:
        self._names = self._data.names
        # Each split looks for itself, since the file may be read by several tasks.
        begin = self._first_record(split.file) if self._begins_later else 0
        if begin is None:
            return
        for block in line_blocks(split, self.options, self._block_bytes, self.context.cut_places):
            if block.since and begin > KNOWN:
                where = f"{split.file.path}, byte {begin} of its content"
                raise malformed(
                    where,
                    "the first record",
                    f"one within {KNOWN} bytes of a compressed file, after the header and skipRows",
                )
            left = 0 if block.since else begin - block.position
            skipped = min(max(0, left), len(block.data))
            if skipped < len(block.data):
                yield self.decode_records(split, block, skipped, len(block.data))

    @override
    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        self._names = self._data.names
        if not self._begins_later:
            return super().decode_packed(files, contents)
        first, bodies = self._names, list[bytes]()
        for file, data in zip(files, contents, strict=True):
            body: bytes | None = SkippedRows(self.options).without(without_mark(data))
            if body and self.options.header:
                body = self._without_header(body, file)
            bodies.append(body or b"")
            if bodies[:-1] and self._names != first:
                # Makes the reader take the files one by one; nobody sees it.
                raise header_misfit(file, self._names, first, "it differs from the previous file")
            first = self._names
        return self._parse_packed(files, bodies)

    @override
    def quick(self, data: bytes, source: Source) -> Parsed | None:
        packed = len(source.files) > 1
        lines = _as_lines(data, self._separator)
        # Removing comments moves what follows, and packed files are found by their offsets.
        if lines is None or (self._comments is not None and (packed or has_lone_return(data))):
            return None
        if self._comments is not None:
            lines = self._comments.sub(b"", lines)
        if not lines or lines.isspace():
            return Parsed(self._rows.batch([]), rows_of=[0] * len(source.files))
        batch = self._fast.parse(lines, self._names, lines=True)
        rows_of = None if batch is None else _rows_of(lines, source, batch.num_rows)
        if batch is None or rows_of is None:
            return None
        return Parsed(batch, rows_of=rows_of if packed else None)

    @override
    def rows_of(self, record: bytes, where: Callable[[], str]) -> tuple[Sequence[Row], str]:
        text = record.decode("utf-8", "replace")
        tokens = self._tokens.line(text)
        if tokens is None:
            return (), ""
        row = self._rows.of_record(tokens, self._names, shown(text), where)
        return ((), row) if isinstance(row, str) else ((row,), "")

    @property
    def _begins_later(self) -> bool:
        """True if records do not begin where the file does."""
        return self.options.header or self.options.skip_rows > 0

    def _first_record(self, file: FileVersion) -> int | None:
        """Where the first record is in the file, or its decompressed content; None: nowhere."""
        blocks = line_blocks(FileSplit(file, 0, file.size), self.options, PIECE)
        for block in SkippedRows(self.options).behind(blocks):
            has_header = self.options.header
            body = self._without_header(block.data, file) if has_header else block.data
            if body is not None:
                return block.position + len(block.data) - len(body)
        return None

    def _without_header(self, data: bytes, file: FileVersion) -> bytes | None:
        """What follows the header, None without one; notes which columns the fields are."""
        # Packed files mostly have the same header, which then is parsed once.
        if self._header and data.startswith(self._header):
            self._names = self._header_names
            return data[len(self._header) :]
        records = self.records(data)
        for offset, line in records:
            tokens = self._tokens.line(line.decode("utf-8", "replace"))
            if tokens is None:
                continue
            self._names = self._columns.names(tokens, file)
            end, _ = next(records, (len(data), b""))
            # Known by its bytes only if it is the first line and has its end: else a longer line
            # could begin so.
            if offset == 0 and end > len(line):
                self._header, self._header_names = data[:end], self._names
            return data[end:]
        return None


def _as_lines(data: bytes, separator: bytes) -> bytes | None:
    """`data` with a line feed for each separator; None if other line breaks are in it."""
    if not separator:
        return data
    count = data.count(separator)
    for other in (b"\n", b"\r"):
        if data.count(other) != count * separator.count(other):
            return None
    return data if separator == b"\n" else data.replace(separator, b"\n")


def _rows_of(data: bytes, source: Source, rows: int) -> list[int] | None:
    """Records of each file, if every line that is not blank holds one; None if not."""
    if len(source.files) == 1:
        return [rows]
    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    counts = source.by_file(feeds, len(data))
    if sum(counts) != rows:
        boundaries = [*source.starts, len(data)]
        counts = [
            sum(1 for line in data[a:b].splitlines() if line) for a, b in pairwise(boundaries)
        ]
    return counts if sum(counts) == rows else None


def _csv_records(
    file: FileVersion, options: ReaderOptions, tokens: CsvTokens, limit: int
) -> Iterator[list[Token]]:
    blocks = beginning(file, options, limit, SkippedRows(options).behind)
    if options.multi_line:
        data = b"".join(blocks)
        text = data.decode("utf-8", "replace")
        line_break = options.line_sep or break_of(text)
        for record in tokens.records(text, line_break, is_end=len(data) < limit):
            yield record.tokens
        return
    for block in blocks:
        for _, line in records_of(block, options.line_sep.encode()):
            found = tokens.line(line.decode("utf-8", "replace"))
            if found is not None:
                yield found

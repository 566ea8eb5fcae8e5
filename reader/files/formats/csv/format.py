"""CSV by the rules of Spark's reader: headers, quotes, comments, what a bad record does.

Blocks of whole records go to pyarrow's parser (`fast_parser.py`), what it refuses is parsed exactly
(`record_splitter.py`, `exact_rows.py`), as `records/driver.py` decides.
Columns are inferred from the records at the beginning of files, of which those that do not parse
say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import OptionError
from ...evolution.column_names import ColumnNames
from ...evolution.type_growth import merged
from ...io.cut_places import KNOWN_CONTENT_BYTES
from ...io.lines import (
    LineBlock,
    SkippedRows,
    line_blocks,
    separator_in_utf8,
    without_mark,
)
from ...io.memory_bounds import RecordLimit
from ...options import ReaderOptions
from ...values.text_types import TextTypes, text_leaf
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, Decoded, FormatContext, Parsed
from ..records.driver import (
    Cut,
    TextDriver,
    TextParser,
    TextRecord,
    exactly,
    records_of,
)
from ..records.outcome import RecordOutcome
from ..records.record_format import Origin, RecordFormat, beginning, data_schema, malformed
from .exact_rows import CsvRows
from .fast_parser import CsvFast
from .header import CsvHeader, field_names, header_misfit, warn_of_one_column
from .record_splitter import CsvTokens, break_of, shown
from .univocity_scanner import Token


class CsvFormat(RecordFormat, TextParser):
    """Records of fields, matched by position or by the header's names; see `CsvHeader`."""

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
                if len(names) == 1:
                    warn_of_one_column(names[0], file, options.sep)
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
        cls, file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema
    ) -> pa.DataType:
        columns = cls.columns_of(file, options, limit)
        if options.infer_column_types:
            return columns
        # All of them are strings here; what is known has a type that the user has chosen.
        names = ColumnNames(schema.names)
        return pa.struct([field for field in columns if field.name not in names])

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
        self._columns = CsvHeader(self._data.names, options, context)
        self._driver = TextDriver(self, options)
        self._line_break = ""
        self._names: Sequence[str] = self._data.names
        self._header = b""
        self._header_names = self._names

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        # Rows of records that span lines are counted by the reader, from the beginning.
        return (
            self._by_quotes(split._replace(skip=0)) if self.spans_lines else self._by_lines(split)
        )

    def _by_quotes(self, split: FileSplit) -> Iterator[Decoded]:
        """Decode a whole file, cut where no quote is open."""
        self._names, self._line_break = self._data.names, self.options.line_sep
        unread, is_behind_header = _Unread(split.file, self.options), not self.options.header
        for is_last in unread.grow(self._blocks(split)):
            if not self._line_break:
                self._line_break = break_of(unread.data)
            if not is_behind_header:
                begin = self._end_of_header(unread.data, split.file, is_last=is_last)
                if begin is None:
                    continue
                is_behind_header = True
                unread.use(begin)
            used = 0
            for parsed, end in self._driver.cuts(unread.data, unread.source, is_last=is_last):
                used = end
                if parsed.batch.num_rows or parsed.dropped_records:
                    yield parsed
            unread.use(used)

    def _by_lines(self, split: FileSplit) -> Iterator[Decoded]:
        self._names = self._data.names
        begin = None if self.options.header else 0
        if self._begins_later and (split.start or split.skip):
            # Each split looks for itself, since the file may be read by several tasks.
            begin = self._first_record(split.file)
            if begin is None:
                return
        for block in self._blocks(split):
            if begin is None:
                # Mostly it is at the beginning of a block, of which the rest is not looked at here.
                separator = separator_in_utf8(self.options)
                at = block.data.find(separator, self.piece_bytes)
                first = block.data[: at + len(separator)] if at >= 0 else b""
                end = self._end_of_header(first, split.file)
                if end is None:
                    end = self._end_of_header(block.data, split.file)
                if end is None:
                    continue
                begin = block.position_at(end)
            if block.since and begin > KNOWN_CONTENT_BYTES:
                where = f"{split.file.path}, byte {begin} of its content"
                raise malformed(
                    where,
                    "the first record",
                    f"one within {KNOWN_CONTENT_BYTES} bytes of a compressed file, after the "
                    "header and skipRows",
                )
            skipped = 0 if block.since else block.offset_of(begin)
            if skipped < len(block.data):
                yield from self.decode_block(split, block, skipped)

    @override
    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        self._names = self._data.names
        if not self._begins_later:
            return super().decode_packed(files, contents)
        first, bodies = self._names, list[bytes]()
        for file, data in zip(files, contents, strict=True):
            body = SkippedRows(self.options).without(without_mark(data))
            if body and self.options.header:
                begin = self._end_of_header(body, file)
                body = b"" if begin is None else body[begin:]
            bodies.append(body)
            if bodies[:-1] and self._names != first:
                # Makes the reader take the files one by one; it is not reported.
                raise header_misfit(file, self._names, first, "it differs from the previous file")
            first = self._names
        return self._parse_packed(files, bodies)

    @override
    def parse(self, data: bytes, source: Origin) -> Parsed:
        return self._driver.parse(data, source)

    @override
    def fast(self, data: bytes, source: Origin, *, is_last: bool) -> Cut | None:
        if self.spans_lines:
            batch, end = self._fast.quoted(data, self._names, self._line_break, is_last=is_last)
            return None if batch is None else Cut(Parsed(batch), end)
        packed = len(source.files) > 1
        lines = self._fast.as_lines(data, may_move=not packed)
        if lines is None:
            return None
        batch = self._fast.parse(lines, self._names, lines=True)
        rows_of = None if batch is None else _rows_of(lines, source, batch.num_rows)
        if batch is None or rows_of is None:
            return None
        return Cut(Parsed(batch, rows_of=rows_of if packed else None), len(data))

    @override
    def records(self, data: bytes, *, is_last: bool) -> Iterator[TextRecord]:
        if self.spans_lines:
            yield from self._tokens.quoted(data, self._line_break, is_end=is_last)
            return
        for offset, end, line, _ in records_of(data, self.options.line_sep.encode()):
            text = line.decode("utf-8", "replace")
            yield TextRecord(offset, end, shown(text), self._tokens.line(text))

    @override
    def exact(self, records: Iterator[TextRecord], source: Origin) -> Cut:
        return exactly(records, self._outcome, self._rows, source, self.options)

    def _outcome(self, record: TextRecord, where: Callable[[], str]) -> RecordOutcome:
        # Blank lines and comments have no fields.
        if not record.fields:
            return RecordOutcome(())
        return self._rows.of_record(record.fields, self._names, str(record.text), where)

    def _blocks(self, split: FileSplit, step: int = 0) -> Iterator[LineBlock]:
        step = step or self._block_bytes
        return line_blocks(split, self.options, step, self.context.cut_places)

    @property
    def _begins_later(self) -> bool:
        """True if records do not begin where the file does."""
        return self.options.header or self.options.skip_rows > 0

    def _first_record(self, file: FileVersion) -> int | None:
        """Find the first record in the file, or its decompressed content; None: nowhere."""
        for block in self._blocks(FileSplit(file, 0, file.size), self.piece_bytes):
            begin = self._end_of_header(block.data, file) if self.options.header else 0
            if begin is not None:
                return block.position_at(begin)
        return None

    def _end_of_header(self, data: bytes, file: FileVersion, *, is_last: bool = True) -> int | None:
        """Return where the header ends, None without one; notes which columns the fields are."""
        # Packed files mostly have the same header, which then is parsed once.
        if self._header and data.startswith(self._header):
            self._names = self._header_names
            return len(self._header)
        for offset, end, _, fields in self.records(data, is_last=is_last):
            if fields:
                self._names = self._columns.names(fields, file)
                # Known by its bytes only if it is the first line and has its end: else a longer
                # line could begin so.
                ends = (
                    (self.options.line_sep.encode(),) if self.options.line_sep else (b"\n", b"\r")
                )
                if offset == 0 and not self.spans_lines and data[:end].endswith(ends):
                    self._header, self._header_names = data[:end], self._names
                return end
        return None


class _Unread:
    """Bytes of one file that are read and not parsed yet, in bounded memory and linear time."""

    def __init__(self, file: FileVersion, options: ReaderOptions) -> None:
        self._file, self._limit = file, RecordLimit(file, options)
        self.data = b""
        self._position = 0

    @property
    def source(self) -> Origin:
        """Return where the bytes come from."""
        return Origin((self._file,), (0,), self._position)

    def use(self, count: int) -> None:
        """Drop so many bytes."""
        self.data = self.data[count:]
        self._position += count

    def grow(self, blocks: Iterator[LineBlock]) -> Iterator[bool]:
        """Read as much again as is left over, each time; yields whether the file has ended.

        No more than a record may have, and a block, so that what is held stays within that.

        Raises:
            MalformedDataError: a record is longer than `maxRecordBytes`.
        """
        most = self._limit.bytes
        block = next(blocks, None)
        if block is not None:
            self._position = block.position
        while block is not None:
            left = len(self.data)
            if left > most:
                raise self._limit.error(self._position)
            parts, size = [self.data], 0
            while block is not None and (not size or size < min(left, most - left)):
                parts.append(block.data)
                size += len(block.data)
                block = next(blocks, None)
            self.data = b"".join(parts)
            yield block is None


def _rows_of(data: bytes, source: Origin, rows: int) -> list[int] | None:
    """Return records of each file, if every line that is not blank holds one; None if not."""
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
) -> Iterator[Sequence[Token]]:
    blocks = beginning(file, options, limit)
    if options.multi_line:
        data = b"".join(blocks)
        line_break = options.line_sep or break_of(data)
        for record in tokens.quoted(data, line_break, is_end=len(data) < limit):
            yield record.fields or ()
        return
    for block in blocks:
        for _, _, line, _ in records_of(block, options.line_sep.encode()):
            fields = tokens.line(line.decode("utf-8", "replace"))
            if fields is not None:
                yield fields

"""JSON lines and JSON documents by the rules of Spark's reader.

Three paths, each of which refuses everything that it is not sure of: the fast parsers over blocks
of whole lines (`fast_parsers.py`), CPython's parser for records of which every value fits
(`plain_records.py`), and tokens as Spark's own parser sees them (`tokenizer.py`,
`json_rows.py`), which is slow and exact.

The parsers skip line feeds like blanks, so that `{"a":` and `1}` on two lines would be a record,
and two objects on one line would be two; for Spark both are malformed. So here is a look at whether
each line holds one record. Columns are inferred from the records at the beginning of files, of
which those that do not parse say nothing.

With `multiLine` each file is one document: arrays are read element by element, anything else at
once. For Spark a document is one record. If a value of one element does not fit, the document is
bad: under `DROPMALFORMED` all of its rows go, under `PERMISSIVE` each gets the document's text. So
under these modes rows wait, beyond a few in a temporary file, until the document's end is seen. An
array is cut into lines of one element each without parsing it: quotes and brackets are counted over
whole pieces at once, so that neither the document nor its elements are held as objects. It is
enough for JSON that is well formed; what might not be is `Odd`, and is read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec
import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError, SluiceError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import merged, wider_or_text
from ...io.lines import LineBlock, content, whole_content
from ...io.memory_bounds import Spool, too_long
from ...io.whole_records import Limit
from ...options import ParseMode, ReaderOptions
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, BadRecord, Decoded, FormatContext, Parsed
from ..record_format import BLOCK_BYTES, RecordFormat, Source, beginning, data_schema
from ..text_driver import (
    Cut,
    Partial,
    RecordOutcome,
    TextDriver,
    TextParser,
    TextRecord,
    records_of,
)
from .fast_parsers import FastRecords, parseable, rows_by_file
from .json_rows import JsonRows
from .json_text import is_wide
from .json_values import MAX_DEPTH, nesting, type_of_json, without_escapes
from .tokenizer import UnknownJsonFields, tree_of_record


class JsonFormat(RecordFormat, TextParser):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        exact = options.infer_column_types and not options.primitives_as_string
        texts = json_texts(file, options, limit)
        return type_of_json((r for text in texts for r in _records(text, options)), exact=exact)

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema
    ) -> pa.DataType:
        unknown_fields = UnknownJsonFields(data_schema(schema, options), options)
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
        self._driver = TextDriver(self, self._rows, options)
        self._documents = Documents(options, self._rows, self._fast_lines)

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        return self._documents.read(split.file) if self.spans_lines else super().decode(split)

    @override
    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[LineBlock]) -> NewColumnsSeen:
        columns, left = seen.found, self.options.infer_sample_bytes
        with suppress(ValueError, SluiceError):  # What cannot be read is named when it is its turn.
            for block in blocks:
                records = (record.text for record in self.records(block.data))
                columns = merged(
                    columns, self._rows.unknown_fields.of_records(records), wider_or_text
                )
                left -= len(block.data)
                if left <= 0:
                    break
        return NewColumnsSeen(seen.where, columns)

    @override
    def parse(self, data: bytes, source: Source) -> Parsed:
        return self._driver.parse(data, source)

    @override
    def fast(self, data: bytes, source: Source, *, is_last: bool) -> Cut | None:
        separator = self.options.line_sep
        # The fast parsers take line feeds for borders, and no other separator.
        if separator in ("", "\n"):
            return self._fast_lines(data, source)
        is_same = separator == "\r\n" and data.count(b"\n") == data.count(b"\r\n")
        return self._fast_lines(data, source) if is_same else None

    def _fast_lines(self, data: bytes, source: Source) -> Cut | None:
        batch = self._records.batch(data) if parseable(data) else None
        rows_of = None if batch is None else rows_by_file(data, source, batch.num_rows)
        if batch is None or rows_of is None:
            return None
        return Cut(Parsed(batch, rows_of=rows_of if len(source.files) > 1 else None), len(data))

    @override
    def records(self, data: bytes, *, is_last: bool = True) -> Iterator[TextRecord]:
        # Blank lines are no records.
        for record in records_of(data, self.options.line_sep.encode()):
            if record.text and not record.text.isspace():
                yield record

    @override
    def outcome(self, record: TextRecord, where: Callable[[], str]) -> RecordOutcome:
        return self._rows.of_record(record.text, where)


def json_texts(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """Yield the text of each record in the first `limit` bytes."""
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


_ROWS = 8192
_BLANKS = b" \t\r\n"


class Documents:
    """Reads the document of one file after the other."""

    def __init__(self, options: ReaderOptions, rows: JsonRows, fast: FastLines) -> None:
        """`fast` takes lines of one record each, or refuses them."""
        self._options, self._rows, self._fast = options, rows, fast
        # A comment may hold quotes and brackets, which `elements` would count.
        self._whole = bool(options.single_variant_column) or options.allow_comments

    def read(self, file: FileVersion) -> Iterator[Parsed]:
        """Yield the rows of `file`'s document in order, in bounded memory if it is a plain array.

        Raises:
            MalformedDataError: the document is malformed, under `FAILFAST`, or too large.
        """
        done = 0
        with suppress(Odd):
            for parsed in self._by_element(file):
                yield parsed
                done += parsed.batch.num_rows
            return
        yield from self._at_once(file, done)

    def _by_element(self, file: FileVersion) -> Iterator[Parsed]:
        if self._whole:
            raise Odd("a document that is one record")
        options, rows = self._options, self._rows
        step = min(BLOCK_BYTES, options.batch_bytes)
        parser = _ElementParser(file, rows, self._fast)
        driver = TextDriver(parser, rows, options, b"\n")
        outcome: RecordOutcome | None = None
        with Spool(4 * options.batch_bytes) as spool:
            pieces = _plain(content(file, options, step))
            for lines, position in elements(pieces, step, self._limit(file)):
                parsed = driver.parse(lines, Source((file,), (0,), position))
                if parser.problem and outcome is None:
                    outcome = rows.refuse((), b"", parser.problem, lambda: file.path)
                # Nothing has to wait for the end: the first value that does not fit fails the
                # query.
                if options.mode is ParseMode.FAILFAST:
                    yield parsed
                else:
                    spool.put(parsed.batch)
            if outcome and outcome.dropped:
                yield self._dropped(file, outcome.dropped)
                return
            text = self._text(file) if outcome and rows.keeps_text else None
            for batch in spool.batches():
                yield from map(Parsed, rows.with_text(batch, text, options.batch_bytes))

    def _limit(self, file: FileVersion) -> Limit:
        options = self._options

        def error(position: int) -> Exception:
            return too_long(file.path, f"byte {position}", options, what="element of a document")

        return Limit(options.max_record_bytes, error)

    def _at_once(self, file: FileVersion, done: int) -> Iterator[Parsed]:
        """Yield all of a document as one record, but for the rows that are out already."""
        data = whole_content(file, self._options)
        rows, dropped = self._rows.of_record(data, lambda: f"{file.path}, byte 0")
        if dropped:
            yield self._dropped(file, dropped)
            return
        for start in range(done, max(len(rows), done + 1), _ROWS):
            yield Parsed(self._rows.batch(rows[start : start + _ROWS]))

    def _dropped(self, file: FileVersion, reason: str) -> Parsed:
        bad = list[BadRecord]()
        if self._options.bad_records_path:
            bad.append(BadRecord(file.path, "byte 0", self._text(file), reason))
        return Parsed(self._rows.batch([]), 1, bad)

    def _text(self, file: FileVersion) -> str:
        return whole_content(file, self._options).decode("utf-8", "replace")


def _plain(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        if number == 0 and is_wide(piece):
            raise Odd("another encoding")
        yield piece


FastLines = Callable[[bytes, Source], Cut | None]


class _ElementParser(TextParser):
    """Parses the elements of one document; remembers what does not fit in the first bad one."""

    spans_lines = False

    def __init__(self, file: FileVersion, rows: JsonRows, fast: FastLines) -> None:
        self._path, self._rows, self._fast = file.path, rows, fast
        self.problem = ""

    @override
    def fast(self, data: bytes, source: Source, *, is_last: bool) -> Cut | None:
        cut = self._fast(data, source)
        # The fast parsers pass over blank lines, as an element without content would be.
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        if cut is not None and cut.parsed.batch.num_rows != count:
            raise Odd("an element that is not a record")
        return cut

    @override
    def records(self, data: bytes, *, is_last: bool) -> Iterator[TextRecord]:
        # A block that ends with a line feed has no element behind it.
        return (record for record in records_of(data, b"\n") if record.offset < len(data))

    @override
    def outcome(self, record: TextRecord, where: Callable[[], str]) -> RecordOutcome:
        try:
            return RecordOutcome([self._rows.of_element(record.text, where)])
        except Partial as err:
            place = where().removeprefix(f"{self._path}, ")
            self.problem = self.problem or f"{err}, in the element at {place}"
            return RecordOutcome([err.value])
        except ValueError as err:
            raise Odd(str(err)) from err


class Odd(ValueError):
    """The document is no plain array of objects, or not certainly."""


def elements(pieces: Iterable[bytes], step: int, limit: Limit) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of about `step` bytes with the elements of an array, a line each.

    With each block comes the place of its first element in the document.

    Raises:
        Odd: the document is something else, or ends otherwise. Earlier elements may be out by then.
        Exception: an element is longer than `limit` says; its own error.
    """
    scanner, lines, whole, position, has_comma = _Scanner(), bytearray(), 0, 0, False
    for piece in pieces:
        begin, more, commas = scanner.scan(piece)
        position += begin
        if len(commas):
            whole, has_comma = len(lines) + int(commas[-1]) + 1, True
        lines += more
        if whole and len(lines) >= step:
            yield bytes(lines[:whole]), position
            del lines[:whole]
            position, whole = position + whole, 0
        if len(lines) - whole > limit.bytes:
            raise limit.error(position + whole)
    if not scanner.ended:
        raise Odd("the array does not end")
    if lines[whole:].strip():
        yield bytes(lines), position
    elif has_comma:
        raise Odd("a comma before the array's end")


class _Scanner:
    """Knows at the end of each piece how deep it is nested, and whether it is in a string."""

    def __init__(self) -> None:
        self.ended = False
        self._depth = 0
        self._in_string = False
        self._held = b""

    def scan(self, piece: bytes) -> tuple[int, bytes, np.ndarray]:
        """Bytes left out before the elements, the lines, and where the commas between them were."""
        data, begin = self._held + piece, 0
        self._held = b""
        if not self._depth and not self.ended:
            begin = len(data) - len(data.lstrip(_BLANKS))
            if begin == len(data):
                return begin, b"", np.empty(0, np.int64)
            if data[begin] != ord("["):
                raise Odd("no array")
            begin, self._depth = begin + 1, 1
        if self.ended:
            if data.strip(_BLANKS):
                raise Odd("text after the array")
            return 0, b"", np.empty(0, np.int64)
        return begin, *self._lines(data[begin:])

    def _lines(self, data: bytes) -> tuple[bytes, np.ndarray]:
        plain = without_escapes(data)
        # The piece was cut within an escape, whose second byte comes with the next one.
        if plain.endswith(b"\\"):
            plain, data, self._held = plain[:-1], data[:-1], b"\\"
        raw = np.frombuffer(plain, np.uint8)
        inside, depth = nesting(raw, in_string=self._in_string)
        depth += self._depth
        ends = np.flatnonzero(depth == 0)
        if len(ends):
            end = int(ends[0])
            if raw[end] != ord("]") or data[end + 1 :].strip(_BLANKS):
                raise Odd("another end than the array's")
            data, raw, inside, depth = data[:end], raw[:end], inside[:end], depth[:end]
            self.ended = True
        elif len(raw):
            self._depth, self._in_string = int(depth[-1]), bool(inside[-1])
        if len(depth) and depth.max() > MAX_DEPTH:
            raise Odd("nested too deeply")
        feeds = (raw == ord("\n")) | (raw == ord("\r"))
        # A line feed in a string is malformed, and would end a line here; single quotes are for the
        # exact path.
        if (feeds & inside).any() or ((raw == ord("'")) & ~inside).any():
            raise Odd("a string that is not plain")
        commas = np.flatnonzero((raw == ord(",")) & ~inside & (depth == 1))
        lines = np.frombuffer(data, np.uint8).copy()
        # Elements become lines: breaks within them are blanks, and the commas between them are
        # breaks.
        lines[feeds] = ord(" ")
        lines[commas] = ord("\n")
        return lines.tobytes(), commas

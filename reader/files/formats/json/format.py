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
array is cut into lines of one element each without parsing it (`record_path.py`); what might not be
one is read at once. With `recordPath` the elements are records themselves, as lines are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain

import msgspec
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import OptionError, SluiceError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import merged, wider_or_text
from ...io.lines import content, whole_content
from ...io.memory_bounds import Spool
from ...options import ParseMode, ReaderOptions
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, BadRecord, Decoded, FormatContext, Parsed
from ..records.driver import Cut, TextDriver, TextParser, TextRecord, records_of
from ..records.outcome import Partial, RecordOutcome, RecordRows
from ..records.record_format import (
    BLOCK_BYTES,
    Origin,
    RecordFormat,
    beginning,
    data_schema,
    malformed,
)
from .fast_parsers import FastRecords, parseable, rows_by_file
from .json_rows import JsonRows
from .json_values import type_of_json
from .record_path import ROOT, Odd, records_at
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
        if self.options.record_path:
            return self._at_path(split.file)
        return self._documents.read(split.file) if self.spans_lines else super().decode(split)

    def _at_path(self, file: FileVersion) -> Iterator[Parsed]:
        blocks = _records_at_path(file, self.options, self._block_bytes)
        try:
            for data, source in blocks:
                try:
                    yield self.parse(data, source)
                except NewColumnsSeen as seen:
                    more = chain([data], (each for each, _ in blocks))
                    raise self.all_new_columns(seen, more) from None
        except Odd as err:
            text, source = err.text.decode("utf-8", "replace"), Origin((file,), (0,), err.position)
            rows, dropped = self._rows.refuse([{}], text, str(err), lambda: source.locate(0)[1])
            bad = [source.bad_record(0, text, dropped)] * bool(self.options.bad_records_path)
            yield Parsed(self._rows.batch(rows), int(bool(dropped)), bad)

    @override
    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[bytes]) -> NewColumnsSeen:
        columns, left = seen.found, self.options.infer_sample_bytes
        with suppress(ValueError, SluiceError):  # What cannot be read is named when it is its turn.
            for block in blocks:
                records = (record.text for record in self.records(block))
                columns = merged(
                    columns, self._rows.unknown_fields.of_records(records), wider_or_text
                )
                left -= len(block)
                if left <= 0:
                    break
        return NewColumnsSeen(seen.where, columns)

    @override
    def parse(self, data: bytes, source: Origin) -> Parsed:
        return self._driver.parse(data, source)

    @override
    def fast(self, data: bytes, source: Origin, *, is_last: bool) -> Cut | None:
        separator = self.options.line_sep
        # The fast parsers take line feeds for borders, and no other separator.
        if separator in ("", "\n"):
            return self._fast_lines(data, source)
        is_same = separator == "\r\n" and data.count(b"\n") == data.count(b"\r\n")
        return self._fast_lines(data, source) if is_same else None

    def _fast_lines(self, data: bytes, source: Origin) -> Cut | None:
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
    if options.record_path:
        # What cannot be read is named, or dropped, when it is its turn.
        with suppress(Odd):
            for data, _ in _records_at_path(file, options, min(BLOCK_BYTES, limit)):
                yield from data.split(b"\n")
                limit -= len(data)
                if limit <= 0:
                    break
        return
    if options.multi_line:
        yield whole_content(file, options)
        return
    separator = options.line_sep.encode()
    for data in beginning(file, options, limit):
        yield from data.split(separator) if separator else data.splitlines()


def _records_at_path(
    file: FileVersion, options: ReaderOptions, step: int
) -> Iterator[tuple[bytes, Origin]]:
    try:
        yield from records_at(options.record_path, file, content(file, options, step), options)
    except Odd as err:
        if options.mode is ParseMode.FAILFAST:
            where = f"{file.path}, byte {err.position}"
            raise malformed(where, str(err), RecordRows.expected) from err
        raise


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
            pieces = content(file, options, step)
            for lines, source in records_at(ROOT, file, pieces, options):
                parsed = driver.parse(lines, source)
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


FastLines = Callable[[bytes, Origin], Cut | None]


class _ElementParser(TextParser):
    """Parses the elements of one document; remembers what does not fit in the first bad one."""

    spans_lines = False

    def __init__(self, file: FileVersion, rows: JsonRows, fast: FastLines) -> None:
        self._path, self._rows, self._fast = file.path, rows, fast
        self.problem = ""

    @override
    def fast(self, data: bytes, source: Origin, *, is_last: bool) -> Cut | None:
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

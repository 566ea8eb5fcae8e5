"""JSON lines and JSON documents by the rules of Spark's reader.

Two paths: the fast parsers over blocks of whole lines (`fast_parsers.py`), which refuse everything
that they are not sure of, and the exact one (`json_rows.py`, `raw_records.py`).

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

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import OptionError, SluiceError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import merged, wider_or_text
from ...io.lines import content, whole_content
from ...io.memory_bounds import Spool
from ...options import ParseMode, ReaderOptions
from ...values.times.temporal import Temporal
from ..api import NO_CONTEXT, BadRecord, Decoded, FormatContext, Parsed
from ..records.driver import Cut, TextDriver, TextParser, TextRecord, records_of
from ..records.record_format import (
    BLOCK_BYTES,
    Origin,
    RecordFormat,
    beginning,
    data_schema,
    malformed,
)
from ..records.unknown_fields import UnknownFields
from .fast_parsers import FastRecords, parseable, rows_by_file
from .inference import type_of_texts
from .json_rows import JsonRows, Records
from .record_path import ROOT, NotPlainJson, records_at
from .strict_json import NotJson, trees

_PIECE = 256 * 1024


class JsonFormat(RecordFormat, TextParser):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    # The exact path reads whole columns, too, so that many small pieces cost more than they save.
    piece_bytes = least_bytes = _PIECE

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        return type_of_texts(json_texts(file, options, limit), options)

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema
    ) -> pa.DataType:
        unknown_fields = UnknownFields(data_schema(schema, options), options)
        texts = chain.from_iterable(json_texts(file, options, limit))
        return unknown_fields.of_records(tree for text in texts for tree in trees(text, options))

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
        self._driver = TextDriver(self, options)
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
        except NotPlainJson as err:
            record = TextRecord(0, len(err.text), err.text)
            refused = self._rows.refused(str(err))
            yield self._kept(refused, [record], Origin((file,), (0,), err.position))

    @override
    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[bytes]) -> NewColumnsSeen:
        columns, left = seen.found, self.options.infer_sample_bytes
        with suppress(ValueError, SluiceError):  # What cannot be read is named when it is its turn.
            for block in blocks:
                trees_of_block = (
                    tree
                    for record in self.records(block)
                    for tree in trees(record.text, self.options)
                )
                unknown = self._rows.unknown_fields.of_records(trees_of_block)
                columns = merged(columns, unknown, wider_or_text)
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
    def exact(self, records: Iterator[TextRecord], source: Origin) -> Cut:
        whole = list(records)
        read = self._rows.read([record.text for record in whole], places(whole, source))
        return Cut(self._kept(read, whole, source), whole[-1].end if whole else 0)

    def _kept(self, read: Records, records: Sequence[TextRecord], source: Origin) -> Parsed:
        texts = [record.text for record in records]
        batch, rows_of, dropped = self._rows.keep(read, texts, places(records, source))
        bad = list[BadRecord]()
        # A file of bad records only may hold gigabytes, so their text is kept only to be written.
        if self.options.bad_records_path:
            bad = [
                source.bad_record(records[at].offset, texts[at].decode("utf-8", "replace"), why)
                for at, why in dropped.items()
            ]
        if len(source.files) == 1:
            return Parsed(batch, len(dropped), bad, None, [len(dropped)])
        of_files, dropped_of = [0] * len(source.files), [0] * len(source.files)
        for at, (record, count) in enumerate(zip(records, rows_of, strict=True)):
            index = source.locate(record.offset)[0]
            of_files[index] += count
            dropped_of[index] += at in dropped
        return Parsed(batch, len(dropped), bad, of_files, dropped_of)


def json_texts(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[list[bytes]]:
    """Yield the texts of the records in the first `limit` bytes, a block at a time."""
    if options.record_path:
        # What cannot be read is named, or dropped, when it is its turn.
        with suppress(NotPlainJson):
            for data, _ in _records_at_path(file, options, min(BLOCK_BYTES, limit)):
                yield data.split(b"\n")
                limit -= len(data)
                if limit <= 0:
                    break
        return
    if options.multi_line:
        yield [whole_content(file, options)]
        return
    separator = options.line_sep.encode()
    for data in beginning(file, options, limit):
        yield data.split(separator) if separator else data.splitlines()


def _records_at_path(
    file: FileVersion, options: ReaderOptions, step: int
) -> Iterator[tuple[bytes, Origin]]:
    try:
        yield from records_at(options.record_path, file, content(file, options, step), options)
    except NotPlainJson as err:
        if options.mode is ParseMode.FAILFAST:
            where = f"{file.path}, byte {err.position}"
            raise malformed(where, str(err), JsonRows.expected) from err
        raise


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
        with suppress(NotPlainJson):
            for parsed in self._by_element(file):
                yield parsed
                done += parsed.batch.num_rows
            return
        yield from self._at_once(file, done)

    def _by_element(self, file: FileVersion) -> Iterator[Parsed]:
        if self._whole:
            raise NotPlainJson("a document that is one record")
        options, rows = self._options, self._rows
        step = min(BLOCK_BYTES, options.batch_bytes)
        parser = _ElementParser(file, rows, self._fast)
        driver = TextDriver(parser, options, b"\n")
        with closing(Spool(4 * options.batch_bytes)) as spool:
            pieces = content(file, options, step)
            for lines, source in records_at(ROOT, file, pieces, options):
                parsed = driver.parse(lines, source)
                if parser.problem and options.mode is ParseMode.FAILFAST:
                    raise rows.error(file.path, parser.problem)
                # Nothing has to wait for the end: the first value that does not fit fails the
                # query.
                if options.mode is ParseMode.FAILFAST:
                    yield parsed
                else:
                    spool.put(parsed.batch)
            if parser.problem and options.mode is ParseMode.DROPMALFORMED:
                yield self._dropped(file, parser.problem)
                return
            text = self._text(file) if parser.problem and rows.keeps_text else None
            for batch in spool.batches():
                yield from map(Parsed, rows.with_text(batch, text, options.batch_bytes))

    def _at_once(self, file: FileVersion, done: int) -> Iterator[Parsed]:
        """Yield all of a document as one record, but for the rows that are out already."""
        data = whole_content(file, self._options)
        read = self._rows.read([data], lambda _: f"{file.path}, byte 0")
        batch, _, dropped = self._rows.keep(read, [data], lambda _: f"{file.path}, byte 0")
        if dropped:
            yield self._dropped(file, dropped[0])
            return
        for start in range(done, max(batch.num_rows, done + 1), _ROWS):
            yield Parsed(batch.slice(start, _ROWS))

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
    piece_bytes = least_bytes = _PIECE

    def __init__(self, file: FileVersion, rows: JsonRows, fast: FastLines) -> None:
        self._path, self._rows, self._fast = file.path, rows, fast
        self.problem = ""

    @override
    def fast(self, data: bytes, source: Origin, *, is_last: bool) -> Cut | None:
        cut = self._fast(data, source)
        # The fast parsers pass over blank lines, as an element without content would be.
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        if cut is not None and cut.parsed.batch.num_rows != count:
            raise NotPlainJson("an element that is not a record")
        return cut

    @override
    def records(self, data: bytes, *, is_last: bool) -> Iterator[TextRecord]:
        # A block that ends with a line feed has no element behind it.
        return (record for record in records_of(data, b"\n") if record.offset < len(data))

    @override
    def exact(self, records: Iterator[TextRecord], source: Origin) -> Cut:
        whole = list(records)
        where = places(whole, source)
        try:
            read = self._rows.read([record.text for record in whole], where, elements=True)
        except NotJson as err:
            raise NotPlainJson(str(err)) from err
        for at, problem in read.problems.items():
            place = where(at).removeprefix(f"{self._path}, ")
            self.problem = self.problem or f"{problem}, in the element at {place}"
        return Cut(Parsed(read.batch), whole[-1].end if whole else 0)


def places(records: Sequence[TextRecord], source: Origin) -> Callable[[int], str]:
    """Return a function from the number of a record to its place."""
    return lambda at: source.locate(records[at].offset)[1]

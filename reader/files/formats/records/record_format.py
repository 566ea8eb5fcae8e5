"""What the line formats share: blocks of whole records, packed files, what a bad record does.

The formats themselves are in `json/format.py`, `csv/format.py` and `text/format.py`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import WITHOUT_THE_FILE, MalformedDataError
from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import children, with_children
from ...io.codecs import codec_of
from ...io.lines import (
    LineBlock,
    is_ascii_superset,
    line_blocks,
    overlaps_itself,
    separator_of,
    without_mark,
)
from ...io.memory_bounds import place_of_byte
from ...io.split_content import cuts_at_starts, starts
from ...options import Compression, ParseMode, ReaderOptions
from ..api import (
    NO_CONTEXT,
    BadRecord,
    Block,
    Decoded,
    FileFormat,
    FormatContext,
    Parsed,
    Splittability,
    contiguous,
)

METADATA = "_metadata"
"""Name of the opt-in column with the properties of a row's file."""

_STEP = 256 * 1024

BLOCK_BYTES = 1024 * 1024
"""Input parsed at a time: what stays in the caches; with 4 MiB CSV and JSON take a fifth longer."""


@dataclass(frozen=True)
class Origin:
    """The origin of the bytes of a parse: one block of a file, or several small files."""

    files: Sequence[FileVersion]
    starts: Sequence[int]
    """Where each file's bytes begin in the parsed bytes, ascending from 0."""

    position: int = 0
    """Where the first file's bytes are in that file."""

    since: int = 0
    """Byte of a compressed file from which on `position` counts its content."""

    def locate(self, offset: int) -> tuple[int, str]:
        """Index of the file and text for an error for a position in the parsed bytes."""
        index, place = self._position(offset)
        return index, f"{self.files[index].path}, {place}"

    def bad_record(self, offset: int, record: str, reason: str) -> BadRecord:
        """The record that begins at a position in the parsed bytes, as one that is dropped."""
        index, place = self._position(offset)
        return BadRecord(self.files[index].path, place, record, reason)

    def _position(self, offset: int) -> tuple[int, str]:
        index = max(0, bisect_right(self.starts, offset) - 1)
        # Only a single file is parsed from its middle; several begin at their first byte.
        within = offset - self.starts[index] + (self.position if index == 0 else 0)
        return index, place_of_byte(within, self.since)

    def moved(self, by: int) -> Origin:
        """Return the same without the first bytes of the parse."""
        return replace(self, position=self.position + by)

    def by_file(self, offsets: np.ndarray, length: int) -> list[int]:
        """Count the ascending offsets, in parsed bytes of that length, in each file."""
        boundaries = np.searchsorted(offsets, [*self.starts, length])
        return [int(count) for count in np.diff(boundaries)]


def source_of(block: LineBlock, skipped: int = 0) -> Origin:
    """Return where the bytes of a block come from, without the first ones."""
    return Origin((block.file,), (0,), block.position + skipped, block.since)


class RecordFormat(FileFormat):
    """A format whose records are independent of each other. Subclasses parse a buffer of them."""

    knows = frozenset({"compression", "encoding", "line_sep"})
    is_lines = True

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        separator_of(options)  # Refused before anything is read, if it cannot be one.
        # What a column costs once a block is worth mentioning where there are hundreds.
        self._block_bytes = min(BLOCK_BYTES * max(1, len(schema) // 64), options.batch_bytes)

    def splittability(self, file: FileVersion) -> Splittability:
        """At any byte, unless the content cannot be entered in the middle."""
        options = self.options
        # With one of these, it is unknown in the middle of a file where a record begins, or its
        # number.
        whole = (
            self.spans_lines
            or overlaps_itself(separator_of(options))
            or not is_ascii_superset(options.encoding)
            or asks_row_index(self.schema)
        )
        codec = codec_of(file.path, options.compression)
        if not whole and codec in (Compression.NONE, Compression.BZIP2):
            return Splittability.RECORDS
        if not whole and cuts_at_starts(codec, self.context.cut_places):
            return Splittability.BLOCKS
        return Splittability.WHOLE

    @override
    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """Return what of compressed text can be entered by itself; see `FileFormat.blocks`."""
        places = starts(
            file,
            codec_of(file.path, self.options.compression),
            self.options,
            self.context.cut_places,
        )
        return contiguous([(place, -1) for place in places], file.size)

    @property
    def spans_lines(self) -> bool:
        """True if a record may span lines, so that it takes the whole file to find boundaries."""
        return self.options.multi_line

    def may_pack(self, file: FileVersion) -> bool:
        """Return whether small files like this one may be parsed together."""
        options = self.options
        return (
            # Packed files are joined by line feeds, which then have to be what ends a record.
            not self.spans_lines
            and codec_of(file.path, options.compression) is Compression.NONE
            and options.encoding == "utf-8"
            and not options.line_sep
        )

    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the records whose first byte lies in `split`; see `FileFormat.decode`."""
        blocks = line_blocks(split, self.options, self._block_bytes, self.context.cut_places)
        for block in blocks:
            try:
                yield from self.decode_block(split, block, 0)
            except NewColumnsSeen as seen:
                # The rest of the split is looked through, so that the query stops once for all that
                # is new in it.
                more = (each.data for each in chain([block], blocks))
                raise self.all_new_columns(seen, more) from None

    def decode_block(self, split: FileSplit, block: LineBlock, begin: int) -> Iterator[Decoded]:
        """Yield the records of a block from a byte on, about as many at a time as are left."""
        data, separator = block.data, self.options.line_sep.encode()
        lines = records = 0
        while begin < len(data):
            most, end = self.context.records_left(), len(data)
            if most is not None:
                # A line may hold several records, or none: the first lines show that.
                count = max(
                    1, most * lines // records if records else max(min(most, _FIRST), lines)
                )
                end, passed = end_of_lines(data, begin, count, separator)
                lines += passed
            piece = self.decode_records(split, block, begin, end)
            records += piece.batch.num_rows + piece.dropped_records
            yield piece
            begin = end

    def decode_records(self, split: FileSplit, block: LineBlock, begin: int, end: int) -> Decoded:
        """Return the records in some bytes of a block, which begin and end with records."""
        decoded: Decoded = self.parse(block.data[begin:end], source_of(block, begin))
        decoded.span = block.skip_at(begin), block.skip_at(end)
        if (stored := block.stored_at(end)) is not None:
            decoded.read_bytes = min(stored - split.start, split.end - split.start)
        middle = self._border(block.data, begin, end)
        if middle < end:
            decoded.parts = lambda: (
                self.decode_records(split, block, a, b) for a, b in ((begin, middle), (middle, end))
            )
        return decoded

    def _border(self, data: bytes, begin: int, end: int) -> int:
        """Find the beginning of a record near the middle of some bytes; their end if none."""
        separator = self.options.line_sep.encode()
        for at in ((begin + end) // 2, begin):
            if separator:
                border = data.find(separator, at, end) + len(separator)
                border = end if border < len(separator) else border
            else:
                ending = _LINE_END.search(data, at, end)
                border = end if ending is None else ending.end()
            if begin < border < end:
                return border
        return end

    @override
    def first_row(self, split: FileSplit) -> int:
        return super().first_row(split) + (0 if self.spans_lines else rows_before(self, split))

    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        """Return rows of several small files from one parse, with the number of rows of each file.

        A byte order mark is left out of every file, as `line_blocks` does for a single one.

        Raises:
            SplitReadError: as for single files; parse them singly to learn which one it is.
        """
        return self._parse_packed(files, [without_mark(content) for content in contents])

    def _parse_packed(self, files: Sequence[FileVersion], bodies: Sequence[bytes]) -> Parsed:
        # A last line without an end must not run into the first line of the next file.
        parts = [data if data.endswith(b"\n") or not data else data + b"\n" for data in bodies]
        begins = [0, *accumulate(map(len, parts))][:-1]
        return self.parse(b"".join(parts), Origin(files, begins))

    def all_new_columns(self, seen: NewColumnsSeen, blocks: Iterable[bytes]) -> NewColumnsSeen:
        """`seen` with types for all that `blocks` hold; they begin with the one it was seen in."""
        del blocks
        return seen

    @abstractmethod
    def parse(self, data: bytes, source: Origin) -> Parsed:
        """Parse whole records. With several files in `source`, `rows_of` has to be filled."""


_FIRST = 64
"""Lines that are parsed at once at first, under a limit on rows."""


def end_of_lines(data: bytes, begin: int, count: int, separator: bytes) -> tuple[int, int]:
    """Return where the next `count` lines end, or as many as there are, and their number.

    Without a separator any line break ends them.
    """
    length = max(_LEAST_STEP, 128 * count)
    while True:
        end = min(len(data), begin + length)
        window = data[begin:end]
        ends = separators(window, separator or b"\n")
        if not len(ends) and not separator:
            # A CR at the end of the window may be the first half of CR LF.
            ends = separators(window[:-1], b"\r")
        if len(ends) >= count:
            return begin + int(ends[count - 1]) + len(separator or b"\n"), count
        if end == len(data):
            return end, len(ends) + 1
        length *= 4


def separators(data: bytes, separator: bytes) -> np.ndarray:
    """Return where each separator begins."""
    if len(separator) == 1:
        return np.flatnonzero(np.frombuffer(data, np.uint8) == separator[0])
    return np.array([m.start() for m in re.finditer(re.escape(separator), data)], np.int64)


_LEAST_STEP = 4096
"""Bytes that are searched for the ends of records, at least."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


def up_to(pieces: Iterable[Decoded], end: int) -> Iterator[Decoded]:
    """Yield what ends by that byte of a split's content; where a piece goes on, its parts."""
    for piece in pieces:
        assert piece.span is not None
        if piece.span[0] >= end:
            return
        if piece.span[1] > end and piece.parts is not None:
            yield from up_to(piece.parts(), end)
        else:
            yield piece


def rows_before(file_format: FileFormat, split: FileSplit) -> int:
    """Return the number of rows in the part of a split that was read already."""
    pieces = file_format.decode(split._replace(skip=0)) if split.skip else ()
    return sum(piece.batch.num_rows for piece in up_to(pieces, split.skip))


def makes_metadata(schema: pa.Schema) -> bool:
    """Return whether a schema asks for `_metadata`; of any other type, it is a column of files."""
    index = schema.get_field_index(METADATA)
    return index >= 0 and bool(pa.types.is_struct(schema.field(index).type))


def columns_made_here(schema: pa.Schema, *named: str) -> set[str]:
    """Return `_metadata`, if a schema asks for it, and the columns that options name."""
    # The name of an option that is not set is empty, and records may have a column without a name.
    return {name for name in (METADATA if makes_metadata(schema) else "", *named) if name}


def asks_row_index(schema: pa.Schema) -> bool:
    """Return whether rows are numbered through their file."""
    asks = makes_metadata(schema)
    return asks and bool(schema.field(METADATA).type.get_field_index("row_index") >= 0)


def beginning(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """Blocks of whole records up to `limit` bytes, at least one, from where a file begins.

    Raises:
        MalformedDataError: the file is of another kind, such as Parquet.
    """
    taken = 0
    step = min(_STEP, max(1024, limit))
    blocks = line_blocks(FileSplit(file, 0, file.size), options, step)
    try:
        for block in blocks:
            yield block.data
            taken += len(block.data)
            if taken >= limit:
                return
    except MalformedDataError:
        # Reading skips the rest of the file and counts it, so it must not stop the query before.
        if not options.ignore_corrupt_files:
            raise


def data_schema(schema: pa.Schema, options: ReaderOptions) -> pa.Schema:
    """The columns that records hold: all but those made here. Nulls are judged at the end."""
    own = options.column_name_of_corrupt_record, options.rescued_data_column
    made_here = columns_made_here(schema, *own)
    return pa.schema([nullable(f) for f in schema if f.name not in made_here])


def nullable(target: pa.Field) -> pa.Field:
    """Return the same field with nulls allowed at every depth, as parsers produce it."""
    fields = [nullable(field) for _, field in children(target.type)]
    return target.with_nullable(True).with_type(with_children(target.type, fields))


_MISFIT = re.compile(r"(?:column )?([^:'\"]+): .* where \S+ is expected")


def _wider(problem: str) -> str:
    """Name the hint that reads a value which does not fit the type of its column."""
    match = _MISFIT.match(problem)
    if match is None:
        return ""
    hint = f"schemaHints='{match[1]} string'"
    return f"If the value is right, read the column as text, if the table takes that: {hint}. "


def malformed(where: str, problem: str, expected: str) -> MalformedDataError:
    """Return the error for a record that does not parse, under `FAILFAST`."""
    return MalformedDataError(
        "malformed record",
        where,
        problem if len(problem) <= 200 else problem[:200] + "...",
        expected,
        f"{_wider(problem)}Repair the record, or start the query with one of these options: "
        "badRecordsPath (keeps such records in a directory), rescuedDataColumn (keeps the value in "
        f"a column), or set mode to {ParseMode.PERMISSIVE} (nulls) or {ParseMode.DROPMALFORMED} "
        f"(dropped and counted). {WITHOUT_THE_FILE}",
    )

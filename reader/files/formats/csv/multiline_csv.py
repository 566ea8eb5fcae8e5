"""CSV whose records span lines: cut where no quote is open, in bounded memory and linear time.

A block goes to the fast path up to its last line break outside of quotes. What that refuses is
tried again in pieces, and those it refuses again are tokenized; a piece in which no record ends is
doubled, so that a record of any length is looked at a few times at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ...io.lines import LineBlock, line_blocks
from ...io.memory_bounds import too_long
from ...options import ReaderOptions
from ...values.rows import Row
from ..api import BadRecord, Parsed
from ..fast_then_exact import PIECE
from ..record_format import Source
from .exact_rows import CsvRows
from .fast_parser import CsvFast
from .header import Header, SkippedRows
from .quote_check import Marks
from .record_splitter import CsvTokens, break_of, shown


@dataclass
class _FileProgress:
    """What is known of the file that is being read."""

    file: FileVersion
    names: Sequence[str]
    line_break: str = ""
    position: int = 0
    """Where the bytes that are not used yet begin."""

    rest: bytes = b""
    """Those of them that are read."""

    def use(self, count: int) -> None:
        """Go on behind so many bytes."""
        self.rest = self.rest[count:]
        self.position += count


class MultilineCsv:
    """Parses whole files. Holds nothing of one file when the next one is read."""

    def __init__(
        self,
        tokens: CsvTokens,
        fast: CsvFast,
        rows: CsvRows,
        columns: Header,
        options: ReaderOptions,
    ) -> None:
        self._tokens, self._fast, self._rows = tokens, fast, rows
        self._columns = columns
        self._options = options
        # Inside of quotes a separator that was set stays as it is, in which no fast parser agrees.
        self._may_be_fast = (
            fast.is_possible and not options.comment and options.line_sep in ("", "\n")
        )

    def parse(self, split: FileSplit, names: Sequence[str], step: int) -> Iterator[Parsed]:
        """The records of a whole file; `names` says which columns its fields are.

        Raises:
            MalformedDataError: a record is longer than `maxRecordBytes`.
        """
        document = _FileProgress(split.file, names, self._options.line_sep)
        has_header = self._options.header
        blocks = SkippedRows(self._options).behind(line_blocks(split, self._options, step))
        for is_last in _growing(blocks, document, self._options):
            if not document.line_break:
                document.line_break = break_of(document.rest.decode("utf-8", "replace"))
            if has_header:
                used = self._header(document, is_last=is_last)
                if used is None:
                    continue
                has_header = False
                document.use(used)
            used = 0
            for parsed, end in self._records(document.rest, document, is_last=is_last):
                used = end
                if parsed is not None:
                    yield parsed
            document.use(used)

    def _header(self, document: _FileProgress, *, is_last: bool) -> int | None:
        """Where the first record begins; None if the header goes on beyond what is read."""
        text = document.rest.decode("utf-8", "surrogateescape")
        for record in self._tokens.records(text, document.line_break, is_end=is_last):
            if record.tokens:
                tokens = [None if token is None else _mended(token) for token in record.tokens]
                document.names = self._columns.names(tokens, document.file)
                return _size(text[: record.end])
        return len(document.rest) if is_last else None

    def _records(
        self, data: bytes, document: _FileProgress, *, is_last: bool
    ) -> Iterator[tuple[Parsed | None, int]]:
        """What could be parsed, and where in `data` it ends."""
        quick = self._quick(data, document, is_last=is_last)
        if quick is not None:
            yield quick
            return
        at, size = 0, PIECE
        line_break = document.line_break.encode()
        while at < len(data):
            # The break may be within quotes: then no record ends in the piece, which is doubled
            # below.
            end = data.find(line_break, at + size)
            end = end + len(line_break) if end >= 0 else len(data)
            piece, ends_here = data[at:end], is_last and end == len(data)
            here = replace(document, position=document.position + at, rest=b"")
            parsed, used = self._quick(piece, here, is_last=ends_here) or self._exact(
                piece, here, is_last=ends_here
            )
            if used:
                at, size = at + used, PIECE
                yield parsed, at
            elif end == len(data):
                return
            else:
                size *= 2

    def _quick(
        self, data: bytes, document: _FileProgress, *, is_last: bool
    ) -> tuple[Parsed | None, int] | None:
        """The same for all of `data` by the fast path; None if it might be wrong."""
        if not self._may_be_fast:
            return None
        marks = Marks(data, self._options.sep, self._options.quote)
        lines = _as_lines(data, document.line_break, marks)
        if lines is None:
            return None
        used = len(data)
        if not is_last:
            used = marks.end_of_last(document.line_break[-1])
            lines = _as_lines(data[:used], document.line_break, marks)
            marks.cut(used)
        if not lines:
            return None
        if lines.startswith(b"\n") and not lines.strip(b"\n"):
            return None, used
        # Marks are places in `data`, and `lines` has fewer bytes once each CR LF is one.
        seen = marks if document.line_break == "\n" else None
        batch = self._fast.parse(lines, document.names, lines=False, marks=seen)
        return None if batch is None else (Parsed(batch), used)

    def _exact(
        self, data: bytes, document: _FileProgress, *, is_last: bool
    ) -> tuple[Parsed | None, int]:
        # Bytes that are not UTF-8 keep their number, from which positions are made; `_mended`
        # replaces them.
        text = data.decode("utf-8", "surrogateescape")
        rows, dropped, used, bad = list[Row](), 0, 0, list[BadRecord]()
        source = Source((document.file,), (0,), document.position)
        for record in self._tokens.records(text, document.line_break, is_end=is_last):
            used = record.end
            if not record.tokens:
                continue
            written = _mended(shown(text[record.start : record.end]))
            tokens = [None if token is None else _mended(token) for token in record.tokens]
            where = _locate(source, text, record.start)
            row = self._rows.of_record(tokens, document.names, written, where)
            if not isinstance(row, str):
                rows.append(row)
                continue
            dropped += 1
            if self._options.bad_records_path:
                bad.append(source.bad_record(_size(text[: record.start]), written, row))
        parsed = Parsed(self._rows.batch(rows), dropped, bad) if rows or dropped else None
        return parsed, len(data) if used == len(text) else _size(text[:used])


def _growing(
    blocks: Iterator[LineBlock], document: _FileProgress, options: ReaderOptions
) -> Iterator[bool]:
    """Reads as much again as is left over, each time; yields whether that is all there is.

    No more than a record may have, and a block, so that what is held stays within that.
    """
    most = options.max_record_bytes
    block = next(blocks, None)
    if block is not None:
        document.position = block.position
    while block is not None:
        left = len(document.rest)
        if left > most:
            raise too_long(document.file.path, f"byte {document.position}", options)
        parts, size = [document.rest], 0
        while block is not None and (not size or size < min(left, most - left)):
            parts.append(block.data)
            size += len(block.data)
            block = next(blocks, None)
        document.rest = b"".join(parts)
        yield block is None


def _as_lines(data: bytes, line_break: str, marks: Marks) -> bytes | None:
    """`data` with line feeds for line breaks; None where a lone CR or LF is something else."""
    if line_break == "\n":
        return None if b"\r" in data else data
    if line_break == "\r":
        # A line feed ends a line as well, but not every field.
        return None if b"\n" in data else data.replace(b"\r", b"\n")
    lines = data.replace(b"\r\n", b"\n")
    if b"\r" in lines:
        return None
    return None if marks.has_lone_feeds() else lines


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _locate(source: Source, text: str, offset: int) -> Callable[[], str]:
    return lambda: source.locate(_size(text[:offset]))[1]


def _mended(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

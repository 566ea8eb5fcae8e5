"""Reads records of text: a fast parser for blocks, an exact one for single records.

The fast parser refuses everything that it is not sure of. A refused block is tried again in pieces,
and a refused piece in two parts, so that only the records around a bad one are read exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ...io.lines import overlaps_itself, separator_in_utf8
from ...options import ReaderOptions
from ...values.rows import Row, Rows
from ..api import BadRecord, Parsed
from .outcome import RecordOutcome, text_of
from .record_format import Origin


class Cut(NamedTuple):
    """The rows of the records before some byte."""

    parsed: Parsed
    end: int


class TextRecord(NamedTuple):
    """A record, with where it begins and ends in the parsed bytes."""

    offset: int
    end: int
    text: Any
    """Bytes, or a string if there are fields; without what ends the record."""

    fields: Sequence[str | None] | None = ()
    """The fields of a CSV record; None for a blank line or a comment."""


class TextParser(ABC):
    """The two parsers of a format."""

    piece_bytes = 64 * 1024
    """Length of the pieces of a refused block."""

    least_bytes = 2 * 1024
    """Length of a piece that is not halved again."""

    @property
    @abstractmethod
    def spans_lines(self) -> bool:
        """True if a record may span lines, so that only a parser finds where it ends."""

    @abstractmethod
    def fast(self, data: bytes, source: Origin, *, is_last: bool) -> Cut | None:
        """Parse whole records by the fast parser; None if it refuses, or might be wrong.

        Without `is_last`, the last record may end behind `data`.
        """

    @abstractmethod
    def records(self, data: bytes, *, is_last: bool) -> Iterator[TextRecord]:
        """Yield the records that the exact parser is given."""

    @abstractmethod
    def exact(self, records: Iterator[TextRecord], source: Origin) -> Cut:
        """Parse these records exactly.

        Raises:
            SplitReadError: a record does not fit, and `mode` lets none pass.
        """


class TextDriver:
    """Drives the parsers of one format over blocks."""

    def __init__(self, parser: TextParser, options: ReaderOptions, separator: bytes = b"") -> None:
        """`separator` ends records instead of the option lineSep."""
        self._parser = parser
        self._separator = separator or separator_in_utf8(options)

    def parse(self, data: bytes, source: Origin) -> Parsed:
        """Parse whole records."""
        return joined([cut.parsed for cut in self.cuts(data, source)])

    def cuts(self, data: bytes, source: Origin, *, is_last: bool = True) -> Iterator[Cut]:
        """Parse records in order, up to the last one that ends in `data`.

        A record of any length is looked at a few times at most: a piece in which none ends is
        doubled.
        """
        cut = self._parser.fast(data, source, is_last=is_last)
        if cut is not None:
            yield cut
            return
        # A separator that overlaps itself can only be looked for from the beginning of the block,
        # and `moved` keeps the place in one file, not in several that were parsed at once.
        whole = len(source.files) > 1 or overlaps_itself(self._separator)
        begin, size, end = 0, len(data) if whole else self._parser.piece_bytes, -1
        while end < len(data):
            end, at = self._end_of_line(data, begin + size), begin
            piece, ends = data[begin:end], is_last and end == len(data)
            # All of the data were refused already.
            parse = self._exact if len(piece) == len(data) else self._piece
            for parsed, used in parse(piece, source.moved(begin), is_last=ends):
                at += used
                yield Cut(parsed, at)
            begin, size = at, self._parser.piece_bytes if at > begin else 2 * size

    def _end_of_line(self, data: bytes, at: int) -> int:
        end = data.find(self._separator, at)
        return end + len(self._separator) if end >= 0 else len(data)

    def _piece(self, data: bytes, source: Origin, *, is_last: bool) -> Sequence[Cut]:
        cut = self._parser.fast(data, source, is_last=is_last)
        return [cut] if cut else self._refused(data, source, is_last=is_last)

    def _refused(self, data: bytes, source: Origin, *, is_last: bool) -> Sequence[Cut]:
        """Parse a refused piece: its two parts, and the two of each part that is refused again.

        Where both are, bad records are many, and trying on would take longer than it saves.
        """
        middle = self._end_of_line(data, len(data) // 2)
        is_short = len(data) <= self._parser.least_bytes or middle == len(data)
        if is_short or self._parser.spans_lines:
            return self._exact(data, source, is_last=is_last)
        halves = [(data[:middle], source), (data[middle:], source.moved(middle))]
        cuts = [self._parser.fast(*half, is_last=True) for half in halves]
        if not any(cuts):
            return self._exact(data, source, is_last=is_last)
        return [
            part
            for half, cut in zip(halves, cuts, strict=True)
            for part in ([cut] if cut else self._refused(*half, is_last=True))
        ]

    def _exact(self, data: bytes, source: Origin, *, is_last: bool) -> Sequence[Cut]:
        records = self._parser.records(data, is_last=is_last)
        parsed, end = self._parser.exact(records, source)
        return [Cut(parsed, end if self._parser.spans_lines and not is_last else len(data))]


def joined(parts: Sequence[Parsed]) -> Parsed:
    """Return the rows of parts of one file."""
    if len(parts) == 1:
        return parts[0]
    batch = pa.concat_batches([part.batch for part in parts])
    bad = [record for part in parts for record in part.bad]
    return Parsed(batch, sum(part.dropped_records for part in parts), bad)


def exactly(
    records: Iterable[TextRecord],
    parse: Callable[[TextRecord, Callable[[], str]], RecordOutcome],
    rows: Rows,
    source: Origin,
    options: ReaderOptions,
) -> Cut:
    """Parse records singly."""
    of_all, bad, packed, end = list[Row](), list[BadRecord](), len(source.files) > 1, 0
    rows_of, dropped_of = [0] * len(source.files), [0] * len(source.files)
    for record in records:
        offset, end = record.offset, record.end
        index = source.locate(offset)[0] if packed else 0
        outcome = parse(record, _place(source, offset))
        of_all.extend(outcome.rows)
        rows_of[index] += len(outcome.rows)
        if outcome.dropped:
            dropped_of[index] += 1
            # A file of bad records only may hold gigabytes, so their text is kept only to be
            # written.
            if options.bad_records_path:
                bad.append(source.bad_record(offset, text_of(record.text), outcome.dropped))
    batch = rows.batch(of_all)
    return Cut(Parsed(batch, sum(dropped_of), bad, rows_of if packed else None, dropped_of), end)


def _place(source: Origin, offset: int) -> Callable[[], str]:
    return lambda: source.locate(offset)[1]


def records_of(data: bytes, separator: bytes) -> Iterator[TextRecord]:
    """Yield each record of `data`, without what ends it; empty: any line break does."""
    offset = 0
    if separator:
        for record in data.split(separator):
            end = min(offset + len(record) + len(separator), len(data))
            yield TextRecord(offset, end, record)
            offset = end
        return
    # Of bytes, unlike of text, Python takes LF, CR and CR LF only for line breaks, as Hadoop's
    # reader does.
    for line in data.splitlines(keepends=True):
        yield TextRecord(offset, offset + len(line), line.rstrip(b"\r\n"))
        offset += len(line)

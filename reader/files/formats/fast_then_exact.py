"""Records that a fast parser takes a block at a time, and an exact one singly.

The fast one refuses everything that it is not sure of. A refused block is tried again in pieces,
and a refused piece in two parts, so that only the records around a bad one are read exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from typing_extensions import override

from ..io.whole_records import overlaps_itself
from ..values.rows import Row, Rows
from .api import BadRecord, Parsed
from .record_format import RecordFormat, Source

PIECE = 64 * 1024
"""Bytes of the pieces of a refused block."""

_LEAST = 2 * 1024
"""Bytes of a piece that is not halved again."""


class FastThenExactFormat(RecordFormat):
    """A format of lines, or of what another separator ends."""

    _rows: Rows
    """What makes Arrow of rows."""

    @abstractmethod
    def quick(self, data: bytes, source: Source) -> Parsed | None:
        """All of `data` by the fast parser; None if it refuses, or might be wrong."""

    def records(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Each record of `data`, with the offset at which it begins."""
        return records_of(data, self.options.line_sep.encode())

    @abstractmethod
    def rows_of(self, record: bytes, where: Callable[[], str]) -> tuple[Sequence[Row], str]:
        """The rows of one record by the exact parser, and why it is dropped; empty if it is not.

        Raises:
            SplitReadError: the record does not fit, and `mode` lets none pass.
        """

    @override
    def parse(self, data: bytes, source: Source) -> Parsed:
        parsed = self.quick(data, source)
        if parsed is not None:
            return parsed
        separator = self.options.line_sep.encode() or b"\n"
        # A separator that overlaps itself can only be looked for from the beginning of the block,
        # and `moved` keeps the place in one file, not in several that were parsed at once.
        if len(data) <= PIECE or len(source.files) > 1 or overlaps_itself(separator):
            return self._exact(data, source)
        parts, at = list[Parsed](), 0
        while at < len(data):
            end = _end_of_record(data, at + PIECE, separator)
            piece, here = data[at:end], source.moved(at)
            parsed = self.quick(piece, here)
            parts += [parsed] if parsed else self._refused(piece, here, separator)
            at = end
        return _joined(parts)

    def _refused(self, data: bytes, source: Source, separator: bytes) -> list[Parsed]:
        """A refused piece: its two parts, and the two of each part that is refused again.

        Where both are, bad records are many, and trying on would take longer than it saves.
        """
        middle = _end_of_record(data, len(data) // 2, separator)
        if len(data) <= _LEAST or middle == len(data):
            return [self._exact(data, source)]
        halves = [(data[:middle], source), (data[middle:], source.moved(middle))]
        taken = [self.quick(*half) for half in halves]
        if not any(taken):
            return [self._exact(data, source)]
        return [
            part
            for half, parsed in zip(halves, taken, strict=True)
            for part in ([parsed] if parsed else self._refused(*half, separator))
        ]

    def _exact(self, data: bytes, source: Source) -> Parsed:
        rows, packed = list[Row](), len(source.files) > 1
        rows_of, dropped_of = [0] * len(source.files), [0] * len(source.files)
        bad = list[BadRecord]()
        for offset, record in self.records(data):
            index = source.locate(offset)[0] if packed else 0
            found, reason = self.rows_of(record, _place(source, offset))
            rows.extend(found)
            rows_of[index] += len(found)
            dropped_of[index] += bool(reason)
            # A file of bad records only may hold gigabytes, so their text is kept only to be
            # written.
            if reason and self.options.bad_records_path:
                bad.append(source.bad_record(offset, record.decode("utf-8", "replace"), reason))
        of_files = rows_of if packed else None
        return Parsed(self._rows.batch(rows), sum(dropped_of), bad, of_files, dropped_of)


def _end_of_record(data: bytes, at: int, separator: bytes) -> int:
    end = data.find(separator, at)
    return end + len(separator) if end >= 0 else len(data)


def _joined(parts: Sequence[Parsed]) -> Parsed:
    batch = pa.concat_batches([part.batch for part in parts])
    bad = [record for part in parts for record in part.bad]
    return Parsed(batch, sum(part.dropped_records for part in parts), bad)


def records_of(data: bytes, separator: bytes) -> Iterator[tuple[int, bytes]]:
    """Each record of `data`, with the offset at which it begins; empty: any line break ends one."""
    offset = 0
    if separator:
        for record in data.split(separator):
            yield offset, record
            offset += len(record) + len(separator)
        return
    # Of bytes, unlike of text, Python takes LF, CR and CR LF only for line breaks, as Hadoop's
    # reader does.
    for line in data.splitlines(keepends=True):
        yield offset, line.rstrip(b"\r\n")
        offset += len(line)


def _place(source: Source, offset: int) -> Callable[[], str]:
    return lambda: source.locate(offset)[1]

"""CSV by the rules of Spark's reader: headers, quotes, comments, what a bad record does.

Blocks of whole records go to pyarrow's parser (`fast.py`); what it refuses is parsed again a
few lines at a time, and what is refused again is parsed exactly (`tokens.py`, `rows.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.splits import FileSplit, FileVersion
from .....errors import OptionError
from ...lines import line_blocks, without_mark
from ...options import ParseMode, ReaderOptions
from ..api import Decoded
from ..records import Parsed, RecordFormat, Source, data_schema, malformed
from ..strings import is_utf8
from ..times.temporal import Temporal
from .fast import CsvFast
from .refusals import differs, header_misfit, refuse_unsupported
from .rows import CsvRows, Row
from .tokens import CsvTokens

_SMALL = 64 * 1024
_MAX_OPEN = 256 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_BLANK_LINE = re.compile(rb"^[ \t]+\r?$", re.MULTILINE)


class CsvFormat(RecordFormat):
    """Records of fields. By position, or by the header's names with `enforceSchema` false."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        self._data = data_schema(schema, options)
        temporal = Temporal(options)
        try:
            self._rows = CsvRows(schema, self._data, options, temporal)
        except TypeError as err:
            raise OptionError("the schema cannot be read from CSV", found=str(err)) from err
        refuse_unsupported(options)
        self._tokens = CsvTokens(options)
        self._fast = CsvFast(self._data, options, temporal)
        mark = re.escape(options.comment.encode())
        self._comments = re.compile(rb"^%s[^\n]*(?:\n|\Z)" % mark, re.MULTILINE) if mark else None
        self._names: Sequence[str] = self._data.names
        self._header = b""
        self._header_names = self._names

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        self._names = self._data.names
        if self.options.header and split.start > 0:
            self._read_header(split.file)
        if not self.spans_lines:
            yield from self._by_lines(split)
            return
        try:
            yield from self._documents(split)
        except ValueError as err:
            raise malformed(split.file.path, str(err), "records of a bounded size") from err

    def _by_lines(self, split: FileSplit) -> Iterator[Decoded]:
        has_header = self.options.header and split.start == 0
        try:
            for block in line_blocks(split, self.options, self._block_bytes):
                data = self._without_header(block.data, split.file) if has_header else block.data
                has_header = False
                skipped = len(block.data) - len(data)
                source = Source((block.file,), (0,), block.position + skipped)
                yield self._kept(self.parse(data, source))
        except ValueError as err:
            raise malformed(split.file.path, str(err), "records of a bounded size") from err

    @override
    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        self._names = self._data.names
        if self.options.header:
            first = self._names
            bodies = []
            for file, data in zip(files, contents, strict=True):
                bodies.append(self._without_header(without_mark(data), file))
                if bodies[:-1] and self._names != first:
                    raise differs(file, self._names, first)
                first = self._names
            contents = bodies
        return super().decode_packed(files, contents)

    @override
    def parse(self, data: bytes, source: Source) -> Parsed:
        parsed = self._quick(data, source, lines=True)
        if parsed is not None:
            return parsed
        if len(data) <= _SMALL or len(source.files) > 1:
            return self._exact(data, source)
        batches, dropped, at = [], 0, 0
        while at < len(data):
            end = data.find(b"\n", at + _SMALL) + 1 or len(data)
            here = Source(source.files, source.starts, source.position + at)
            piece = data[at:end]
            parsed = self._quick(piece, here, lines=True) or self._exact(piece, here)
            batches.append(parsed.batch)
            dropped += parsed.dropped
            at = end
        return Parsed(pa.concat_batches(batches) if batches else self._rows.batch([]), dropped)

    def _quick(self, data: bytes, source: Source, *, lines: bool) -> Parsed | None:
        packed = len(source.files) > 1
        if self.options.line_sep not in ("", "\n", "\r\n") or (packed and self._comments):
            return None
        if self._comments is not None and lines:
            data = self._comments.sub(b"", data)
        if len(self._names) == 1 and _BLANK_LINE.search(data):
            return None
        if not data or data.isspace():
            return Parsed(self._rows.batch([]), rows_of=[0] * len(source.files))
        if not is_utf8(data):
            data = data.decode("utf-8", "replace").encode()
            if packed:
                return None
        columns = self._fast.parse(data, self._names, lines)
        if columns is None:
            return None
        rows = len(columns[0])
        rows_of = _rows_of(data, source, rows) if lines else [rows]
        if rows_of is None or (self.options.rescued_data_column and self._extra()):
            return None
        return Parsed(self._assembled(columns, rows), rows_of=rows_of if packed else None)

    def _extra(self) -> bool:
        return any(name not in self._data.names for name in self._names)

    def _assembled(self, columns: list[pa.Array], rows: int) -> pa.RecordBatch:
        by_name = dict(zip(self._data.names, columns, strict=True))
        arrays = [
            by_name[f.name] if f.name in by_name else pa.nulls(rows, f.type)
            for f in self._rows.out_schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._rows.out_schema)

    def _exact(self, data: bytes, source: Source) -> Parsed:
        rows, dropped = list[Row](), 0
        rows_of, dropped_of = [0] * len(source.files), [0] * len(source.files)
        for offset, line in self._lines(data):
            text = line.decode("utf-8", "replace")
            tokens = self._tokens.line(text)
            if tokens is None:
                continue
            index = source.locate(offset)[0]
            row = self._rows.of_record(tokens, self._names, text, _locate(source, offset))
            if row is None:
                dropped += 1
                dropped_of[index] += 1
            else:
                rows.append(row)
                rows_of[index] += 1
        batch = self._rows.batch(rows)
        return Parsed(batch, dropped, rows_of if len(source.files) > 1 else None, dropped_of)

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        separator = self.options.line_sep.encode()
        offset = 0
        if separator:
            for line in data.split(separator):
                yield offset, line
                offset += len(line) + len(separator)
            return
        for line in data.splitlines(keepends=True):
            yield offset, line.rstrip(b"\r\n")
            offset += len(line)

    def _documents(self, split: FileSplit) -> Iterator[Decoded]:
        """Records with quoted line breaks: cut where no quote is open."""
        rest, position, is_first = b"", 0, True
        blocks = line_blocks(split, self.options, self._block_bytes)
        block = next(blocks, None)
        while block is not None:
            following = next(blocks, None)
            data = rest + block.data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if is_first and self.options.header:
                data = self._without_header(data, split.file)
            is_first = False
            source = Source((split.file,), (0,), position)
            parsed, used = self._spanning(data, source, is_last=following is None)
            if parsed is not None:
                yield self._kept(parsed)
            rest, position, block = data[used:], position + used, following
            if len(rest) > _MAX_OPEN:
                raise ValueError(f"a record of more than {_MAX_OPEN} bytes: a quote stays open")

    def _spanning(self, data: bytes, source: Source, *, is_last: bool) -> tuple[Parsed | None, int]:
        cut = len(data) if is_last else _balanced(data, self.options.quote.encode())
        if cut and self._comments is None:
            parsed = self._quick(data[:cut], source, lines=False)
            if parsed is not None:
                return parsed, cut
        text = data.decode("utf-8", "surrogateescape")
        rows, dropped, used = list[Row](), 0, 0
        for record in self._tokens.records(text):
            if not record.is_closed and not is_last:
                break
            written = text[record.start : record.end].rstrip("\n")
            tokens = [None if token is None else _mended(token) for token in record.tokens]
            where = _locate(source, len(text[: record.start].encode("utf-8", "surrogateescape")))
            row = self._rows.of_record(tokens, self._names, _mended(written), where)
            used = record.end
            if row is None:
                dropped += 1
            else:
                rows.append(row)
        done = len(data) if is_last else len(text[:used].encode("utf-8", "surrogateescape"))
        return (Parsed(self._rows.batch(rows), dropped) if rows or dropped else None), done

    def _read_header(self, file: FileVersion) -> None:
        head = FileSplit(file, 0, min(file.size, _HEAD_BYTES))
        for block in line_blocks(head, self.options, _HEAD_BYTES):
            self._without_header(block.data, file)
            return

    def _without_header(self, data: bytes, file: FileVersion) -> bytes:
        """What follows the header; notes which columns the fields of this file are."""
        if self._header and data.startswith(self._header):
            self._names = self._header_names
            return data[len(self._header) :]
        for offset, line in self._lines(data):
            tokens = self._tokens.line(line.decode("utf-8", "replace"))
            if tokens is None:
                continue
            self._names = self._columns([token or "" for token in tokens], file)
            after = offset + len(line)
            body = data[after:]
            separator = self.options.line_sep.encode()
            ending = next(
                (e for e in (separator, b"\r\n", b"\n", b"\r") if e and body.startswith(e)), b""
            )
            if offset == 0 and ending:
                self._header, self._header_names = data[: after + len(ending)], self._names
            return body[len(ending) :]
        return b""

    def _columns(self, header: list[str], file: FileVersion) -> Sequence[str]:
        names = [name.strip() for name in header]
        expected = self._data.names
        folded, wanted = [n.lower() for n in names], [n.lower() for n in expected]
        if not self.options.enforce_schema:
            if missing := [n for n in expected if n.lower() not in folded]:
                raise header_misfit(file, names, expected, f"it lacks {', '.join(missing)}")
            given = {n.lower(): n for n in expected}
            return [given.get(n.lower(), n) for n in names]
        if self.options.mode is ParseMode.FAILFAST and not self.options.rescued_data_column:
            if len(names) != len(expected):
                raise header_misfit(file, names, expected, "the number of columns differs")
            if folded != wanted and sorted(folded) == sorted(wanted):
                raise header_misfit(file, names, expected, "the order differs")
        return list(expected)


def _locate(source: Source, offset: int) -> Callable[[], str]:
    return lambda: source.locate(offset)[1]


def _mended(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _balanced(data: bytes, quote: bytes) -> int:
    """Just after the last line break outside of quotes, if each quote opens or closes one."""
    raw = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(raw == 10)
    if quote:
        quotes = np.flatnonzero(raw == quote[0])
        feeds = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
    return int(feeds[-1]) + 1 if len(feeds) else 0


def _rows_of(data: bytes, source: Source, rows: int) -> list[int] | None:
    """Records of each file, if every line that is not blank holds one; None if not."""
    if len(source.files) == 1:
        return [rows]
    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    counts = source.by_file(feeds, len(data))
    if sum(counts) != rows:
        borders = [*source.starts, len(data)]
        counts = [sum(1 for line in data[a:b].splitlines() if line) for a, b in pairwise(borders)]
    return counts if sum(counts) == rows else None

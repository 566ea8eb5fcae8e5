"""JSON documents, one a file (`multiLine`): arrays element by element, anything else at once.

For Spark a document is one record. If a value of one element does not fit, the document is bad:
under `DROPMALFORMED` all of its rows go, under `PERMISSIVE` each gets the document's text. So under
these modes rows wait, beyond a few in a temporary file, until the document's end has been seen.

An array is cut into lines of one element each without parsing it: quotes and brackets are counted
over whole pieces at once, so that neither the document nor its elements are held as objects. It is
enough for JSON that is well formed; what might not be is `Odd`, and is read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .....checkpoint_meta.documents.file_split import FileVersion
from ...io.lines import content, whole_content
from ...io.memory_bounds import Spool, too_long
from ...io.whole_records import Limit
from ...options import ParseMode, ReaderOptions
from ..api import BadRecord, Parsed
from ..record_format import BLOCK_BYTES, Source, malformed
from .jackson_limits import MAX_DEPTH, nesting, without_escapes
from .json_rows import JsonRows
from .json_text import is_wide
from .token_values import Partial

Fast = Callable[[bytes, Source], Parsed | None]
_ROWS = 8192
_BLANKS = b" \t\r\n"


class Documents:
    """Reads the document of one file after the other."""

    def __init__(self, options: ReaderOptions, rows: JsonRows, fast: Fast) -> None:
        """`fast` takes lines of one record each, or refuses them."""
        self._options, self._rows, self._fast = options, rows, fast
        # A comment may hold quotes and brackets, which `elements` would count.
        self._whole = bool(options.single_variant_column) or options.allow_comments

    def read(self, file: FileVersion) -> Iterator[Parsed]:
        """The rows of `file`'s document in order, in bounded memory if it is a plain array.

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
        step = min(BLOCK_BYTES, self._options.batch_bytes)
        blocks = elements(_plain(content(file, self._options, step)), step, self._limit(file))
        # Nothing has to wait for the end: the first value that does not fit fails the query.
        if self._options.mode is ParseMode.FAILFAST:
            for block in blocks:
                batch, problem = self._batch(block, file)
                if problem:
                    raise malformed(file.path, problem, "objects that fit the schema")
                yield Parsed(batch)
            return
        with Spool(4 * self._options.batch_bytes) as spool:
            problem = ""
            for block in blocks:
                batch, found = self._batch(block, file)
                problem = problem or found
                spool.put(batch)
            if problem and self._options.mode is ParseMode.DROPMALFORMED:
                yield self._dropped(file, problem)
                return
            text = self._text(file) if problem and self._rows.keeps_text else None
            for batch in spool.batches():
                yield from map(Parsed, self._rows.with_text(batch, text, self._options.batch_bytes))

    def _limit(self, file: FileVersion) -> Limit:
        options = self._options

        def error(position: int) -> Exception:
            return too_long(file.path, f"byte {position}", options, what="element of a document")

        return Limit(options.max_record_bytes, error)

    def _batch(self, block: Elements, file: FileVersion) -> tuple[pa.RecordBatch, str]:
        """The rows of some elements, and what does not fit in the first one that does not."""
        source = Source((file,), (0,), block.position)
        parsed = self._fast(block.lines, source)
        if parsed is not None:
            # The fast parsers pass over blank lines, as an element without content would be.
            if parsed.batch.num_rows != block.count:
                raise Odd("an element that is not a record")
            return parsed.batch, ""
        rows, problem, offset = [], "", 0
        lines = block.lines.split(b"\n")
        # A block that ends with a line feed has no element behind it.
        for line in lines[: block.count]:
            try:
                rows.append(self._rows.of_element(line, lambda: file.path))
            except Partial as err:
                problem = problem or f"{err}, in the element at byte {block.position + offset}"
                rows.append(err.value)
            except ValueError as err:
                raise Odd(str(err)) from err
            offset += len(line) + 1
        return self._rows.batch(rows), problem

    def _at_once(self, file: FileVersion, done: int) -> Iterator[Parsed]:
        """All of a document as one record, but for the rows that are out already."""
        data = whole_content(file, self._options)
        rows, reason = self._rows.of_record(data, lambda: f"{file.path}, byte 0")
        if reason:
            yield self._dropped(file, reason)
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


class Odd(ValueError):
    """The document is no plain array of objects, or not certainly."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Some elements in a row, a line each."""

    lines: bytes
    count: int
    position: int
    """Where the first one is in the document."""


def elements(pieces: Iterable[bytes], step: int, limit: Limit) -> Iterator[Elements]:
    """The elements of the array whose text the pieces are, in blocks of about `step` bytes.

    Raises:
        Odd: it is something else, or ends otherwise. Earlier elements may be out by then.
        Exception: an element is longer than `limit` says; its own error.
    """
    scanner, ready = _Scanner(), _Ready()
    for piece in pieces:
        ready.add(*scanner.scan(piece))
        if len(ready.lines) >= step and ready.count:
            yield ready.whole()
        ready.check(limit)
    if not scanner.ended:
        raise Odd("the array does not end")
    if ready.lines.strip():
        yield ready.last()
    elif ready.seen:
        raise Odd("a comma before the array's end")


class _Ready:
    """Lines that are waiting, of which the last may not be whole."""

    def __init__(self) -> None:
        self.lines = bytearray()
        self.count = 0
        self.position = 0
        self.seen = False
        self._whole = 0

    def add(self, begin: int, lines: bytes, commas: np.ndarray) -> None:
        self.position += begin
        if len(commas):
            self._whole = len(self.lines) + int(commas[-1]) + 1
            self.count += len(commas)
            self.seen = True
        self.lines += lines

    def whole(self) -> Elements:
        made = Elements(bytes(self.lines[: self._whole]), self.count, self.position)
        del self.lines[: self._whole]
        self.position += self._whole
        self.count = self._whole = 0
        return made

    def check(self, limit: Limit) -> None:
        """Refuse an element that goes on for longer than it may."""
        if len(self.lines) - self._whole > limit.bytes:
            raise limit.error(self.position + self._whole)

    def last(self) -> Elements:
        return Elements(bytes(self.lines), self.count + 1, self.position)


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

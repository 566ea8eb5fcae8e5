"""JSON documents, one a file (`multiLine`): arrays element by element, anything else at once.

For Spark a document is one record. If a value of one element does not fit, the document is bad:
under `DROPMALFORMED` all of its rows go, under `PERMISSIVE` each gets the document's text. So under
these modes rows wait, beyond a few in a temporary file, until the document's end has been seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa

from .....checkpoint_meta.documents.file_split import FileVersion
from ...io.lines import content, whole_content
from ...io.memory_bounds import Spool, too_long
from ...io.whole_records import Limit
from ...options import ParseMode, ReaderOptions
from ..api import BadRecord, Parsed
from ..record_format import BLOCK_BYTES, Source, malformed
from .array_elements import Elements, Odd, elements
from .encodings import is_wide
from .json_rows import JsonRows
from .token_values import Partial

__all__ = ["Documents"]

Fast = Callable[[bytes, Source], Parsed | None]
_ROWS = 8192


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
        return Parsed(self._rows.batch([]), dropped=1, bad=bad)

    def _text(self, file: FileVersion) -> str:
        return whole_content(file, self._options).decode("utf-8", "replace")


def _plain(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        if number == 0 and is_wide(piece):
            raise Odd("another encoding")
        yield piece

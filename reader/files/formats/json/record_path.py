"""Cuts JSON documents into their records: the elements of an array, or the documents themselves.

Content comes in pieces that are cut anywhere. Quotes and brackets are counted over whole pieces at
once, without parsing, so that neither a document nor its records are held as objects. This is exact
for JSON that is well formed; what might not be is `NotPlainJson`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate

import msgspec
import numpy as np
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileVersion
from ...io.memory_bounds import too_long
from ...options import ReaderOptions
from ..records.record_format import Origin
from .strict_json import MAX_DEPTH, nesting, without_escapes

ROOT = ""
"""The path of the one array that a file is. `$` is that of the documents of a file."""

_FEEDS = bytes.maketrans(b"\n\r", b"  ")
_NO_CONTENT = re.compile(rb"\n[ \t]*\n")


class NotPlainJson(ValueError):
    """The content has no records at the path, or not certainly."""

    def __init__(self, problem: str, position: int = 0, text: bytes = b"") -> None:
        """`text` is what is not read, up to the problem, and begins at `position`."""
        super().__init__(problem)
        self.position, self.text = position, text


@dataclass(frozen=True)
class _Records(Origin):
    """Records of one file, in parts that begin at `begins` here, and at `places` in the file."""

    begins: Sequence[int] = ()
    places: Sequence[int] = ()

    @override
    def _position(self, offset: int) -> tuple[int, str]:
        part = bisect_right(self.begins, offset + self.position) - 1
        return 0, f"byte {self.places[part] + offset + self.position - self.begins[part]}"


def records_at(
    path: str, file: FileVersion, pieces: Iterable[bytes], options: ReaderOptions
) -> Iterator[tuple[bytes, Origin]]:
    """Yield the records that end in each piece, a line each, with where they come from.

    Raises:
        NotPlainJson: the content is something else, or ends otherwise. Earlier records may be out
            by then.
        MalformedDataError: a record is longer than `maxRecordBytes`.
    """
    scanner = _Scanner(path)
    for piece in pieces:
        problem = None
        try:
            scanner.scan(piece)
        except NotPlainJson as err:
            problem = err
        if scanner.parts:
            places, parts = zip(*scanner.parts, strict=True)
            begins = [0, *accumulate(len(part) + 1 for part in parts)][:-1]
            yield b"\n".join(parts), _Records((file,), (0,), 0, 0, begins, places)
        if problem:
            text = bytes(scanner.text[: problem.position + 1 - scanner.begin])
            raise NotPlainJson(str(problem), scanner.begin, text)
        if len(scanner.text) > options.max_record_bytes:
            where = f"byte {scanner.begin}"
            raise too_long(file.path, where, options, what="element of a document")
    rest = bytes(scanner.text) + scanner.escape
    if scanner.depth or rest.strip() or (path == ROOT and not scanner.has_array):
        raise NotPlainJson("a document that does not end", scanner.begin, rest)


class _Scanner:
    """Knows at the end of each piece which brackets on the path are open."""

    def __init__(self, path: str) -> None:
        self._path, self._names = path, path.split(".") if path else []
        self._level = 0 if path == "$" else len(self._names) + 1
        """How deep the commas between records are nested; 0 for documents."""
        self.parts = list[tuple[int, bytes]]()
        """The records that end in the last piece, with where they begin."""
        self.text, self.begin = bytearray(), 0
        """What is held, and where it begins: a record, or a member of an object."""
        self.depth, self._in_string, self.escape = 0, False, b""
        self._on_path = 0
        """How many of the open brackets lead to the array, or are it."""
        self.has_array = self._has_record = False
        """What the document, and its array, have so far."""

    def scan(self, piece: bytes) -> None:
        """Take the next piece; raises `NotPlainJson` at the first byte that is not plain."""
        data, self.escape, self.parts = self.escape + piece, b"", []
        plain = without_escapes(data)
        # The piece was cut within an escape, whose second byte comes with the next one.
        if plain.endswith(b"\\"):
            plain, data, self.escape = plain[:-1], data[:-1], b"\\"
        raw, start = np.frombuffer(plain, np.uint8), self.begin + len(self.text)
        inside, depth = nesting(raw, in_string=self._in_string)
        depth += self.depth
        opens, closes = (((raw | 0x20) == ord(kind)) & ~inside for kind in "{}")
        commas = (raw == ord(",")) & ~inside
        # A record that is nested too deeply is a problem of its own.
        deepest = MAX_DEPTH if self._path == ROOT else 1 << 30
        end, problem = _first_problem(raw, inside, depth, closes, deepest)
        separators = np.flatnonzero((commas & (depth == self._level))[:end])
        # Records become lines: breaks within them are blanks, and what separates them is a break.
        lines = np.frombuffer(data.translate(_FEEDS), np.uint8).copy()
        lines[separators] = ord("\n")
        self.text += lines.tobytes()
        marks = np.flatnonzero((opens | closes | commas)[:end])
        # Brackets within records, and within what is not on the path, are passed over.
        outer = (opens | closes) & (depth - opens < self._level)
        for at in np.flatnonzero(outer[:end]).tolist():
            before = int(np.searchsorted(marks, at)) - 1
            since = start + int(marks[before]) + 1 if before >= 0 else self.begin
            step = self._open if opens[at] else self._close
            step(chr(raw[at]), start + at, int(depth[at]), since)
        if not self._level:
            ends = start + 1 + np.flatnonzero((closes & (depth == 0))[:end])
            for stop in ends.tolist():
                self.parts.append((self.begin, self._drop(stop)))
        elif self._on_path != self._level:
            self._drop(max(self.begin, start + int(marks[-1]) + 1 if len(marks) else 0))
        elif len(separators) and start + separators[-1] >= self.begin:
            self._take(start + int(separators[-1]))
        if problem:
            raise NotPlainJson(problem, start + end)
        if len(raw):
            self.depth, self._in_string = int(depth[-1]), bool(inside[-1])

    def _open(self, bracket: str, at: int, depth: int, since: int) -> None:
        if self._on_path != depth - 1:
            return
        if depth == 1:
            if self._path == ROOT and self.has_array:
                raise NotPlainJson("text after the array", at)
            self._drop(at)
            self.has_array = False
        elif not self._leads(self.text[since - self.begin : at - self.begin], depth):
            return
        if bracket != ("[" if depth == self._level else "{"):
            raise NotPlainJson(f"a document without an array at recordPath={self._path}", at)
        self._on_path = depth
        if depth == self._level:
            self._drop(at + 1)
            self.has_array, self._has_record = True, False

    def _leads(self, member: bytearray, depth: int) -> bool:
        """Return whether what is before a bracket is the next name of the path."""
        name, colon, _ = member.rpartition(b":")
        with suppress(msgspec.DecodeError):
            return bool(colon) and msgspec.json.decode(name) == self._names[depth - 2]
        return False

    def _close(self, bracket: str, at: int, depth: int, _since: int) -> None:
        if self._on_path != depth + 1:
            return
        if bracket != ("]" if depth == self._level - 1 else "}"):
            raise NotPlainJson(f"{bracket!r} without an opening bracket", at)
        # An array without elements may hold blanks, but no comma.
        if bracket == "]" and (self._has_record or self.text[: at - self.begin].strip(b" \t")):
            self._take(at)
        elif depth == 0 and not self.has_array:
            raise NotPlainJson(f"a document without an array at recordPath={self._path}", at)
        self._on_path = depth

    def _take(self, end: int) -> None:
        """Take the records before `end`, which is behind the last one."""
        gap = _NO_CONTENT.search(b"\n" + self.text[: end - self.begin] + b"\n")
        end = self.begin + gap.start() - 1 if gap else end
        if end > self.begin:
            self.parts.append((self.begin, self._drop(end)))
            self._has_record = True
        self._drop(end + 1)
        if gap:
            raise NotPlainJson("an element without content", end + 1)

    def _drop(self, until: int) -> bytes:
        dropped = bytes(self.text[: until - self.begin])
        del self.text[: until - self.begin]
        self.begin = until
        return dropped


def _first_problem(
    raw: np.ndarray, inside: np.ndarray, depth: np.ndarray, closes: np.ndarray, deepest: int
) -> tuple[int, str]:
    """Return where a piece stops being plain JSON, and how; its length if it does not."""
    feeds = (raw == ord("\n")) | (raw == ord("\r"))
    blanks = feeds | (raw == ord(" ")) | (raw == ord("\t"))
    problems = (
        ("single quotes", (raw == ord("'")) & ~inside),
        ("a line break in a string", feeds & inside),
        ("text outside of a document", (depth <= 0) & ~blanks & ~(closes & (depth == 0))),
        ("nested too deeply", depth > deepest),
    )
    places = [(int(at[0]), name) for name, mask in problems if len(at := np.flatnonzero(mask))]
    return min(places, default=(len(raw), ""))

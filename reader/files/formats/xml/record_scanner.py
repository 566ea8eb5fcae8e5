"""The bytes of each record of a split, in UTF-8, with where it begins.

Records are the outermost elements whose name is `rowTag`. They are looked for in bytes, not in the
events of a parser, so that a record that is not well-formed spoils no other. What is in
comments, CDATA sections, processing instructions and the DOCTYPE is no record. All of them may hold
what looks like a start tag, so only a look from the beginning of the file tells.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain

import numpy as np

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import MalformedDataError
from ...io.codecs import codec_of
from ...io.file_kinds import another_kind
from ...io.lines import content
from ...io.memory_bounds import HELD, RecordLimit, too_long
from ...io.source_file import SourceFile
from ...io.split_content import stored_content
from ...options import Compression, ReaderOptions
from .elements import MOST_OF_TREE, size_of_tree

_STEP = 1024 * 1024
_DECLARED = re.compile(rb"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_read_in_place(file: FileVersion, options: ReaderOptions) -> bool:
    """True if the stored bytes are the content, unless the file itself names another encoding."""
    codec = codec_of(file.path, options.compression)
    return codec is Compression.NONE and options.encoding == "utf-8"


def records(
    split: FileSplit, options: ReaderOptions
) -> Generator[list[tuple[int, bytes]], None, None]:
    """Yield lists of the records of `split` that were not read yet, with where each begins.

    What is to be read begins outside of any record.

    Raises:
        SplitReadError: what opening, reading and decompressing raise.
        MalformedDataError: a record is longer than `maxRecordBytes`, or has too many tags; the file
            is of another kind, such as Parquet.
    """
    file, most = split.file, options.max_record_bytes
    base = split.start
    in_place = split.skip and is_read_in_place(file, options)
    if in_place and _encoding_of(file, options) == options.encoding:
        # Behind a record that was read no other is open.
        base += split.skip
    limit = RecordLimit(file, options)
    finder = RecordFinder(
        options.row_tag, limit, ignore_namespace=options.ignore_namespace, base=base
    )
    with closing(_pieces(split._replace(start=base), options)) as pieces:
        for several in finder.records(pieces):
            found = several
            if several[0][0] < split.start + split.skip:
                found = [each for each in several if each[0] >= split.start + split.skip]
            for at, record in found:
                # Fewer bytes cannot have so many tags.
                if MOST_OF_TREE * len(record) <= HELD * most:
                    continue
                size = size_of_tree(record)
                if size > HELD * most:
                    problem = f"tags and attributes that take {size} bytes as a tree"
                    raise too_long(file.path, f"byte {at}", options, found=problem)
            yield found


def beginning(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """Yield the records in the first `limit` bytes of a file, at least one.

    Raises:
        SplitReadError: as for `records`; with `ignoreCorruptFiles` the records end instead.
    """
    with closing(records(FileSplit(file, 0, file.size), options)) as lists:
        try:
            for at, record in chain.from_iterable(lists):
                yield record
                if at + len(record) >= limit:
                    return
        except MalformedDataError:
            if not options.ignore_corrupt_files:
                raise


def starts(file: FileVersion, options: ReaderOptions, apart: int) -> list[int]:
    """Return bytes at which a record begins, at least so far from each other; 0 is the first.

    Raises:
        SplitReadError: as for `records`.
    """
    # In another encoding, positions in the content are no bytes of the file.
    if _encoding_of(file, options) != options.encoding:
        return [0]
    places = [0]
    for at, _ in chain.from_iterable(records(FileSplit(file, 0, file.size), options)):
        if at >= places[-1] + apart:
            places.append(at)
    return places


def _pieces(split: FileSplit, options: ReaderOptions) -> Generator[bytes, None, None]:
    """Yield the content of a split, cut anywhere, in UTF-8; a byte order mark stays where it is."""
    file, step = split.file, min(_STEP, options.batch_bytes)
    if is_read_in_place(file, options):
        pieces = stored_content(split, options, step)
    else:
        pieces = content(file, options, step, keeps_mark=True)
    first = next(pieces, b"")
    # Nothing in such a file looks like a record, so it would be read as empty.
    if not split.start and (
        wrong := another_kind(first, file, options, codec_of(file.path, options.compression))
    ):
        raise wrong
    declared = options.encoding if split.start else _declared(first, file, options)
    # Only if the file names another encoding is it read again from its beginning.
    if declared == options.encoding:
        yield from chain([first], pieces)
        return
    other = options.model_copy(update={"encoding": declared})
    yield from content(file, other, step, keeps_mark=True)


def _encoding_of(file: FileVersion, options: ReaderOptions) -> str:
    with SourceFile(file, options.storage_options).opened() as source:
        return _declared(source.read_at(0, 1024), file, options)


def _declared(head: bytes, file: FileVersion, options: ReaderOptions) -> str:
    """Return the encoding that a file names, unless the option names another than UTF-8."""
    if options.encoding != "utf-8":
        return options.encoding
    if head.startswith(_MARKS):
        return "utf-16"
    match = _DECLARED.match(head.removeprefix(codecs.BOM_UTF8))
    if match is None:
        return options.encoding
    name = match[1].decode()
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise MalformedDataError(
            "a file declares an encoding that is not known",
            f"{file.path}, byte 0",
            name,
            "a known character encoding",
            "Set the encoding option to that of the file; if it is UTF-8, replace the file by one "
            "that says so.",
        ) from None


_ENDS = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_DOCTYPE = b"<!DOCTYPE"
_PREFIX = rb"(?:[^\s<>/:=\"']{1,200}:){0,3}"
# Three prefixes of 200 bytes, each with its colon.
_LONGEST_PREFIX = 603
# All repetitions are possessive (`++`, `*+`): hostile text costs no steps back.
_ATTRIBUTES = rb"(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+"
_BREAKS = np.frombuffer(b" \t\r\n\v\f/>", np.uint8)
_OPEN, _CLOSE, _SLASH, _BANG, _QUERY, _DOUBLE, _SINGLE = b"<>/!?\"'"
_DECLARATIONS = re.compile(
    rb"<!DOCTYPE(?:[^\[\]<>\"']++|\"[^\"]*+\"|'[^']*+')*+"
    rb"(?:\[(?:[^\]<\"']++|\"[^\"]*+\"|'[^']*+'|<!--(?:[^-]++|-(?!->))*+-->"
    rb"|<\?(?:[^?]++|\?(?!>))*+\?>|<(?!!--|\?))*+\]\s*+)?>"
)
LONGEST_DOCTYPE = 1024 * 1024
"""Bytes of a DOCTYPE that are looked through for its end."""


class RecordFinder:
    """Cuts one stretch of a file, which begins outside of any record, into its records."""

    def __init__(
        self, row_tag: str, limit: RecordLimit, *, ignore_namespace: bool, base: int = 0
    ) -> None:
        """`limit` is for a record; its error is given where the record begins.

        `base` is where the stretch begins.
        """
        self._plain = b"" if ignore_namespace else row_tag.encode()
        name = re.escape(row_tag.encode())
        if ignore_namespace:
            name = _PREFIX + name
        other = rb"!--|!\[CDATA\[|\?"
        self._outside = re.compile(rb"<(?:%s|!DOCTYPE|%s(?=[\s/>]))" % (other, name))
        self._inside = re.compile(rb"<(?:%s|/?%s(?=[\s/>]))" % (other, name))
        self._tag = re.compile(rb"<%s(?:(?=[\s/>])%s)>" % (name, _ATTRIBUTES))
        # A tag that is cut off, perhaps within quotes, where `>` has no meaning.
        self._unfinished = re.compile(
            rb"<%s(?=[\s/>])%s(?:\"[^\"<]*+|'[^'<]*+)?\Z" % (name, _ATTRIBUTES)
        )
        self._longest = len(row_tag.encode()) + len(_DOCTYPE) + _LONGEST_PREFIX
        self._limit = limit
        self._pieces: Iterator[bytes] = iter(())
        self._data = b""
        self._base = base
        """Position of the first of the held bytes."""
        self._at = 0
        """How far the held bytes have been looked at."""
        self._start = -1
        """Where in them the open record begins; -1 outside of records."""
        self._depth = 0
        self._together_from = 0
        """Position from which it is worth looking for many records at once again."""

    def records(self, pieces: Iterator[bytes]) -> Iterator[list[tuple[int, bytes]]]:
        """Yield lists of records, each with where it begins; the last one may lack its end.

        Raises:
            MalformedDataError: a record, or a DOCTYPE, is too long.
        """
        self._pieces = pieces
        has_more = self._grow()
        while has_more:
            if self._plain and self._start < 0 and self._at >= self._together_from:
                if plain := self._plain_ones():
                    yield plain
                # Each look is at all that is held, so there are a few of them.
                self._together_from = self._at + (len(self._data) - self._at) // 8
            has_more = self._pass_markup()
            if self._start >= 0 and self._depth == 0:
                yield self._taken(self._at)
        if self._start >= 0:
            yield self._taken(len(self._data))

    def _taken(self, end: int) -> list[tuple[int, bytes]]:
        start, self._start = self._start, -1
        self._require(end - start, start)
        return [(self._base + start, self._data[start:end])]

    def _pass_markup(self) -> bool:
        """Go on behind the next piece of markup that counts; False if it does not end."""
        pattern = self._outside if self._start < 0 else self._inside
        match = pattern.search(self._data, self._at)
        if match is None:
            # A tag may be cut by the end of what is held.
            last = self._data.rfind(b"<", max(self._at, len(self._data) - self._longest))
            self._at = last if last >= 0 else len(self._data)
            return self._grow()
        self._at, markup = match.start(), match.group()
        if markup in _ENDS:
            self._at = match.end()
            return self._pass_over(_ENDS[markup])
        if markup == _DOCTYPE:
            return self._pass_doctype()
        if not markup.startswith(b"</"):
            return self._open(len(markup))
        self._depth -= 1
        return self._pass_over(b">")

    def _grow(self, least: int = 0) -> bool:
        """Hold more content, `least` bytes if there are so many; False at the end."""
        if self._start >= 0:
            self._require(len(self._data) - self._start, self._start)
        parts, size = list[bytes](), 0
        for piece in self._pieces:
            parts.append(piece)
            size += len(piece)
            if size >= max(least, 1):
                break
        keep = self._at if self._start < 0 else self._start
        self._data = self._data[keep:] + b"".join(parts)
        self._base += keep
        self._at -= keep
        # An open record now begins with the held bytes.
        self._start = min(self._start, 0)
        self._together_from = 0
        return size > 0

    def _pass_over(self, mark: bytes) -> bool:
        while (end := self._data.find(mark, self._at)) < 0:
            # It may be cut in two by the end of what is held.
            self._at = max(self._at, len(self._data) - len(mark) + 1)
            if not self._grow():
                return False
        self._at = end + len(mark)
        return True

    def _pass_doctype(self) -> bool:
        while (match := _DECLARATIONS.match(self._data, self._at)) is None:
            if len(self._data) - self._at > LONGEST_DOCTYPE:
                raise self._limit.error(self._base + self._at)
            # Twice as much each time, so that no byte is looked at more than a few times.
            if not self._grow(len(self._data) - self._at):
                return False
        self._at = match.end()
        return True

    def _open(self, named: int) -> bool:
        """Go on behind a start tag, or behind its name if it is not well-formed."""
        while (match := self._tag.match(self._data, self._at)) is None:
            if not self._unfinished.match(self._data, self._at):
                break
            if self._start < 0:
                self._require(len(self._data) - self._at, self._at)
            if not self._grow(len(self._data) - self._at):
                return False
        self._start = self._at if self._start < 0 else self._start
        # Not well-formed: what follows it is looked at as if it were.
        self._at = self._at + named if match is None else match.end()
        self._depth += match is None or not match.group().endswith(b"/>")
        return True

    def _require(self, length: int, begins: int) -> None:
        if length > self._limit.bytes:
            raise self._limit.error(self._base + begins)

    def _plain_ones(self) -> list[tuple[int, bytes]]:
        """Return the next records together, up to the first that has anything odd in it."""
        data, at = self._data, self._at
        raw = np.frombuffer(data, np.uint8)[at:]
        tags = np.flatnonzero(raw[:-1] == _OPEN)
        after = raw[tags + 1]
        is_odd = (after == _BANG) | (after == _QUERY)
        opens = _followed_by(raw, tags[~is_odd], self._plain)
        ends = _followed_by(raw, tags[after == _SLASH], b"/" + self._plain)
        ends_as_usual = raw[ends + len(self._plain) + 2] == _CLOSE
        odd = np.concatenate([tags[is_odd][:1], ends[~ends_as_usual][:1]])
        first_odd = odd.min(initial=len(raw))
        # Starts and ends in turn, each end before the next start and before what is odd.
        count = min(len(opens), len(ends))
        following = np.append(opens[1 : count + 1], len(raw))[:count]
        is_plain = (opens[:count] < ends[:count]) & (ends[:count] < following)
        is_plain &= ends[:count] < first_odd
        begins, stops = opens[:count], ends[:count] + len(self._plain) + 3
        is_plain &= (stops - begins <= self._limit.bytes) & self._are_plain(raw, begins, stops)
        plain = count if is_plain.all() else int(np.argmin(is_plain))
        if not plain:
            return []
        self._at = at + int(stops[plain - 1])
        places = [*zip((begins[:plain] + at).tolist(), (stops[:plain] + at).tolist(), strict=True)]
        return [(self._base + begin, data[begin:stop]) for begin, stop in places]

    def _are_plain(self, raw: np.ndarray, begins: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return whether each start tag ends where its first `>` is, and is no end at once."""
        plain: np.ndarray = raw[begins + len(self._plain) + 1] == _CLOSE
        others = np.flatnonzero(~plain)
        if len(others):
            starts = begins[others]
            closes = np.append(np.flatnonzero(raw == _CLOSE), len(raw))
            ends = closes[np.searchsorted(closes, starts)]
            double, single = (
                np.searchsorted(places, ends) - np.searchsorted(places, starts)
                for places in (np.flatnonzero(raw == mark) for mark in (_DOUBLE, _SINGLE))
            )
            # Within quotes, `>` does not end a tag.
            in_quotes = ((double > 0) & (single > 0)) | (double % 2 > 0) | (single % 2 > 0)
            plain[others] = (ends < stops[others]) & (raw[ends - 1] != _SLASH) & ~in_quotes
        return plain


def _followed_by(raw: np.ndarray, places: np.ndarray, name: bytes) -> np.ndarray:
    """Return the tags of this name; one at the end may not have come yet."""
    places = places[places + len(name) + 1 < len(raw)]
    for at, byte in enumerate(name, 1):
        places = places[raw[places + at] == byte]
    return places[np.isin(raw[places + len(name) + 1], _BREAKS)]

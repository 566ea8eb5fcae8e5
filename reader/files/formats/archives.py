"""Reads archives: each member like a file of the query's format.

How far a split was read is the number of the member it ends in, and how much of that was read:
bytes of content in formats of text, else rows. Both are one number, so that it only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ....errors import SchemaMismatchError
from ..evolution.new_columns import NewColumnsSeen
from ..io.archives import Member, is_zip, members, reads_members
from ..options import ReaderOptions
from .api import Decoded, FileFormat, Splittability, TimeSpan
from .record_format import asks_row_index, rows_before
from .registry import format_class

_WITHIN = 40
"""Bits of a position within a member."""

_NO_ROWS = pa.record_batch([], schema=pa.schema([]))


class ArchiveFormat(FileFormat):
    """Decodes the members of archives by the format that their files would have."""

    holds_members = True

    def __init__(
        self, inner: FileFormat, watched: Callable[[FileVersion], FileFormat] | None = None
    ) -> None:
        """`watched` returns the decoder of a member instead of `inner`, if that depends on it."""
        super().__init__(inner.schema, inner.options, inner.context)
        self._inner = inner
        self._format_of = watched or (lambda _: inner)

    @override
    def splittability(self, file: FileVersion) -> Splittability:
        """At any byte for zip: see `members`."""
        may_cut = is_zip(file.path) and not asks_row_index(self.schema)
        return Splittability.RECORDS if may_cut else Splittability.WHOLE

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        first, within = divmod(split.skip, 1 << _WITHIN)
        for member in members(split, self.options, first):
            part, whole = member.part, (0, member.file.size)
            if part != whole and self._inner.splittability(member.file) != Splittability.RECORDS:
                if part[0]:
                    continue
                part = whole
            at = within if member.ordinal == first else 0
            base = member.ordinal << _WITHIN
            yield Decoded(_NO_ROWS, span=(base + at, base + at), begins_member=True)
            with member.opened(in_part=bool(at) or part != whole) as file:
                try:
                    pieces = self._format_of(file).decode(FileSplit(file, *part, at))
                    for piece in with_spans(pieces, at):
                        yield _placed(piece, member)
                except NewColumnsSeen as seen:
                    # Of an archive, the driver would look at the first members only.
                    if seen.found is None:
                        format_type = format_class(self.options.file_format)
                        seen.found = format_type.columns_of(file, self.options, 0)
                    raise

    @override
    def first_row(self, split: FileSplit) -> int:
        return super().first_row(split) + rows_before(self, split)

    @classmethod
    @override
    def time_span(
        cls, file: FileVersion, options: ReaderOptions, column: str, unit: str
    ) -> TimeSpan | None:
        raise SchemaMismatchError(
            "an archive has no statistics of its members",
            file.path,
            "an archive",
            "a file whose metadata contains the minimum and maximum of the column",
            "Leave it out with pathGlobFilter, or set onMissingEventTime to mtime.",
        )


def class_of(file: FileVersion, options: ReaderOptions) -> type[FileFormat]:
    """Return the class that decodes a file: that of the query's format, or of archives of it."""
    is_archive = reads_members(file.path, options)
    return ArchiveFormat if is_archive else format_class(options.file_format)


def format_of(
    file: FileVersion,
    plain: FileFormat,
    watched: Callable[[FileVersion], FileFormat] | None = None,
) -> FileFormat:
    """Return what decodes a file: `plain`, or its members; `watched` as in `ArchiveFormat`."""
    if class_of(file, plain.options).holds_members:
        return ArchiveFormat(plain, watched)
    return watched(file) if watched else plain


def _placed(piece: Decoded, member: Member) -> Decoded:
    """A piece whose span is in its member, with where that is in the split."""
    assert piece.span is not None
    (begin, end), parts = piece.span, piece.parts
    base = member.ordinal << _WITHIN
    return replace(
        piece,
        passed_over=0,
        span=(base + begin, base + end),
        # Where it is unknown how much of the member was read, it counts with the next.
        read_bytes=member.read_bytes(piece.read_bytes or 0),
        parts=None if parts is None else lambda: (_placed(part, member) for part in parts()),
        member=member.name,
    )


def columns_in(
    file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema | None
) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and the columns of a file, or of the first members of an archive.

    See `FileFormat.columns_of`. With `schema`, columns that it contains may be left out.
    """
    format_type = format_class(options.file_format)

    def of_file(file: FileVersion, limit: int) -> tuple[str, pa.DataType]:
        if schema is None:
            return file.path, format_type.columns_of(file, options, limit)
        return file.path, format_type.new_columns_of(file, options, limit, schema)

    if not class_of(file, options).holds_members:
        yield of_file(file, limit)
        return
    for member in islice(
        members(FileSplit(file, 0, file.size), options), options.infer_sample_files
    ):
        with member.opened() as opened:
            yield of_file(opened, limit)
        limit -= 0 if format_type.says_columns else member.file.size
        if limit <= 0:
            return


def with_spans(pieces: Iterable[Decoded], skip: int) -> Iterator[Decoded]:
    """Yield pieces with spans: where rows are counted, from the row `skip` on.

    Such formats decode the rows before again; who read them has counted what was dropped with them.
    """
    row = end = 0
    for piece in pieces:
        if piece.span is not None:
            yield piece
            continue
        first = row + piece.passed_over
        row = first + piece.batch.num_rows
        if first >= skip or row > skip:
            begin = max(first, skip)
            fresh = piece if first >= skip else _behind(piece, skip - first)
            yield _counted(replace(fresh, passed_over=begin - end), begin)
            end = row


def _behind(piece: Decoded, rows: int) -> Decoded:
    """A piece without its first rows, and without what was dropped with them."""
    batch = piece.batch.slice(rows)
    return replace(piece, batch=batch, dropped_records=0, bad=(), passed_over=0)


def _counted(piece: Decoded, first: int) -> Decoded:
    count = piece.batch.num_rows

    def parts() -> Iterator[Decoded]:
        half = count // 2
        yield _counted(replace(piece, batch=piece.batch.slice(0, half)), first)
        yield _counted(_behind(piece, half), first + half)

    return replace(piece, span=(first, first + count), parts=parts if count > 1 else None)

"""Reads archives: each member like a file of the query's format.

How far a split was read is the number of the member it ends in, and how much of that was read:
bytes of content in formats of lines, else rows. Both are one number, so that it only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ....errors import SchemaMismatchError
from ..evolution.new_columns import NewColumnsSeen
from ..io.archives import Member, is_zip, members, reads_members
from ..options import ReaderOptions
from .api import Decoded, FileFormat, Splittability
from .record_format import asks_row_index, up_to
from .registry import format_class

_WITHIN = 40
"""Bits of a position within a member."""


class ArchiveFormat(FileFormat):
    """Decodes the members of archives by the format that their files would have."""

    def __init__(
        self, inner: FileFormat, watched: Callable[[FileVersion], FileFormat] | None = None
    ) -> None:
        """`watched` returns the decoder of a member instead of `inner`, if that depends on it."""
        super().__init__(inner.schema, inner.options, inner.context)
        self._format_of = watched or (lambda _: inner)

    @override
    def splittability(self, file: FileVersion) -> Splittability:
        """At any byte for zip: a member belongs to the split in which its local header begins."""
        may_cut = is_zip(file.path) and not asks_row_index(self.schema)
        return Splittability.RECORDS if may_cut else Splittability.WHOLE

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        first, within = divmod(split.skip, 1 << _WITHIN)
        for member in members(split, self.options, first):
            at = within if member.ordinal == first else 0
            try:
                yield from _pieces(self._format_of(member.file), member, at)
            except NewColumnsSeen as seen:
                # Of an archive, the driver would look at the first members only.
                if seen.found is None:
                    format_type = format_class(self.options.file_format)
                    seen.found = format_type.columns_of(member.file, self.options, 0)
                raise

    @override
    def first_row(self, split: FileSplit) -> int:
        row = super().first_row(split)
        for piece in up_to(self.decode(split._replace(skip=0)), split.skip):
            row += piece.batch.num_rows
        return row


def decoder_of(
    file: FileVersion,
    plain: FileFormat,
    data: pa.Schema,
    format_for: Callable[[FileVersion, FileFormat, pa.Schema], FileFormat],
) -> FileFormat:
    """Return what decodes a file that may be an archive; see `ColumnWatch.format_for`."""
    if reads_members(file.path, plain.options):
        return ArchiveFormat(plain, lambda member: format_for(member, plain, data))
    return format_for(file, plain, data)


def splittability_of(file: FileVersion, file_format: FileFormat) -> Splittability:
    """Return where a file can be split that may be an archive. Does no I/O."""
    is_archive = reads_members(file.path, file_format.options)
    return (ArchiveFormat(file_format) if is_archive else file_format).splittability(file)


def refuse_statistics(file: FileVersion, options: ReaderOptions) -> None:
    """Refuse an archive where the times of a file come from its metadata.

    Raises:
        SchemaMismatchError: it is an archive.
    """
    if reads_members(file.path, options):
        raise SchemaMismatchError(
            "an archive has no statistics of its members",
            file.path,
            "an archive",
            "a file whose metadata contains the minimum and maximum of the column",
            "Leave it out with pathGlobFilter, or set onMissingEventTime to mtime.",
        )


def _pieces(file_format: FileFormat, member: Member, skip: int) -> Iterator[Decoded]:
    row = 0
    for piece in file_format.decode(FileSplit(member.file, 0, member.file.size, skip)):
        if piece.span is not None:
            yield _placed(piece, member)
            continue
        count, first = piece.batch.num_rows, row + piece.passed_over
        row = first + count
        # Formats whose rows are counted begin with the first one.
        if first >= skip:
            yield _counted(piece, member, first)
        elif row > skip:
            yield _counted(_behind(piece, skip - first), member, skip)


def _behind(piece: Decoded, rows: int) -> Decoded:
    """A piece without its first rows, and without what was dropped with them."""
    return replace(piece, batch=piece.batch.slice(rows), dropped_records=0, bad=())


def _counted(piece: Decoded, member: Member, first: int) -> Decoded:
    """A piece of counted rows, with where they are in the split, and in two parts."""
    count, base = piece.batch.num_rows, (member.ordinal << _WITHIN) + first

    def parts() -> Iterator[Decoded]:
        half = count // 2
        yield _counted(replace(piece, batch=piece.batch.slice(0, half)), member, first)
        yield _counted(_behind(piece, half), member, first + half)

    return replace(
        piece,
        passed_over=0,
        span=(base, base + count),
        # How much of the member they take is unknown: what is read of it counts with the next.
        read_bytes=member.read_bytes(0),
        parts=parts if count > 1 else None,
        member=member.name,
    )


def _placed(piece: Decoded, member: Member) -> Decoded:
    """A piece whose span is in its member, with where that is in the split."""
    assert piece.span is not None
    (begin, end), parts = piece.span, piece.parts
    base = member.ordinal << _WITHIN
    return replace(
        piece,
        span=(base + begin, base + end),
        # The content of a member that is compressed in turn may be longer than the member.
        read_bytes=member.read_bytes(min(end, member.file.size)),
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

    if not reads_members(file.path, options):
        yield of_file(file, limit)
        return
    for member in islice(
        members(FileSplit(file, 0, file.size), options), options.infer_sample_files
    ):
        yield of_file(member.file, limit)
        limit -= 0 if format_type.says_columns else member.file.size
        if limit <= 0:
            return

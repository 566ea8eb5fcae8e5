"""Reads archives: each member like a file of the query's format.

How far a split was read is the number of the member it ends in, and how much of that was read:
bytes of content in formats of text, else rows. Both are one number, so that it only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import SchemaMismatchError, SplitReadError
from ..evolution.new_columns import NewColumnsSeen
from ..io.archives import Member, is_zip, members, reads_members
from ..io.file_kinds import another_kind
from ..options import ReaderOptions
from ..packing import RUN_BYTES, RUN_FILES, SMALL_FILE, fitting_files
from .api import Decoded, FileFormat, FormatContext, Splittability, TimeSpan
from .records.record_format import asks_row_index, rows_before
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
        run = _Run(self.context)
        try:
            for member in members(split, self.options, first):
                part, whole = member.part, (0, member.file.size)
                may_cut = self._inner.splittability(member.file) == Splittability.RECORDS
                if part != whole and not may_cut:
                    if part[0]:
                        continue
                    part = whole
                at = within if member.ordinal == first else 0
                may_pack = not at and part == whole and member.file.size <= SMALL_FILE
                may_pack = may_pack and self._inner.may_pack(member.file)
                if run and not (may_pack and run.has_room_for(member)):
                    yield from self._together(run.taken())
                if not run:
                    yield _announced(member, at)
                if may_pack:
                    run.add(*member.in_memory())
                else:
                    yield from self._alone(member, at, part)
        except Exception:
            # What was read before the member that is damaged, or the end of the archive.
            yield from self._together(run.taken())
            raise
        yield from self._together(run.taken())

    def _alone(self, member: Member, at: int, part: tuple[int, int]) -> Iterator[Decoded]:
        with member.opened(in_part=bool(at) or part != (0, member.file.size)) as file:
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

    def _together(self, run: Sequence[_Small]) -> Iterator[Decoded]:
        """Yield the rows of members from one parse, if possible; the first was announced."""
        files = [member.file for member, _ in run]
        try:
            if len(run) > 1:
                for file, (_, data) in zip(files, run, strict=True):
                    if wrong := another_kind(data, file, self.options):
                        raise wrong
                parsed = self._inner.decode_packed(files, [data for _, data in run])
                dropped = parsed.dropped_of or [0] * len(run)
                counts = list(zip(parsed.rows_of or (), dropped, strict=True))
                yield self._packed(run, parsed, counts, announced=True)
                return
        except (SplitReadError, NewColumnsSeen, pa.ArrowException, ValueError, OverflowError):
            pass  # Read alone, the member at fault is named, after the rows of those before it.
        for number, (member, _) in enumerate(run):
            if number:
                yield _announced(member, 0)
            yield from self._alone(member, 0, (0, member.file.size))

    def _packed(
        self,
        run: Sequence[_Small],
        piece: Decoded,
        counts: Sequence[tuple[int, int]],
        *,
        announced: bool,
    ) -> Decoded:
        """Return rows that were parsed together; `counts`: rows and dropped records of each."""

        def parts() -> Iterator[Decoded]:
            half = len(run) // 2
            rows = sum(count for count, _ in counts[:half])
            for begin, end, batch in (
                (0, half, piece.batch.slice(0, rows)),
                (half, len(run), piece.batch.slice(rows)),
            ):
                is_announced = announced and not begin
                if end - begin > 1:
                    part = replace(piece, batch=batch)
                    yield self._packed(
                        run[begin:end], part, counts[begin:end], announced=is_announced
                    )
                    continue
                member, _ = run[begin]
                if not is_announced:
                    yield _announced(member, 0)
                yield from self._alone(member, 0, (0, member.file.size))

        (first, _), (last, data) = run[0], run[-1]
        paths = {member.file.path for member, _ in run}
        return Decoded(
            piece.batch,
            sum(dropped for _, dropped in counts),
            [record for record in piece.bad if record.path in paths],
            span=(first.ordinal << _WITHIN, (last.ordinal << _WITHIN) + len(data)),
            read_bytes=last.read_bytes(len(data)),
            parts=parts,
            members=[(m.name, rows) for (m, _), (rows, _) in zip(run, counts, strict=True)],
            more_members=len(run) - announced,
        )

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


_Small: TypeAlias = tuple[Member, bytes]
"""A member and its content, which may be parsed together with others."""


class _Run:
    """Small members in a row, as many as are parsed at once."""

    def __init__(self, context: FormatContext) -> None:
        self._context, self._first = context, context.records_left()
        self._members, self._names, self._size = list[_Small](), set[str](), 0
        self._passed = self._most = 0

    def __bool__(self) -> bool:
        return bool(self._members)

    def has_room_for(self, member: Member) -> bool:
        """Return whether it may be parsed with those before, which it is not named like."""
        return (
            member.name not in self._names
            and self._size + member.file.size <= RUN_BYTES
            and len(self._members) < self._most
        )

    def add(self, member: Member, data: bytes) -> None:
        """Take one more."""
        if not self._members:
            self._most = self._next_length()
        self._members.append((member, data))
        self._names.add(member.name)
        self._size += len(data)

    def taken(self) -> Sequence[_Small]:
        """Return them, and begin another run."""
        members, self._members, self._names, self._size = self._members, [], set(), 0
        self._passed += len(members)
        return members

    def _next_length(self) -> int:
        left, files = self._context.records_left(), self._context.files_left()
        most = RUN_FILES if files is None else files + 1
        return min(most, fitting_files(self._first, left, self._passed))


def _announced(member: Member, at: int) -> Decoded:
    place = (member.ordinal << _WITHIN) + at
    return Decoded(_NO_ROWS, span=(place, place), begins_member=True)


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
        members=[(member.name, 0)],
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

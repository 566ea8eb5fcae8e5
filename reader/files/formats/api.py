"""The contract of a file format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import OptionError
from ..options import ReaderOptions

if TYPE_CHECKING:
    from ..io.cut_places import CutPlaces


class Splittability(Enum):
    """The positions at which a file can be split."""

    WHOLE = "whole"
    """Nowhere: multi-line records, formats with one document per file, most codecs."""

    RECORDS = "records"
    """At any byte: a record belongs to the split that contains its first byte."""

    BLOCKS = "blocks"
    """Only at the boundaries of `FileFormat.blocks`."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row group, stripe, record batch or block of a file. Blocks have no gaps between them.

    The first block of a file starts at byte 0 and the last ends at the file's length, so that
    headers and footers belong to a block and the splits cover the whole file.
    """

    start: int
    end: int
    rows: int
    """Rows in this block; -1 if the metadata does not contain the number: see `counts_rows`."""


def contiguous(blocks: Sequence[tuple[int, int]], size: int) -> list[Block]:
    """Blocks without gaps from where blocks begin on disk, each with its number of rows.

    Where the starts are no boundaries (none at all, out of order, beyond the file) the whole file
    is one block: a file that is odd is read whole rather than cut wrongly.
    """
    # The first block begins at 0 and the last one ends with the file, so headers and footers belong
    # to one.
    boundaries = [0, *(start for start, _ in blocks[1:]), size]
    rows = [count for _, count in blocks]
    if len(blocks) < 2 or any(a >= b for a, b in pairwise(boundaries)):
        return [Block(0, size, -1 if min(rows, default=0) < 0 else sum(rows))]
    return [Block(*ends, count) for ends, count in zip(pairwise(boundaries), rows, strict=True)]


class TimeSpan(NamedTuple):
    """The earliest and the latest time in a file, in microseconds since the epoch.

    All rows are between the two: `first` is rounded down and `last` is rounded up.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A malformed record that is dropped."""

    path: str
    position: str
    """Where the record begins, as in errors: byte 17."""

    record: str
    """Text of the record."""

    reason: str


@dataclass(slots=True)
class Decoded:
    """One batch with the data columns of the schema, and the records dropped while parsing it."""

    batch: pa.RecordBatch
    dropped_records: int = 0
    bad: Sequence[BadRecord] = ()
    """The dropped records, if the option `badRecordsPath` is set."""

    passed_over: int = field(default=0, kw_only=True)
    """Rows before this batch that were not decoded, because of the filter."""

    span: tuple[int, int] | None = field(default=None, kw_only=True)
    """Where its records begin and end in the content of the split; None if rows are counted."""

    read_bytes: int | None = field(default=None, kw_only=True)
    """Stored bytes of the split that were read up to its end; None if unknown."""

    parts: Callable[[], Iterator[Decoded]] | None = field(default=None, kw_only=True)
    """Decodes the same records again in two parts; None for one record, or without a `span`."""

    members: Sequence[tuple[str, int]] = field(default=(), kw_only=True)
    """Members of an archive that its rows are from, each with its number of rows; none in a file.
    With a single member the number has no meaning."""

    begins_member: bool = field(default=False, kw_only=True)
    """True for a piece without rows that comes before a member is opened."""

    more_members: int = field(default=0, kw_only=True)
    """Number of members in it that no piece before it has announced."""


@dataclass(slots=True)
class Parsed(Decoded):
    """The rows of one file, or of several files that were parsed together."""

    rows_of: list[int] | None = None
    """Number of rows of each file; None if there is only one file."""

    dropped_of: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class FormatContext:
    """The query as a format knows it, in addition to its columns and the options."""

    columns: frozenset[str] = frozenset()
    """All columns of the query, including those that come from paths or from the reader."""

    schema_is_inferred: bool = False
    """True if files may lack columns of the schema; false if that would be a mistake."""

    cut_places: CutPlaces | None = None
    """Stores the points at which decompression of gzip can start; None if they are not stored."""

    records_left: Callable[[], int | None] = lambda: None
    """Returns about how many records the reader still accepts; None if it accepts all.

    A format that decodes about that many at a time decodes little that the next batch has to
    decode again. It may decode more, or fewer.
    """

    files_left: Callable[[], int | None] = lambda: None
    """Returns how many files or members the reader may still begin; None if there is no limit."""


NO_CONTEXT = FormatContext()


class FileFormat(ABC):
    """Splits and decodes files of one format. Created once for each reader; keeps no file open.

    A subclass declares its properties as class attributes, or as methods if they depend on options
    or on a file. It needs to read only the columns of `schema`. The reader applies `filter` to
    everything that `decode` yields; a format uses the filter only to avoid work.
    """

    knows: ClassVar[frozenset[str]] = frozenset()
    """Fields of `ReaderOptions` that it supports, in addition to those of all formats.

    Built-in formats are listed in `registry.py` instead, so that options load none of them.
    """

    own_options: ClassVar[frozenset[str]] = frozenset()
    """Names of its additional options. Their values are in `ReaderOptions.format_options`."""

    is_lines: ClassVar[bool] = False
    """True if records end where a separator is, so that a file may grow: onOverwrite=appendTail."""

    counts_rows: ClassVar[bool] = False
    """True if every block has its number of rows, so that a part continues within a block."""

    says_columns: ClassVar[bool] = False
    """True if metadata contains the columns of a file, so that they are known before reading."""

    has_time_statistics: ClassVar[bool] = False
    """True if metadata contains the minimum and maximum of a column: see `time_span`."""

    holds_members: ClassVar[bool] = False
    """True if a file holds others, which `decode` announces, each with `Decoded.begins_member`."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        """`schema` contains the columns to read from files, without those that come from paths.

        Raises:
            OptionError: the format does not support an option or a type of the schema.
        """
        self.schema = schema
        self.options = options
        self.context = context
        self.passed_over = 0
        """Rows that were not decoded since the last piece, because of the filter."""

    @abstractmethod
    def splittability(self, file: FileVersion) -> Splittability:
        """Return where `file` can be split. Called on the driver, must not do I/O."""

    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """Return the blocks of `file` in order, from its metadata.

        Called on the driver, only for `BLOCKS`.

        Raises:
            SplitReadError: the metadata cannot be read.
        """
        raise NotImplementedError

    @abstractmethod
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the rows of `split` in order, in bounded memory.

        Raises:
            SplitReadError: the file was deleted or changed, is malformed or does not fit the
                schema. The error names file, position, what was expected and the remedy.
        """

    def first_row(self, split: FileSplit) -> int:
        """The index in the file of the first row of `split`. Called only if rows are numbered."""
        # Right for any format, at the price of decoding all that is before; formats whose metadata
        # has the numbers of rows override it.
        if split.start == 0:
            return 0
        before = FileSplit(split.file, 0, split.start)
        return sum(decoded.batch.num_rows for decoded in self.decode(before))

    def remainder(self, split: FileSplit, position: int) -> FileSplit:
        """Return what is left of `split` from there on: a row, or as `Decoded.span` counts."""
        # If nothing says how many bytes were read, most are: plans that are too large, which
        # budgets of readers allow.
        return split._replace(skip=position, read_bytes=max(0, split.end - split.start - 1))

    def position_of(self, split: FileSplit, remainder: FileSplit) -> int:
        """Return where one of its remainders begins in `split`: the inverse of `remainder`."""
        del split
        return remainder.skip

    def may_pack(self, file: FileVersion) -> bool:
        """Return whether `decode_packed` can parse small files like this one together."""
        del file
        return False

    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        """Parse several small files together, and count the rows of each file.

        Called only with files for which `may_pack` is true.

        Raises:
            SplitReadError: as in `decode`. The files are then read one by one, to find the cause.
        """
        raise NotImplementedError

    @classmethod
    def time_span(
        cls, file: FileVersion, options: ReaderOptions, column: str, unit: str
    ) -> TimeSpan | None:
        """Return the minimum and maximum of a column, from the metadata of `file` only.

        Args:
            file: the file, whose rows are not read.
            options: the options with which to open it.
            column: a top-level timestamp or date, or an integer if `unit` is set.
            unit: unit of an integer column since 1970: s, ms, us or ns; empty for other columns.

        Returns:
            None if the file has no rows, or only nulls in this column.

        Raises:
            SchemaMismatchError: the metadata does not contain them.
            SplitReadError: the metadata cannot be read.
        """
        raise NotImplementedError

    @classmethod
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        """A struct of the columns in `file`, for schema inference; null if the file names none.

        Reads the metadata, or about the first `limit` bytes if the format has no metadata.

        Raises:
            OptionError: the format does not support schema inference.
        """
        del file, limit
        raise OptionError(
            "a schema is needed",
            f"fileFormat={options.file_format}",
            "no .schema(...)",
            '.schema("id long, name string") or a StructType before .load()',
        )

    @classmethod
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema
    ) -> pa.DataType:
        """Like `columns_of`, for schema evolution; may omit columns that `schema` contains."""
        del schema
        return cls.columns_of(file, options, limit)

    @classmethod
    def common_columns(
        cls, one: pa.DataType, other: pa.DataType, file: FileVersion, options: ReaderOptions
    ) -> pa.DataType:
        """Merge two structs of columns: a struct with all columns, in types that fit both."""
        raise NotImplementedError

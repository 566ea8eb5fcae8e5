"""The contract of a file format.

Not here: opening and decompressing files (`io/source_file.py`), reader commits, anything of Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ....errors import OptionError
from ..options import ReaderOptions

if TYPE_CHECKING:
    from ..io.compressed.cut_places import CutPlaces


class Splittability(Enum):
    """Where a file may be cut."""

    WHOLE = "whole"
    """Nowhere: multi-line records, single-document formats, codecs that cannot be entered."""

    RECORDS = "records"
    """May be cut at any byte: a record belongs to the split in which its first byte is."""

    BLOCKS = "blocks"
    """May be cut at the boundaries of `FileFormat.blocks` only."""

    LIMITS = "limits"
    """At the same boundaries, but only where a limit asks for it: what comes before a split has to
    be decompressed again."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row group, stripe, record batch or block of a file, without gaps to its neighbours.

    The first block of a file starts at byte 0 and the last ends at the file's length, so that
    headers and footers are accounted for and splits made of blocks cover the file.
    """

    start: int
    end: int
    rows: int
    """Rows in this block; -1 in formats whose metadata does not say: see `counts_rows`."""


def contiguous(starts: Sequence[int], rows: Sequence[int], size: int) -> list[Block]:
    """Blocks without gaps from where blocks begin on disk.

    Where the starts are no boundaries (none at all, out of order, beyond the file) the whole file
    is one block: a file that is odd is read whole rather than cut wrongly.
    """
    boundaries = [0, *starts[1:], size]
    if len(starts) < 2 or any(a >= b for a, b in pairwise(boundaries)):
        return [Block(0, size, -1 if min(rows, default=0) < 0 else sum(rows))]
    return [Block(boundaries[i], boundaries[i + 1], rows[i]) for i in range(len(starts))]


class TimeSpan(NamedTuple):
    """The least and the greatest time in a file, in microseconds since the epoch.

    No row is before the one or after the other; of times finer than that they are rounded outwards.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A malformed record that is dropped."""

    path: str
    position: str
    """Where the record begins, as errors say it: byte 17."""

    record: str
    """Text of the record."""

    reason: str


@dataclass(slots=True)
class Decoded:
    """One batch in the target schema's data columns, and the records dropped on the way to it."""

    batch: pa.RecordBatch
    dropped_records: int = 0
    bad: Sequence[BadRecord] = ()
    """The dropped records, if the option `badRecordsPath` is set."""


@dataclass
class Parsed:
    """Rows of one parse, of one file or of several."""

    batch: pa.RecordBatch
    dropped: int = 0
    rows_of: list[int] | None = None
    """Rows of each file of the source; None for one file, whose rows they all are."""

    dropped_of: list[int] = field(default_factory=list)
    bad: Sequence[BadRecord] = ()


@dataclass(frozen=True)
class FormatContext:
    """What a format learns of the query, in addition to its columns and the options."""

    columns: frozenset[str] = frozenset()
    """All columns of the query: some are not in files, but in their paths or made by the reader."""

    schema_is_inferred: bool = False
    """True if a file may lack columns of the schema; false where that shows a mistake."""

    cut_places: CutPlaces | None = None
    """The points at which gzip can be entered; None if there is no place for them."""


NO_CONTEXT = FormatContext()


class FileFormat(ABC):
    """Cuts and decodes one file format. Built once for each reader; holds no open file.

    A subclass says all that others need to know of it, as attributes where the class decides and as
    methods where options or a file do; nobody asks what class it is. It has to read no column but
    those of `schema`. The filter option is the reader's: all that `decode` yields is filtered after
    it, so a format looks at the filter only where that spares it work.
    """

    knows: ClassVar[frozenset[str]] = frozenset()
    """Fields of `ReaderOptions` that it looks at, in addition to those that every format reads.

    For formats that are built in, the table in `option_support.py` says so without an import.
    """

    own_options: ClassVar[frozenset[str]] = frozenset()
    """Names of options of its own; their texts are in `ReaderOptions.format_options`."""

    counts_rows: ClassVar[bool] = False
    """True if every block says how many rows it has, so that batches can be limited in rows."""

    says_columns: ClassVar[bool] = False
    """True if metadata says what columns a file has, so that it is known before it is read."""

    has_time_statistics: ClassVar[bool] = False
    """True if metadata says the least and the greatest value of a column: see `time_span`."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        """`schema` holds the columns wanted from files: all but those in paths.

        Raises:
            OptionError: options or types of the schema that the format cannot serve.
        """
        self.schema = schema
        self.options = options
        self.context = context

    @abstractmethod
    def splittability(self, file: FileVersion) -> Splittability:
        """Where `file` may be cut. Called on the driver; no I/O."""

    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """The blocks of `file` in order; reads metadata.

        Called on the driver, only for `BLOCKS` and `LIMITS`.

        Raises:
            SplitReadError: the metadata cannot be read.
        """
        raise NotImplementedError

    @abstractmethod
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the rows of `split` in order, in bounded memory.

        Raises:
            SplitReadError: vanished, changed, malformed or not fitting; the error names file,
                position, what was expected and the way out.
        """

    def first_row(self, split: FileSplit) -> int:
        """The number in its file of the first row of `split`; asked where rows are numbered."""
        before = FileSplit(split.file, 0, split.start)
        return sum(decoded.batch.num_rows for decoded in self.decode(before))

    def may_pack(self, file: FileVersion) -> bool:
        """True if `decode_packed` may be given small files like this one together."""
        del file
        return False

    def decode_packed(self, files: Sequence[FileVersion], contents: Sequence[bytes]) -> Parsed:
        """Rows of several small files from one parse, with the number of rows of each file.

        Only called where `may_pack` says so of every file.

        Raises:
            SplitReadError: as for single files; they are read singly then, to name the one.
        """
        raise NotImplementedError

    @classmethod
    def time_span(
        cls, file: FileVersion, options: ReaderOptions, column: str, unit: str
    ) -> TimeSpan | None:
        """The least and the greatest value of a column, by the metadata of `file` alone.

        Args:
            file: the file; of its rows none is read.
            options: how it is opened.
            column: a timestamp or date, or an integer if there is a unit; not within another.
            unit: s, ms, us or ns, in which integers count since 1970; empty if they are no times.

        Returns:
            None if the file has no row, or only nulls in this column.

        Raises:
            SchemaMismatchError: the metadata does not say it.
            SplitReadError: the metadata cannot be read.
        """
        raise NotImplementedError

    @classmethod
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        """The struct of the columns in `file`, null where it says none; for schema inference.

        Reads metadata, or without metadata about `limit` bytes from the beginning.

        Raises:
            OptionError: the format has no schema to infer.
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
        cls, file: FileVersion, options: ReaderOptions, limit: int, known: pa.Schema
    ) -> pa.DataType:
        """The same, of which columns that `known` has may be left out; for schema evolution."""
        del known
        return cls.columns_of(file, options, limit)

    @classmethod
    def common_columns(cls, one: pa.DataType, other: pa.DataType, file: FileVersion) -> pa.DataType:
        """One struct for the columns of files before and those of `file`, in types for both."""
        raise NotImplementedError

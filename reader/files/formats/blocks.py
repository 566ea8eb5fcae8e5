"""What the block formats share: boundaries, opening, bounded batches, columns, named errors.

The formats themselves are in `parquet/`, `orc/`, `arrow/`, `avro/` and `binary/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import (
    WITHOUT_THE_FILE,
    MalformedDataError,
    SchemaMismatchError,
    SplitReadError,
    first_line,
)
from ..evolution.column_names import ColumnNames
from ..evolution.hints import parse_hints, with_hinted_types
from ..evolution.type_growth import fitted_field, holds, merged, quoted, wider
from ..io.file_version import naming
from ..io.memory_bounds import too_long
from ..io.source_file import SourceFile
from ..options import ReaderOptions
from ..values.column_fitter import ColumnFitter
from ..values.convert import Misfit, converter
from .api import NO_CONTEXT, Block, Decoded, FileFormat, FormatContext, Splittability

MAX_ROWS = 65_536
"""Rows in a batch at most: from 32,768 on, neither decoding nor Spark gets faster with more."""

_AT_ONCE = 1 << 20

_REMEDY = (
    "Replace the file with a complete one, or set ignoreCorruptFiles to skip and count it. "
    f"{WITHOUT_THE_FILE}"
)


def starting_in(split: FileSplit, blocks: Sequence[Block], count: int) -> range:
    """Return which of `count` units on disk belong to `split`: those whose block starts in it."""
    chosen = [i for i, block in enumerate(blocks) if split.start <= block.start < split.end]
    if not chosen:
        return range(0)
    # Where the layout is odd, `contiguous` has made one block of all units.
    return range(count) if len(blocks) != count else range(chosen[0], chosen[-1] + 1)


def in_bounds(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Views on `batch` of at most `MAX_ROWS` rows and about `batch_bytes` bytes, one row at least.

    An empty batch yields nothing.
    """
    rows = batch.num_rows
    step = rows_within(batch_bytes, batch.nbytes, rows)
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def rows_within(batch_bytes: int, size: int, rows: int) -> int:
    """Return how many rows of `rows` rows with `size` bytes in all make a batch."""
    width = max(1, size // max(1, rows))
    return max(1, min(MAX_ROWS, batch_bytes // width))


@contextmanager
def reading(file: FileVersion, kind: str) -> Iterator[None]:
    """Turn what a decoder raises into the error a user sees; `kind` is what the file should be."""
    try:
        with naming(file):
            yield
    except SplitReadError:
        raise
    except Misfit as misfit:
        raise misfit.in_file(file.path) from None
    except pa.ArrowException as err:
        # Dictionaries of UUIDs, for one, have another storage type than pyarrow lets them have.
        if not (isinstance(err, pa.ArrowNotImplementedError) or "storage type" in str(err)):
            raise malformed(file, kind, first_line(err)) from err
        raise SchemaMismatchError(
            f"a type in the {kind} is not supported",
            file.path,
            first_line(err),
            "types that pyarrow can read",
            "Leave the column out of .schema(...), or have it written with another type.",
        ) from err
    except UndecodedColumnError as err:
        remedy = (
            "Leave the column out of .schema(...), or have it written in another way. If no "
            "program reads it, the file is damaged: set ignoreCorruptFiles to skip and count it."
        )
        raise malformed(file, kind, first_line(err), remedy) from err
    # A damaged length lets a decoder ask for more memory than the machine has.
    except (OSError, ValueError, OverflowError, MemoryError, EOFError) as err:
        raise malformed(file, kind, first_line(err)) from err


def malformed(
    file: FileVersion, kind: str, problem: str, remedy: str = _REMEDY
) -> MalformedDataError:
    """Return the error for bytes that are not `kind`, with the file and its size named."""
    where = f"{file.path} ({file.size} bytes)"
    return MalformedDataError(f"not a readable {kind}", where, problem, f"a whole {kind}", remedy)


class UndecodedColumnError(ValueError):
    """A column that does not decode, while others may."""


@contextmanager
def opened(file: FileVersion, options: ReaderOptions) -> Iterator[pa.NativeFile]:
    """The stored bytes of one file version, for random access."""
    if file.size <= _AT_ONCE:
        # A decoder reads a small file in many small pieces: one read is cheaper.
        yield pa.BufferReader(SourceFile(file, options.storage_options).content())
        return
    with SourceFile(file, options.storage_options).native() as source:
        yield source


def _remedy(field: pa.Field, other: pa.DataType) -> str:
    """Say the hint with which both types are read, or how to do without one."""
    both = (field.type, other)
    scale = max((kind.scale for kind in both if pa.types.is_decimal(kind)), default=0)
    hints = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        f"decimal(38,{scale})": pa.decimal128(38, scale),
        "timestamp": pa.timestamp("us", "UTC"),
        "interval day to second": pa.duration("us"),
        "binary": pa.binary(),
    }
    if any(map(pa.types.is_fixed_size_binary, both)):
        # The 16 bytes of a UUID, for one, are no text.
        del hints["string"]
    for ddl, target in hints.items():
        if _are_read_as(both, target):
            hint = f"{quoted(field.name)} {ddl}"
            return f"Set its type: schemaHints='{hint}'; or leave it out of .schema(...)."
    return "Leave the column out of .schema(...), or read these files by a query of their own."


def _are_read_as(kinds: Iterable[pa.DataType], target: pa.DataType) -> bool:
    try:
        for kind in kinds:
            converter(kind, pa.field("", target), "", "UTC")
    # Arrow makes no empty array of runs of lists of some types.
    except (Misfit, pa.ArrowNotImplementedError):
        return False
    return True


class BlockFormat(FileFormat):
    """A format whose blocks are found in its metadata. Subclasses name it and do the two steps."""

    says_columns = True

    checks_text: ClassVar[bool] = False
    """True if `_batches` yields no text that is not UTF-8."""

    what: ClassVar[str] = ""
    """What a file of this format is called in errors."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        self._fitter = ColumnFitter(schema)

    def splittability(self, file: FileVersion) -> Splittability:
        """At block boundaries, in every file."""
        del file
        return Splittability.BLOCKS

    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """Return the blocks of `file`; see `FileFormat.blocks`."""
        with reading(file, self.what), self._opened(file) as source:
            return self._blocks(file, source)

    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the rows of the blocks that start in `split`; see `FileFormat.decode`."""
        with reading(split.file, self.what), self._opened(split.file) as source:
            row = self.passed_over = 0
            for batch in self._batches(split, source):
                for piece in self._written_out(batch):
                    fitted = self._fitter.fit(piece, split.file.path, row)
                    if not self.checks_text:
                        _refuse_other_encodings(fitted, split.file.path, row)
                    for part in in_bounds(fitted, self.options.batch_bytes):
                        self._check(part, split.file, row)
                        row += part.num_rows
                        yield Decoded(part, passed_over=self.passed_over)
                        self.passed_over = 0

    def _written_out(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the batch, in parts: written out, or in other types, all of it may be too large."""
        # Its types have to fit the schema even if there are no values.
        if batch.num_rows == 0:
            yield batch
            return
        step = rows_within(self.options.batch_bytes, expanded(batch), batch.num_rows)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)

    def _check(self, part: pa.RecordBatch, file: FileVersion, row: int) -> None:
        if part.num_rows == 1 and part.nbytes > self.options.max_record_bytes:
            size = f"{part.nbytes} bytes"
            raise too_long(file.path, f"row {row}", self.options, what="row", found=size)

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        with reading(file, f"{options.file_format} file"), opened(file, options) as source:
            schema = cls._schema_in(source)
        fields = []
        hinted = ColumnNames(".".join(path) for path, _ in parse_hints(options.schema_hints))
        # Before types are judged: a hint decides where Spark has no type, or files disagree.
        for field in with_hinted_types(pa.schema(list(schema)), options.schema_hints):
            try:
                is_hinted = field.name in hinted
                fields.append(field if is_hinted else fitted_field(field))
            except TypeError as err:
                raise SchemaMismatchError(
                    f"column {field.name!r} has a type that Spark does not support",
                    file.path,
                    str(err),
                    "a type that Spark supports",
                    _remedy(field, field.type),
                ) from None
        return pa.struct(fields)

    @classmethod
    @override
    def common_columns(
        cls, one: pa.DataType, other: pa.DataType, file: FileVersion, options: ReaderOptions
    ) -> pa.DataType:
        kind = merged(one, other, wider)
        if kind is not None:
            return kind
        earlier_types = {field.name: field.type for field in one}
        for field in other:
            before = earlier_types.get(field.name, field.type)
            if merged(before, field.type, wider) is None:
                raise SchemaMismatchError(
                    f"column {field.name!r} has incompatible types",
                    file.path,
                    str(field.type),
                    f"{before}, as in earlier files",
                    _remedy(field, before),
                )
        # Only a column that both have can keep `merged` from a type.
        raise AssertionError

    @classmethod
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        """Return the columns that a file says it has, in types of Arrow's."""
        raise NotImplementedError

    @override
    def first_row(self, split: FileSplit) -> int:
        return sum(block.rows for block in self.blocks(split.file) if block.start < split.start)

    @override
    def remainder(self, split: FileSplit, position: int) -> FileSplit:
        if not self.counts_rows:
            return super().remainder(split, position)
        rows = position
        for block in self._blocks_in(split):
            if rows < block.rows:
                read = (block.end - block.start) * rows // block.rows
                return FileSplit(split.file, block.start, split.end, rows, read)
            rows -= block.rows
        raise AssertionError(f"{split.split_id} has fewer rows")

    @override
    def position_of(self, split: FileSplit, remainder: FileSplit) -> int:
        blocks = self._blocks_in(split) if self.counts_rows else ()
        before = takewhile(lambda block: block.start < remainder.start, blocks)
        return sum(block.rows for block in before) + remainder.skip

    def _blocks_in(self, split: FileSplit) -> Iterator[Block]:
        """Yield the blocks that start in `split`."""
        return (b for b in self.blocks(split.file) if split.start <= b.start < split.end)

    @contextmanager
    def _opened(self, file: FileVersion) -> Iterator[pa.NativeFile]:
        if file.size == 0:
            raise malformed(file, self.what, "an empty file")
        with opened(file, self.options) as source:
            yield source

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        raise NotImplementedError

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        """Batches in the file's own types, not yet fitted."""
        raise NotImplementedError


def _refuse_other_encodings(batch: pa.RecordBatch, path: str, row: int) -> None:
    """Refuse text that is not UTF-8: a table with it could not be read by others."""
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if not holds(field.type, pa.types.is_string):
            continue
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as err:
            remedy = f"Read the column as bytes: {quoted(field.name)} binary in the schema."
            misfit = Misfit(field.name, first_line(err), "text in UTF-8", remedy)
            raise misfit.in_file(f"{path}, rows from {row}") from err


_NUMBER = 16


def expanded(batch: pa.RecordBatch) -> int:
    """Return bytes of a batch in which each value is stored by itself, at most."""
    return int(batch.nbytes) + sum(map(_beyond, batch.columns))


def longest_values(array: pa.Array) -> Iterator[int]:
    """Yield the length of the longest value of each dictionary in a column, however deep."""
    if pa.types.is_dictionary(array.type):
        yield _longest(array.dictionary)
    for child in _children(array):
        yield from longest_values(child)


def _beyond(array: pa.Array) -> int:
    """The same of a column, in addition to the bytes it has; the longest value counts for each."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return len(array) * _longest(array.dictionary)
    if pa.types.is_run_end_encoded(kind):
        return len(array) * _longest(array.values)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return len(array) * _longest(array)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        each = (array.values.nbytes + _beyond(array.values)) / max(1, len(array.values))
        return int(each * (pc.sum(array.sizes).as_py() or 0))
    return sum(map(_beyond, _children(array)))


def _children(array: pa.Array) -> list[pa.Array]:
    kind = array.type
    if pa.types.is_struct(kind):
        return [array.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [array.keys, array.items]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [array.values]
    return []


def _longest(values: pa.Array) -> int:
    kind = values.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # A view has 16 bytes, of which the first four are the length.
        views = np.frombuffer(values.buffers()[1], np.int32)[::4][values.offset :][: len(values)]
        return int(views.max(initial=0))
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if is_text or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return pc.max(pc.binary_length(values)).as_py() or 0
    return _NUMBER if pa.types.is_primitive(kind) else int(values.nbytes)

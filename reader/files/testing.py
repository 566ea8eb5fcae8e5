"""Reads real files the way a task does, and the suite of tests that every format has to pass.

A new format inherits `FileFormatSuite` in a test module of its own, writes files without its own
code, and is held to what Sluice promises of any format. Needs pytest to run it, not to import it.
"""

from __future__ import annotations

import bz2
import gzip
import os
import random
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import PartBudget
from ...checkpoint_meta.files.file_split import FileSplit, FileVersion
from ...errors import FileChangedError, FileVanishedError, SluiceError, SplitReadError
from ..api import (
    ReaderContext,
    RemainingBudget,
    Report,
    SplitFinished,
    SplitReturned,
    SplitUnfinished,
)
from .formats.api import FileFormat, Splittability
from .formats.registry import make_format
from .io.codecs import codec_of
from .options import Compression, ReaderOptions
from .reader import FileSplitReader

__all__ = ["CONTEXT", "FileFormatSuite", "cut", "read", "read_rows", "version", "whole"]

Row: TypeAlias = dict[str, Any]
CONTEXT = ReaderContext(checkpoint_id=1, reader=0, attempt=0)
MAY_RETURN = ReaderContext(1, 0, 0, may_return=True)


def version(path: Path) -> FileVersion:
    """The file as discovery would see it."""
    status = os.stat(path)
    return FileVersion(str(path), status.st_size, status.st_mtime_ns // 1000)


def whole(path: Path) -> FileSplit:
    """One split for all of a file."""
    file = version(path)
    return FileSplit(file, 0, file.size)


def cut(path: Path, boundaries: Iterable[int]) -> list[FileSplit]:
    """Splits of a file at the given bytes."""
    file = version(path)
    points = sorted({0, file.size, *(b for b in boundaries if 0 < b < file.size)})
    return [FileSplit(file, a, b) for a, b in pairwise(points)]


def read(
    splits: Sequence[FileSplit], schema: pa.Schema, context: ReaderContext = CONTEXT, **options: Any
) -> tuple[pa.Table, list[Report]]:
    """Rows and reports of `splits`; every batch is checked to equal the schema."""
    reader = FileSplitReader(schema, ReaderOptions(**options), context)
    batches, reports = [], []
    for item in reader.read(splits):
        if isinstance(item, pa.RecordBatch):
            assert item.schema.equals(schema), (item.schema, schema)
            # A wrong offset would otherwise show only where Spark reads it.
            item.validate(full=True)
            batches.append(item)
        else:
            reports.append(item)
    return pa.Table.from_batches(batches, schema), reports


def read_rows(paths: Sequence[Path], schema: pa.Schema, **options: Any) -> list[Row]:
    """Rows of whole files as Python values."""
    rows: list[Row] = read([whole(path) for path in paths], schema, **options)[0].to_pylist()
    return rows


class FileFormatSuite(ABC):
    """The promises of every format: cuts, damage, types, packing, and memory flat over the size.

    A subclass whose name begins with `Test` names the format and writes its files; pytest does the
    rest. What a format cannot do at all is said by the attributes, each with its reason next to it.
    """

    options: ClassVar[Mapping[str, Any]]
    """The options of `ReaderOptions`, `file_format` among them."""

    schema: ClassVar[pa.Schema]
    """The columns of `rows`."""

    suffix: ClassVar[str] = ""
    """How names of files end."""

    condition: ClassVar[tuple[str, Callable[[Row], bool]] | None] = None
    """A `filter` that some of the rows fulfil, and the same in Python."""

    selects_by_name: ClassVar[bool] = True
    """False where columns go by position, or there is only one."""

    notices_its_end: ClassVar[bool] = False
    """True if a file that was cut short is an error at every cut."""

    takes_empty_files: ClassVar[bool] = True
    """False if a file without a byte is no file of this format."""

    memory_is_flat: ClassVar[bool] = True
    """False if one row or one block is as large as the file."""

    @abstractmethod
    def rows(self, count: int) -> list[Row]:
        """So many rows that differ from each other, with nulls where there are any."""

    @abstractmethod
    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write a file as others would; with nothing of the code under test."""

    def extremes(self) -> list[Row]:
        """Rows with the values at the ends of every type in `schema`."""
        return []

    def spoiled(self, data: bytes) -> bytes | None:
        """The bytes of a file so damaged that it has to be noticed; None if all bytes are good."""
        return data[: 2 * len(data) // 3]

    # Helpers --------------------------------------------------------------------------------

    def _file(self, folder: Path, rows: Sequence[Row], name: str = "file") -> Path:
        path = folder / f"{name}{self.suffix}"
        self.write(path, rows)
        return path

    def _format(self) -> FileFormat:
        return make_format(ReaderOptions(**self.options), self.schema)

    def _read(self, splits: Sequence[FileSplit]) -> list[Row]:
        rows: list[Row] = read(splits, self.schema, **self.options)[0].to_pylist()
        return rows

    def _cut(self, path: Path, boundaries: Iterable[int]) -> list[FileSplit]:
        """Splits at these bytes, as far as the format may be cut there."""
        file_format, file = self._format(), version(path)
        where = file_format.splittability(file)
        if where is Splittability.WHOLE:
            return [whole(path)]
        if where is Splittability.BLOCKS:
            starts = [block.start for block in file_format.blocks(file)]
            boundaries = [starts[boundary % len(starts)] for boundary in boundaries]
        return cut(path, boundaries)

    # Cuts -----------------------------------------------------------------------------------

    def test_a_cut_at_any_byte_gives_the_rows_of_the_whole_file(self, tmp_path: Path) -> None:
        """At each boundary of two splits, a row is in exactly one of them, and in its order."""
        rows = self.rows(9)
        path = self._file(tmp_path, rows)
        size = path.stat().st_size
        everywhere = range(1, size)
        # With a seed, so that a failure comes again.
        chosen = everywhere if size <= 400 else random.Random(size).sample(everywhere, 120)
        for splits in {tuple(self._cut(path, [at])) for at in chosen}:
            assert self._read(splits) == rows, f"cut at byte {splits[-1].start} of {size}"

    def test_many_cuts_give_the_rows_and_a_report_for_each_split(self, tmp_path: Path) -> None:
        """However many splits a file has, each is reported once, with the rows it gave."""
        rows = self.rows(60)
        path = self._file(tmp_path, rows)
        chance = random.Random(7)
        for _ in range(10):
            boundaries = chance.sample(range(1, path.stat().st_size), 6)
            splits = self._cut(path, boundaries)
            table, reports = read(splits, self.schema, **self.options)
            assert table.to_pylist() == rows, f"cut at {sorted(boundaries)}"
            finished = [r for r in reports if isinstance(r, SplitFinished)]
            assert [r.split_id for r in finished] == [s.split_id for s in splits]
            assert sum(r.rows for r in finished) == len(rows)

    def test_blocks_cover_the_file_and_hold_the_rows_they_declare(self, tmp_path: Path) -> None:
        """Where a file is cut at blocks, they leave no gap and their counts are true."""
        rows = self.rows(60)
        path = self._file(tmp_path, rows)
        file_format, file = self._format(), version(path)
        if (
            file_format.splittability(file) is not Splittability.BLOCKS
            and not file_format.counts_rows
        ):
            return
        blocks = file_format.blocks(file)
        assert (blocks[0].start, blocks[-1].end) == (0, file.size)
        assert all(one.end == other.start for one, other in pairwise(blocks))
        rows_read = [self._read([FileSplit(file, b.start, b.end)]) for b in blocks]
        assert [row for part in rows_read for row in part] == rows
        for block, part in zip(blocks, rows_read, strict=True):
            assert block.rows == len(part) or (block.rows == -1 and not file_format.counts_rows)

    def test_rows_are_numbered_on_behind_a_cut(self, tmp_path: Path) -> None:
        """`_metadata.row_index` counts through the file, in any split."""
        rows = self.rows(20)
        path = self._file(tmp_path, rows)
        schema = self.schema.append(pa.field("_metadata", pa.struct([("row_index", pa.int64())])))
        table, _ = read(self._cut(path, [path.stat().st_size // 2]), schema, **self.options)
        numbers = [row["_metadata"]["row_index"] for row in table.to_pylist()]
        assert numbers == list(range(len(rows)))

    # Values ---------------------------------------------------------------------------------

    def test_values_at_the_ends_of_every_type_come_back(self, tmp_path: Path) -> None:
        """What was written is read, to the last bit."""
        rows = self.extremes() or self.rows(5)
        assert self._read([whole(self._file(tmp_path, rows))]) == rows

    def test_fewer_columns_in_another_order_are_found_by_name(self, tmp_path: Path) -> None:
        """What the schema leaves out is left out."""
        if not self.selects_by_name:
            return
        rows = self.rows(30)
        path = self._file(tmp_path, rows)
        fields = [self.schema.field(i) for i in range(len(self.schema) - 1, 0, -1)]
        rows_read = read_rows([path], pa.schema(fields), **self.options)
        assert rows_read == [{f.name: row[f.name] for f in fields} for row in rows]

    def test_a_filter_leaves_the_rows_that_fulfil_it(self, tmp_path: Path) -> None:
        """In one file, in its splits, and in many small files at once."""
        if self.condition is None:
            return
        text, fulfils = self.condition
        rows = self.rows(50)
        wanted = [row for row in rows if fulfils(row)]
        assert 0 < len(wanted) < len(rows)
        path = self._file(tmp_path, rows)
        options = {**self.options, "filter": text}
        splits = self._cut(path, [path.stat().st_size // 3])
        assert read(splits, self.schema, **options)[0].to_pylist() == wanted
        assert read_rows([path] * 3, self.schema, **options) == wanted * 3

    # Limits and compression -----------------------------------------------------------------

    def test_a_limit_on_rows_ends_a_batch_within_a_file(self, tmp_path: Path) -> None:
        """The next batch goes on behind the last row; no row is lost or comes twice."""
        rows = self.rows(40)
        splits, rows_read = [whole(self._file(tmp_path, rows))], list[Row]()
        while splits and len(rows_read) <= len(rows):
            context = replace(CONTEXT, budget=RemainingBudget(PartBudget(rows=7)))
            table, reports = read(splits, self.schema, context, **self.options)
            assert 0 < table.num_rows <= 7
            rows_read += table.to_pylist()
            splits = [one.remainder for one in reports if isinstance(one, SplitUnfinished)]
        assert rows_read == rows

    def test_compressed_lines_are_the_same_lines(self, tmp_path: Path) -> None:
        """By the suffix, and cut where the codec can be entered."""
        rows, file_format = self.rows(60), self._format()
        path = self._file(tmp_path, rows)
        codec = codec_of(str(path), file_format.options.compression)
        if not file_format.is_lines or codec is not Compression.NONE:
            return
        for suffix, compress in ((".gz", gzip.compress), (".bz2", bz2.compress)):
            compressed = path.with_name(path.name + suffix)
            compressed.write_bytes(compress(path.read_bytes()))
            middle = compressed.stat().st_size // 2
            assert self._read([whole(compressed)]) == rows
            assert self._read(self._cut(compressed, [middle])) == rows

    # Small files ----------------------------------------------------------------------------

    def test_small_files_together_give_what_each_gives_alone(self, tmp_path: Path) -> None:
        """One parse for many files changes no row and no figure of any of them."""
        paths = [self._file(tmp_path, self.rows(1 + n % 3), f"{n}") for n in range(12)]
        alone = [read([whole(path)], self.schema, **self.options) for path in paths]
        table, reports = read([whole(path) for path in paths], self.schema, **self.options)
        assert table.to_pylist() == [row for t, _ in alone for row in t.to_pylist()]
        for (_, [expected]), report in zip(alone, reports, strict=True):
            assert isinstance(report, SplitFinished)
            assert isinstance(expected, SplitFinished)
            assert (report.split_id, report.rows) == (expected.split_id, expected.rows)

    def test_the_one_bad_file_among_small_ones_is_named(self, tmp_path: Path) -> None:
        """The error, the split that goes back and the one that is skipped are that file's."""
        paths = [self._file(tmp_path, self.rows(4), f"{n}") for n in range(6)]
        spoiled = self.spoiled(paths[3].read_bytes())
        if spoiled is None:
            return
        paths[3].write_bytes(spoiled)
        splits = [whole(path) for path in paths]
        error = _error_of(lambda: read(splits, self.schema, **self.options))
        assert error is not None
        assert str(paths[3]) in str(error)
        table, reports = read(splits, self.schema, MAY_RETURN, **self.options)
        assert [isinstance(r, SplitReturned) for r in reports] == [n == 3 for n in range(6)]
        assert table.to_pylist() == self.rows(4) * 5
        _, reports = read(splits, self.schema, **self.options, ignore_corrupt_files=True)
        skipped = [bool(r.skipped) for r in reports if isinstance(r, SplitFinished)]
        assert skipped == [n == 3 for n in range(6)]

    # Damage ---------------------------------------------------------------------------------

    def test_a_file_cut_short_gives_an_error_or_its_first_rows(self, tmp_path: Path) -> None:
        """The error names the file; rows that come are those that are there."""
        rows = self.rows(25)
        path = self._file(tmp_path, rows)
        data = path.read_bytes()
        for at in sorted(random.Random(3).sample(range(1, len(data)), min(30, len(data) - 1))):
            path.write_bytes(data[:at])
            rows_read = self._rows_or_error(path)
            if isinstance(rows_read, list):
                assert not self.notices_its_end, f"cut to {at} bytes of {len(data)}"
                assert rows_read[:-1] == rows[: len(rows_read) - 1], f"cut to {at} bytes"

    def test_changed_bytes_give_an_error_that_names_the_file_or_rows(self, tmp_path: Path) -> None:
        """No crash, no other error; and no row too few where metadata counts them."""
        path = self._file(tmp_path, self.rows(40))
        data, chance = path.read_bytes(), random.Random(5)
        for _ in range(40):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            try:
                rows = read([whole(path)], self.schema, **self.options)[0].num_rows
            except SluiceError as error:
                assert str(path) in str(error), f"does not name the file: {error}"
            else:
                assert rows == 40 or not self._format().counts_rows

    def _rows_or_error(self, path: Path) -> list[Row] | SluiceError:
        try:
            return self._read([whole(path)])
        except SluiceError as error:
            assert str(path) in str(error), f"does not name the file: {error}"
            return error

    def test_an_empty_file_has_no_rows_or_is_named(self, tmp_path: Path) -> None:
        """A file without a byte is judged, not passed over."""
        path = tmp_path / f"empty{self.suffix}"
        path.touch()
        rows_read = self._rows_or_error(path)
        assert isinstance(rows_read, list) == self.takes_empty_files

    def test_a_file_that_is_gone_or_another_is_named(self, tmp_path: Path) -> None:
        """A version that is not the one discovered is never read in parts."""
        path = self._file(tmp_path, self.rows(20))
        splits = cut(path, [path.stat().st_size // 2])
        path.write_bytes(path.read_bytes() + b"\n")
        error = _error_of(lambda: self._read(splits))
        assert isinstance(error, FileChangedError)
        assert str(path) in str(error)
        path.unlink()
        error = _error_of(lambda: self._read(splits))
        assert isinstance(error, FileVanishedError)
        assert str(path) in str(error)

    # Memory ---------------------------------------------------------------------------------

    def test_memory_does_not_follow_the_size_of_the_file(self, tmp_path: Path) -> None:
        """A reader of six times as much holds no more; batches keep to `batchBytes`."""
        if not self.memory_is_flat:
            return
        small = self._file(tmp_path, self.rows(1_500), "small")
        large = self._file(tmp_path, self.rows(9_000), "large")
        options = {**self.options, "batch_bytes": 64 * 1024}
        held = _process_alone().submit(_most_held, [small, large], self.schema, options)
        before, peak = held.result()
        assert peak < 1.5 * before + 512 * 1024, f"{before} bytes held, and {peak} of six times it"


@cache
def _process_alone() -> ProcessPoolExecutor:
    """A process for measuring; in this one, allocations of other threads would be counted, too."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def _most_held(paths: Sequence[Path], schema: pa.Schema, options: Mapping[str, Any]) -> list[int]:
    """The most that a reading of each path holds in Python and in Arrow, seen at each batch."""
    _held(paths[0], schema, options)  # Imports, and compiles: not to be traced.
    held = []
    for path in paths:
        tracemalloc.start()
        most = _held(path, schema, options)
        held.append(most + tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return held


def _held(path: Path, schema: pa.Schema, options: Mapping[str, Any]) -> int:
    reader = FileSplitReader(schema, ReaderOptions(**options), CONTEXT)
    base, most = pa.total_allocated_bytes(), 0
    for item in reader.read([whole(path)]):
        if isinstance(item, pa.RecordBatch):
            assert item.nbytes < 4 * 64 * 1024
        most = max(most, pa.total_allocated_bytes() - base)
    return most


def _error_of(call: Callable[[], Any]) -> SplitReadError | None:
    try:
        call()
    except SplitReadError as error:
        return error
    return None

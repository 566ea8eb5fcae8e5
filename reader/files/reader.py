"""Reads the splits of one assignment: from bytes in files to batches in Spark's schema.

The order of things for each split: open and check the version, decode, add the columns that come
from the file's place, filter, fit to the schema. Opening and parsing cost far more than the bytes
of a tiny file, so runs of small files that one parse can serve are concatenated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.files.file_split import (
    RETRACTS,
    FileSplit,
    FileVersion,
    growing_mark,
)
from ...errors import (
    FileChangedError,
    FileVanishedError,
    MalformedDataError,
    OptionError,
    SluiceError,
    SplitReadError,
    first_line,
)
from ..api import (
    UNKNOWN_ROWS,
    LeftOut,
    PartEnded,
    ReaderContext,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitUnfinished,
)
from .evolution.new_columns import NewColumnsSeen
from .formats.api import Decoded, FileFormat, FormatContext, Parsed
from .formats.archives import class_of, format_of
from .formats.records.record_format import RecordFormat, asks_row_index, columns_made_here
from .formats.registry import make_format
from .io.cut_places import CutPlaces
from .io.file_kinds import another_kind, recognised, refuse_share, refuse_unfit
from .io.file_version import DirectoryMark
from .io.memory_bounds import Spool
from .io.source_file import SourceFile, contents, newer_generation, paced
from .left_out import bad_file, left_out, report_replaced
from .options import ReaderOptions
from .options.schema_options import EvolutionMode
from .options.values import MissingFiles
from .packing import merged, runs
from .part_end import SplitEnd, Step, with_sample
from .path_columns import FileColumns, FilePruning, with_file_column
from .row_filter import Predicate
from .schemas.column_watch import ColumnWatch
from .values.column_fitter import ColumnFitter

Item: TypeAlias = pa.RecordBatch | Report

_REQUESTS = 20
"""Under a limit on seconds: requests that a reader has time for, so that it ends soon after it."""


@dataclass(frozen=True)
class _ReadPlan:
    """A plan for reading files with the same columns in their paths."""

    data: pa.Schema
    """The columns that are in the files."""

    file_format: FileFormat
    rows: Predicate
    """What the filter says of them."""


class FileSplitReader(SplitReader[FileSplit]):
    """Reads file splits in order; every batch equals `schema` exactly."""

    def __init__(  # noqa: PLR0913 - one keyword for each way in which sources differ
        self,
        schema: pa.Schema,
        options: ReaderOptions,
        context: ReaderContext,
        *,
        only_assigned_versions: bool = False,
        replaces_rows: bool = False,
        schema_is_inferred: bool = False,
        cut_places: CutPlaces | None = None,
        goes_on: bool = False,
        file_column: str = "",
    ) -> None:
        """`schema` is the one Spark expects: timestamps in microseconds, no large types.

        With `only_assigned_versions` a file that was replaced is not read as it is now: the
        enumerator learns of the version that is there, and hands it out once. The two arguments
        after it are for formats. With `goes_on` a new column says what is left of its split. The
        batches have the column `file_column` in addition, with the key of each row's file.
        """
        if context.must_finish and options.mode_of_evolution.stops:
            # What has been acknowledged once is read as it was then.
            options = options.model_copy(update={"schema_evolution_mode": EvolutionMode.NONE})
        if (seconds := context.budget.seconds) is not None:
            storage = paced(options.storage_options, seconds / _REQUESTS)
            options = options.model_copy(update={"storage_options": storage})
        self._known = FormatContext(
            frozenset(schema.names),
            schema_is_inferred,
            cut_places,
            lambda: context.budget.records_left,
            lambda: context.budget.files,
        )
        self._made_here = columns_made_here(schema, file_column)
        self._schema = schema
        self._watch = ColumnWatch(schema, options, self._known)
        self._options = options
        self._context = context
        self._only_assigned_versions, self._replaces_rows = only_assigned_versions, replaces_rows
        whole = with_file_column(schema, file_column)
        self._columns = FileColumns(whole, options, file_column)
        self._fitter = ColumnFitter(whole, options.time_zone or "UTC")
        self._pruning = FilePruning(schema, options)
        self._plans: dict[frozenset[str], _ReadPlan] = {}
        self._budget = context.budget
        self._goes_on = goes_on
        # Of the split that was read last.
        self._filtered_rows = 0
        self._end: SplitEnd | None = None
        self._remainder: FileSplit | None = None

    @override
    def read(self, splits: Sequence[FileSplit]) -> Iterator[Item]:
        return merged(self._read(splits), self._options.batch_bytes)

    def _read(self, splits: Sequence[FileSplit]) -> Iterator[Item]:
        # A replay must return the same rows again: its split cannot be returned any more.
        may_return = self._context.may_return and not self._context.must_finish
        read_alone = self._read_buffered if may_return else self._decoded
        if gone := [split for split in splits if split.replaces == RETRACTS]:
            yield from (SplitFinished(split.split_id, 0) for split in gone)
            splits = [split for split in splits if split.replaces != RETRACTS]
        for run in runs(splits, self._pack_key, self._budget):
            packed, alone = self._packed(run) if len(run) > 1 else None, run
            if packed is not None:
                yield from packed
                # Those that do not fit the budget as wholes.
                alone = run[sum(isinstance(item, SplitFinished) for item in packed) :]
            for split in alone:
                if self._budget.is_spent or self._budget.files == 0:
                    yield PartEnded(split.split_id)
                    return
                yield from read_alone(split)

    def _pack_key(self, split: FileSplit) -> object | None:
        # What an earlier attempt has read in part is read in part again.
        if split.split_id in self._context.until:
            return None
        try:
            path_columns = self._columns.partition(split.file.path)
        # The file is read by itself then, where the same error can be reported or skipped.
        except SplitReadError:
            return None
        names = frozenset(path_columns)
        file_format = format_of(split.file, self._way(names).file_format)
        return names if file_format.may_pack(split.file) else None

    def _plan_for(self, split: FileSplit) -> _ReadPlan:
        return self._way(frozenset(self._columns.partition(split.file.path)))

    def _way(self, path_columns: frozenset[str]) -> _ReadPlan:
        if path_columns not in self._plans:
            # Files as rows have a column called path, which is no partition.
            made_here = path_columns | self._made_here
            data = pa.schema([f for f in self._schema if f.name not in made_here])
            self._plans[path_columns] = _ReadPlan(
                data,
                make_format(self._options, data, self._known),
                Predicate.of_options(self._options, data),
            )
        return self._plans[path_columns]

    def _packed(self, run: Sequence[FileSplit]) -> list[Item] | None:
        """All of a run from one parse; None if it has to be read file by file to know more."""
        began = time.perf_counter()
        try:
            # Before the files are opened: what the path rules out costs no request.
            kept = [split for split in run if self._pruning.may_match(split.file)]
            if not kept:
                return [_not_opened(split) for split in run]
            way = self._plan_for(kept[0])
            storage = self._options.storage_options
            bodies = contents([split.file for split in kept], storage)
            for split, body in zip(kept, bodies, strict=True):
                if wrong := another_kind(body, split.file, self._options):
                    raise wrong
            parsed = way.file_format.decode_packed([split.file for split in kept], bodies)
            batch, rows = self._placed(parsed, kept, way.rows)
            decoded = parsed.rows_of or [parsed.batch.num_rows]
            fitting = self._fitting(rows)
            if fitting < len(kept):
                # Nothing of a file that is read by itself afterwards.
                run, kept, rows = run[: run.index(kept[fitting])], kept[:fitting], rows[:fitting]
                batch = batch.slice(0, sum(rows))
                paths = {split.file.path for split in kept}
                parsed.bad = [record for record in parsed.bad if record.path in paths]
        except (SplitReadError, pa.ArrowException, ValueError, OverflowError):
            # Nothing has been yielded: the single files will name the one at fault.
            return None
        seconds = time.perf_counter() - began
        self._budget.begin_file(len(run))
        self._budget.take(sum(rows), sum(split.length for split in run))
        dropped = (parsed.dropped_of or [0] * len(kept))[: len(kept)]
        # By identity, since a run may hold the same file twice.
        counts = {
            id(split): (count, bad, all_rows - count)
            for split, count, bad, all_rows in zip(kept, rows, dropped, decoded, strict=False)
        }
        share = seconds / max(1, sum(split.length for split in run))
        reports: list[Item] = []
        for split in run:
            if id(split) not in counts:
                reports.append(_not_opened(split))
                continue
            count, bad, filtered = counts[id(split)]
            seconds, length = share * split.length, split.length
            done = SplitFinished(split.split_id, count, length, seconds, bad, "", filtered)
            reports.append(done)
        return [*left_out(parsed.bad), batch, *reports]

    def _fitting(self, rows: Sequence[int]) -> int:
        """Return how many files of a run fit the budget, from the first one on."""
        if self._budget.has_room(sum(rows)):
            return len(rows)
        return sum(map(self._budget.has_room, accumulate(rows)))

    def _placed(
        self, parsed: Parsed, splits: Sequence[FileSplit], predicate: Predicate
    ) -> tuple[pa.RecordBatch, list[int]]:
        rows = parsed.rows_of or [parsed.batch.num_rows]
        batch = self._columns.add(parsed.batch, splits, rows, 0)
        if predicate:
            # The filter drops rows of all files at once; this says how many each file keeps.
            origin = pa.array(np.repeat(np.arange(len(rows)), rows))
            kept = predicate.keep(batch.append_column("_origin", origin))
            rows = np.bincount(kept.column("_origin").to_numpy(), minlength=len(rows)).tolist()
            batch = kept.drop_columns(["_origin"])
        return self._fitter.fit(batch, splits[0].file.path), rows

    def _read_buffered(self, split: FileSplit) -> Iterator[Item]:
        """No row before the whole split is known to be good, so that it can be returned."""
        most = 4 * self._options.batch_bytes
        with closing(Spool(most)) as spool, closing(Spool(most)) as left_out:
            reports = list[Report]()
            try:
                for item in self._decoded(split):
                    if isinstance(item, pa.RecordBatch):
                        spool.put(item)
                    # At most one row says that a file is bad, so that one waits with the reports.
                    elif isinstance(item, LeftOut) and item.kind == "bad_records":
                        left_out.put(item.batch)
                    else:
                        reports.append(item)
            except SplitReadError as err:
                yield SplitReturned(split.split_id, str(err))
                return
            except NewColumnsSeen as seen:
                seen.begun = None
                raise
            yield from spool.batches()
            for batch in left_out.batches():
                yield LeftOut("bad_records", batch)
            # A report says that the rows of a split are out, so it comes after them.
            yield from reports

    def _decoded(self, split: FileSplit) -> Iterator[Item]:
        rows, dropped, seconds, skipped = 0, 0, 0.0, ""
        # A later part of a file cannot say that no record of the file fits.
        fits = self._options.accept_unrelated_files or split.start > 0 or split.skip > 0
        present: FileSplit | None = None
        steps = self._batches(split)
        while True:
            began = time.perf_counter()
            try:
                step = next(steps, None)
            except FileChangedError as err:
                # With `present` this is the second change: a file that never rests fails the task.
                present = self._as_it_is_now(split, err, begun=bool(rows or dropped or present))
                if self._only_assigned_versions:
                    yield from report_replaced(present.file, split, rows)
                    return
                steps = self._batches(present)
                continue
            except (FileVanishedError, MalformedDataError) as err:
                step, skipped = None, self._ignored(err, (present or split).file)
            except NewColumnsSeen as seen:
                if self._goes_on and self._end is not None:
                    self._remainder = self._end.break_off()
                    self._filtered_rows = self._end.filtered_rows
                    done = SplitFinished(split.split_id, rows, split.length, seconds, dropped)
                    seen.begun = self._ended(done)
                raise
            seconds += time.perf_counter() - began
            if step is None:
                break
            batch, decoded = step
            rows += self._rows_in(batch)
            dropped += decoded.dropped_records
            fits = fits or bool(decoded.batch.num_rows)
            refuse_unfit((present or split).file, 0 if fits else dropped)
            yield from left_out(decoded.bad)
            if batch.num_rows:
                yield batch
        read = present or split  # A file that was replaced may be longer than its split says.
        refuse_share(read.file, rows, dropped, self._options.max_bad_record_share)
        if skipped and self._options.bad_records_path:
            yield bad_file(read.file, skipped)
        done = SplitFinished(split.split_id, rows, read.length, seconds, dropped, skipped)
        yield done if skipped else self._ended(done)

    def _ended(self, done: SplitFinished) -> SplitFinished | SplitUnfinished[FileSplit]:
        """The report on the split that was read last: `done`, unless something is left of it."""
        left, filtered = self._remainder, self._filtered_rows
        if left is None:
            return replace(done, filtered_rows=filtered)
        read, dropped = max(0, done.bytes - left.length), done.dropped_records
        return SplitUnfinished(
            done.split_id, done.rows, left, read, done.seconds, dropped, filtered
        )

    def _rows_in(self, batch: pa.RecordBatch) -> int:
        """The rows that a batch counts for."""
        return int(batch.num_rows)

    def _ignored(self, error: FileVanishedError | MalformedDataError, file: FileVersion) -> str:
        """Return why what is left of the file is skipped; raises if it may not be."""
        if isinstance(error, FileVanishedError):
            missing = self._options.ignore_missing_files
            if missing is MissingFiles.SKIP or isinstance(error, DirectoryMark):
                return str(error)
            if missing is MissingFiles.SKIP_IF_REPLACED:
                newer = newer_generation(file, self._options.storage_options)
                if newer:
                    return f"replaced: its directory was written again, with {newer}; {error}"
            raise error
        # An archive is what it should be: its error names the member.
        is_archive = class_of(file, self._options).holds_members
        of_another_kind = None if is_archive else recognised(file, self._options)
        if self._options.ignore_corrupt_files:
            return str(of_another_kind or error)
        if of_another_kind:
            raise of_another_kind from error
        raise error

    def _as_it_is_now(self, split: FileSplit, error: FileChangedError, *, begun: bool) -> FileSplit:
        """A whole file that was repaired or replaced before its first row was taken.

        A part of a file would not fit the other parts any more, nor would a new version fit rows
        that an earlier attempt has acknowledged, or the end up to which a growing file is known.
        """
        acknowledged = self._context.must_finish and not self._only_assigned_versions
        grows = growing_mark(split.file.etag) is not None
        may_be_part = self._replaces_rows and not self._context.must_finish
        if acknowledged or grows or not (may_be_part or (split.is_whole_file and not begun)):
            raise error
        file = SourceFile(split.file, self._options.storage_options).present_version()
        return FileSplit(file, 0, file.size)

    def _batches(self, split: FileSplit) -> Iterator[Step]:
        path = split.file.path
        self._end = self._remainder = None
        self._filtered_rows = 0
        if not self._pruning.may_match(split.file):
            self._filtered_rows = UNKNOWN_ROWS
            return
        until = self._context.until.get(split.split_id)
        split = with_sample(split, until, may_end=self._budget.is_limited or self._goes_on)
        way, row = self._plan_for(split), 0

        def finish(decoded: Decoded, row: int) -> pa.RecordBatch:
            rows = [decoded.batch.num_rows]
            batch = self._columns.add(decoded.batch, [split], rows, row, decoded.members)
            return self._fitter.fit(way.rows.keep(batch), path)

        try:
            watched = partial(self._watch.format_for, plain=way.file_format, data=way.data)
            file_format = format_of(split.file, way.file_format, watched)
            _refuse_part(split, file_format)
            if not file_format.holds_members:
                self._budget.begin_file()
            if (split.start or split.skip) and asks_row_index(self._schema):
                # Files whose rows are numbered are not cut, but a split may come from elsewhere.
                row = file_format.first_row(split)
            end = self._end = SplitEnd(split, file_format, self._budget, until)
            yield from end.steps(file_format.decode(split), row, finish)
            self._remainder, self._filtered_rows = end.remainder, end.filtered_rows
            if file_format.holds_members and way.file_format.counts_rows and way.rows:
                # What is left undecoded of members is not counted.
                self._filtered_rows = UNKNOWN_ROWS
        except SluiceError:
            raise
        # Decoders recur once a level, so a file nested by the thousand ends in a `RecursionError`.
        except (pa.ArrowException, ValueError, OverflowError, RecursionError) as err:
            raise MalformedDataError(
                "file cannot be decoded",
                f"{path}, bytes {split.start} to {split.end}",
                first_line(err),
                f"{self._options.file_format} data that fits the schema",
                "Repair the file, or set ignoreCorruptFiles to skip and count it.",
            ) from err


def _refuse_part(split: FileSplit, file_format: FileFormat) -> None:
    """Refuse a part of a file that was cut under other options: its rows would be lost."""
    if split.start and isinstance(file_format, RecordFormat) and file_format.spans_lines:
        name = "wholetext" if file_format.options.wholetext else "multiLine"
        raise OptionError(
            f"{name}: a file that was cut into parts cannot be read so",
            split.file.path,
            f"bytes {split.start} to {split.end}, cut without {name}",
            "a whole file",
            f"Start without {name} until the file is read to its end, then set it.",
        )


def _not_opened(split: FileSplit) -> SplitFinished:
    """The report on a file whose path says that no row passes the filter."""
    return SplitFinished(split.split_id, 0, split.length, filtered_rows=UNKNOWN_ROWS)

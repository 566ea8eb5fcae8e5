"""The built-in source, files of a tree or bucket; and how any source is found by its name.

Composes the enumerator's and the reader's parts, which do not know each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.aligned_positions import AlignedPositions
from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ...checkpoint_meta.documents.layout import CLEANED
from ...checkpoint_meta.files.file_split import FIGURES, FileSplit, FileVersion, GrowingMark
from ...checkpoint_meta.storage.urls import loaded_paths
from ...checkpoint_meta.stores.open_store import open_store
from ...enumerator.api import SplitEnumerator, SplitEnumeratorContext
from ...enumerator.files.aligned_batches import Alignment
from ...enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from ...enumerator.files.cleaning.source_cleanup import SourceCleanup
from ...enumerator.files.cutting import FileBlock, SplitCutter, SplitSpreader
from ...enumerator.files.discovery.selection.name_patterns import ReadyMarker
from ...enumerator.files.enumerator import FileSplitEnumerator
from ...enumerator.files.file_policy import FilePolicy
from ...enumerator.files.ledger.file_state import FileState, fold
from ...enumerator.files.ledger.known_contents import digests
from ...enumerator.files.ledger.ledger import LedgerPolicy
from ...enumerator.files.ledger.new_files import OnOverwrite
from ...enumerator.files.ledger.statistics_times import StatisticsTimes
from ...enumerator.files.ledger_source import FilesSource
from ...enumerator.large_state import StateDocument
from ...enumerator.source_api import OpenState, SourceCleaner
from ...errors import FileChangedError, OptionError, SplitReadError
from ...reader.api import (
    ReaderContext,
    ReaderEvent,
    RemainingBudget,
    Report,
    SplitFinished,
    SplitReader,
    SplitUnfinished,
)
from ...reader.files.formats.api import Block, FileFormat, FormatContext, Splittability
from ...reader.files.formats.registry import load
from ..options.model import SluiceOptions
from ..options.validation import archive_of
from .api import Source
from .discovery import make_discovery, order_of, versions_matter
from .state_location import state_root

if TYPE_CHECKING:
    from ...checkpoint_meta.stores.contract import StateStore
    from ...reader.files.io.cut_places import CutPlaces


# What one reader is meant to read in one batch (Spark's maxPartitionBytes).
_TARGET_BYTES = 128 * 1024 * 1024

# With less input a reader of a direct write would only make the table a file longer.
_LEAST_BYTES_OF_WRITERS = 8 * 1024 * 1024

# Some 30 microseconds at the speed of decoding: what a packed local file costs.
_MAX_PENDING = 1_000_000
"""Listing pauses while so many files wait: what bounds the memory of a first listing."""

_DIGESTED_BYTES = 1024 * 1024 * 1024
"""Of which files are read before those of them that are new can be in a batch."""

_ALIGNMENT_PATIENCE = 300.0
"""Seconds for which a source that has nothing to read holds the others of its group back."""

_OPEN_COST_LOCAL = 8 * 1024

# A request or two to an object store (Spark's openCostInBytes).
_OPEN_COST_REMOTE = 4 * 1024 * 1024


class FileSource(FilesSource, Source[FileSplit, FileState]):
    """Splits are byte ranges of file versions; the state is the ranges not yet assigned."""

    def __init__(
        self, options: SluiceOptions, schema: pa.Schema, *, schema_is_inferred: bool = False
    ) -> None:
        """`schema_is_inferred` says that a file may lack columns of the schema."""
        super().__init__(options, schema)
        self._schema_is_inferred = schema_is_inferred
        # Here, on the driver: a filter that names no column is refused before the first batch.
        if options.filter:
            _check_filter(options, schema)

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], state: FileState | None
    ) -> SplitEnumerator[FileSplit, FileState]:
        store = context.store
        if self.options.on_delete == "retract" and store is not None and store.list(CLEANED):
            raise OptionError(
                "onDelete: files of this query were cleaned up",
                store.location,
                "onDelete=retract, and marks of cleanSource in the state",
                "a query without cleanSource since its start: a file that was cleaned up and one "
                "that was deleted look alike",
                "Leave onDelete out, and remove rows of deleted files with `sluice retract`.",
            )
        return FileSplitEnumerator(
            context,
            make_discovery(self.options),
            self.cutter(_cut_places(context.store)),
            self.spreader(),
            self.policy(),
            state,
        )

    @override
    def create_cleaner(self, state: OpenState) -> SourceCleaner | None:
        options = self.options
        if options.clean_source == "off":
            return None
        paths = loaded_paths(options.path)
        marker = ReadyMarker(options.ready_marker) if options.ready_marker else None
        policy = CleaningPolicy(options.clean_source, paths, archive_of(options), marker)
        return SourceCleanup(FileCleaner(policy, options.storage_options), self, state)

    def policy(self) -> FilePolicy:
        """Return when to list, what counts as a new file, and in which order files are read."""
        options = self.options
        grows = options.on_overwrite is OnOverwrite.APPEND_TAIL
        by_content = options.identity == "content"
        order, event_time = order_of(options)
        times = None if event_time is None else event_time.times
        marker = ReadyMarker(options.ready_marker) if options.ready_marker else None
        has_marker = marker is not None and not marker.is_per_file
        # Times in paths are found again at no cost; those in files are remembered in checkpoints.
        read_times = times if isinstance(times, StatisticsTimes) else None
        return FilePolicy(
            options.discovery_interval / 1000,
            options.discovery_attempts,
            max_pending=_MAX_PENDING,
            portion_bytes=_DIGESTED_BYTES if by_content else 0,
            include_existing=options.include_existing_files,
            fresh_share=options.fresh_share,
            event_time=event_time,
            alignment=self.alignment(),
            whole_files=options.write_copy == "never",
            is_archive=self._boundaries.is_archive,
            ledger=LedgerPolicy(
                order,
                options.on_overwrite,
                options.on_delete == "retract",
                whole_records=self._whole_records if grows else None,
                times=read_times,
                whole_directories=options.on_delete == "retract" and has_marker,
                digest=partial(digests, options.storage_options) if by_content else None,
            ),
            retract_after=options.retract_after / 1000,
        )

    @cached_property
    def _boundaries(self) -> _FormatBoundaries:
        return _FormatBoundaries(self, None)

    def alignment(self) -> Alignment | None:
        """With whom this source is aligned, and through which directory."""
        options = self.options
        if not options.alignment_group:
            return None
        positions = AlignedPositions(
            open_store(state_root(options), options.storage_options),
            options.alignment_group,
            options.source_name,
            _ALIGNMENT_PATIENCE,
        )
        return Alignment(positions, options.discovery_interval / 1000)

    def _whole_records(self, path: str, start: int, size: int, version: np.uint64) -> GrowingMark:
        from ...reader.files.io.file_version import mark_after_last_record
        from ...reader.files.io.lines import separator_of

        # Only where any line begins a record can reading go on where the file ended before.
        file, boundaries = FileVersion(path, size, -1), self._boundaries
        if boundaries.is_archive(file) or not boundaries.may_cut_anywhere(file):
            raise FileChangedError(
                "cannot resume reading a file that is not line-based",
                path,
                "records that do not end where a line does",
                "onOverwrite=appendTail for plain lines only, not compressed",
                "Leave it out with pathGlobFilter, or set onOverwrite to another value.",
            )
        separator = separator_of(self.options)
        return mark_after_last_record(path, start, size, version, separator)

    def cutter(self, cut_places: CutPlaces | None = None) -> SplitCutter:
        """Cuts files where their format permits it; gzip only if its cuts can be stored."""
        return SplitCutter(_FormatBoundaries(self, cut_places), self.options.max_split_bytes)

    def spreader(self) -> SplitSpreader:
        """Spreads splits over readers."""
        paths = loaded_paths(self.options.path)
        cost = _OPEN_COST_LOCAL if all(p.base.is_local for p in paths) else _OPEN_COST_REMOTE
        writes = bool(self.options.write_to) and self.options.write_copy == "always"
        least = _LEAST_BYTES_OF_WRITERS if writes else 0
        return SplitSpreader(_TARGET_BYTES, cost, driver_cores(), least)

    @override
    def restore_state(self, chain: Sequence[StateDocument], attachments: Attachments) -> FileState:
        # Where a file is read once, its path suffices, and the index in memory stays small.
        details = versions_matter(self.options) or self.options.identity == "content"
        return fold(chain, attachments, details=details)

    @override
    def create_reader(self, context: ReaderContext) -> SplitReader[FileSplit]:
        return self.reader(context, _cut_places(context.store))

    def reader(
        self, context: ReaderContext, cut_places: CutPlaces | None
    ) -> SplitReader[FileSplit]:
        """A reader for one attempt of one task, to which the driver's points have come."""
        from ...reader.files.reader import FileSplitReader
        from .schema_evolution import EvolvingReader, goes_on

        make = FileSplitReader
        if self.options.write_copy == "never":
            from ...reader.direct_write.in_place import InPlaceReader

            make = InPlaceReader
        # A batch read has no coordinator that would hand out another version.
        is_stream = context.checkpoint_id != NO_CHECKPOINT.checkpoint
        make_reader = partial(
            make,
            options=self.options,
            context=context,
            # With identity=content the driver has to know what is read.
            only_assigned_versions=is_stream
            and (self.options.on_overwrite.reads_whole or self.options.identity == "content"),
            replaces_rows=is_stream and self.options.on_overwrite is OnOverwrite.REPLACE,
            schema_is_inferred=self._schema_is_inferred,
            cut_places=cut_places,
            goes_on=goes_on(self.options),
            file_column=self.options.write_file_column,
        )
        # A new column may end the task inside, before the event with its figures is sent.
        inner = EvolvingReader(make_reader, self.options, self.schema, context)
        return _FigureReader(inner, context.budget)


class _FigureReader(SplitReader[FileSplit]):
    """Reads through another reader and sends what was read in all as one event at the end."""

    def __init__(self, inner: SplitReader[FileSplit], budget: RemainingBudget) -> None:
        self._inner, self._budget = inner, budget

    @override
    def read(self, splits: Sequence[FileSplit]) -> Iterator[pa.RecordBatch | Report]:
        sums = dict.fromkeys(("rows", "bytes", "droppedRecords", "skippedFiles"), 0)
        began = time.monotonic()
        for item in self._inner.read(splits):
            if isinstance(item, SplitFinished | SplitUnfinished):
                sums["rows"] += item.rows
                sums["bytes"] += item.bytes
                sums["droppedRecords"] += item.dropped_records
            if isinstance(item, SplitFinished):
                sums["skippedFiles"] += bool(item.skipped)
            yield item
        sums["files"] = self._budget.begun_files
        # With the time in which the sink takes the rows: a limit on seconds contains it.
        sums["microseconds"] = int((time.monotonic() - began) * 1_000_000)
        yield ReaderEvent(FIGURES, sums)

    @override
    def close(self) -> None:
        self._inner.close()


def _cut_places(store: StateStore | None) -> CutPlaces | None:
    if store is None:
        return None
    from ...reader.files.io.cut_places import StoredCutPlaces

    # The driver finds them while it cuts, and executors enter files there: both see this store.
    return StoredCutPlaces(store)


def _check_filter(options: SluiceOptions, schema: pa.Schema) -> None:
    from ...reader.files.formats.records.record_format import METADATA, asks_row_index
    from ...reader.files.row_filter import Predicate

    # The formats see the columns of one file each; only here is every name known.
    Predicate.parse(options.filter, schema, (), options.time_zone or "UTC")
    # `row_index` is a row's place in its file, which rows that were never decoded do not advance.
    if asks_row_index(schema):
        raise OptionError(
            "filter: rows that are filtered while they are decoded cannot be numbered",
            "",
            f"filter {options.filter!r} and {METADATA}.row_index in the schema",
            "one of the two",
            "Use .where(...) on the data frame instead of the option.",
        )


class _FormatBoundaries:
    """The reader's format, asked by the enumerator's cutter."""

    def __init__(self, source: FileSource, cut_places: CutPlaces | None) -> None:
        self._source = source
        self._cut_places = cut_places

    @cached_property
    def _format(self) -> FileFormat:
        # Its imports take time that a query should not spend before its first batch, and small
        # files need no cutting.
        from ...reader.files.formats.registry import make_format

        return make_format(
            self._source.options, self._source.schema, FormatContext(cut_places=self._cut_places)
        )

    def is_archive(self, file: FileVersion) -> bool:
        """Return whether the limit on files counts the members of a file instead."""
        from ...reader.files.io.archives import reads_members

        return reads_members(file.path, self._source.options)

    def _splittability(self, file: FileVersion) -> Splittability:
        from ...reader.files.formats.archives import format_of

        return format_of(file, self._format).splittability(file)

    def may_cut_anywhere(self, file: FileVersion) -> bool:
        return self._splittability(file) is Splittability.RECORDS

    def blocks(self, file: FileVersion) -> Sequence[FileBlock] | None:
        if self._splittability(file) is not Splittability.BLOCKS:
            return None
        try:
            blocks = self._format.blocks(file)
        except SplitReadError:
            # The reader meets the same error, where onSplitError decides what it means.
            return None
        if self._source.options.write_copy == "never":
            # A table refers to whole files, so there is nothing to cut.
            return [Block(0, file.size, -1)]
        return blocks


def driver_cores() -> int:
    """Cores this process may use."""
    # A container or `taskset` may leave fewer than the machine has; macOS cannot be asked.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ENTRY_POINTS = "pyspark_sluice.sources"
"""Group in which an installed package announces its sources by name."""


def load_source(
    options: SluiceOptions, schema: pa.Schema, *, schema_is_inferred: bool = False
) -> Source[Any, Any]:
    """The source that the options name. Only files have a schema that can be inferred.

    Raises:
        OptionError: it cannot be found or is no `Source`.
    """
    name = options.source
    if name == "files":
        return FileSource(options, schema, schema_is_inferred=schema_is_inferred)
    try:
        kind = load(name, ENTRY_POINTS)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_source(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Source)):
        raise _no_source(name, repr(kind))
    return kind(options, schema)


def _no_source(name: str, found: str) -> OptionError:
    return OptionError(
        "source: cannot load it",
        name,
        found,
        "files, package.module:Class of a connector.source.Source, or an entry point",
        "The module has to be importable on the driver and on the executors.",
    )

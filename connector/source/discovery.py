"""Which files the options ask for, and when they happened: listing, selection, event times."""

from __future__ import annotations

import json
from functools import partial

from ...checkpoint_meta.files.file_split import FileVersion
from ...checkpoint_meta.storage.urls import loaded_paths, shown_name
from ...enumerator.files.discovery.api import Discovery
from ...enumerator.files.discovery.selection.criteria import Criteria, FileSelection, PlaceBounds
from ...enumerator.files.discovery.selection.event_times import EventTimes
from ...enumerator.files.discovery.tree_discovery import ListingMode, TreeDiscovery
from ...enumerator.files.event_time_batches import EventTimePolicy, OnMissingTime
from ...enumerator.files.ledger.new_files import OnOverwrite
from ...enumerator.files.ledger.pending import EventTimeOrder, FileOrder, RangeOrder
from ...enumerator.files.ledger.statistics_times import StatisticsTimes
from ...errors import (
    FileChangedError,
    FileVanishedError,
    MalformedDataError,
    SchemaMismatchError,
    SourceUnavailable,
)
from ..options.model import SluiceOptions
from ..options.validation import bound_of, instant, instant_in, places


def make_discovery(options: SluiceOptions) -> Discovery:
    """Discovers what the options point at, as far as they say how."""
    listing = make_listing(options)
    if options.discovery_mode not in ("notifications", "journal"):
        return listing
    # Imports the clients of queues, which few queries need.
    from ...enumerator.files.discovery.queue.queue_discovery import Queues, notification_discovery

    return notification_discovery(listing, Queues(options.queue_url, options.dead_letter_queue_url))


def make_listing(options: SluiceOptions) -> TreeDiscovery:
    """Lists what the options point at."""
    return TreeDiscovery(
        loaded_paths(options.path),
        options.storage_options,
        fail_on_missing_path=options.fail_on_missing_path,
        selection=_selection(options),
        mode=_mode(options),
    )


def versions_matter(options: SluiceOptions) -> bool:
    """True if known files are compared with what is there."""
    return options.on_overwrite is not OnOverwrite.IGNORE or options.on_delete == "retract"


def _mode(options: SluiceOptions) -> ListingMode:
    return ListingMode(
        incremental=options.discovery_mode == "incremental",
        full_listing_interval=options.full_listing_interval / 1000,
        # Only a query that looks for changed files pays for comparing their versions.
        wants_versions=versions_matter(options),
    )


def _selection(options: SluiceOptions) -> FileSelection:
    age = options.max_file_age
    return FileSelection(
        ignored=options.ignored_path_segment_regex,
        glob=options.path_glob_filter,
        # Only false leaves directories out; true and no option differ in the columns of the path.
        nested=options.recursive_file_lookup is not False,
        criteria=Criteria(
            min_size=options.min_file_size,
            modified_after=instant(options.modified_after, options.time_zone),
            modified_before=instant(options.modified_before, options.time_zone),
            # Options are in milliseconds, times of files in microseconds.
            max_age=None if age is None else age * 1000,
            settle_time=options.settle_time * 1000,
            place=place_bounds(options),
        ),
        ready_marker=options.ready_marker,
        written=[place.url for place in places(options) if place.url.startswith("/")],
    )


def event_times(options: SluiceOptions) -> EventTimes:
    """The times of files below the loaded paths, in `timeZone` or UTC."""
    from ...reader.files.path_columns import bases_of

    bases = bases_of(options)
    if bases is None:
        bases = [shown_name(path.base.url).rstrip("/") for path in loaded_paths(options.path)]
    # A stream's driver does not know the session's zone.
    zone = options.time_zone or "UTC"
    return EventTimes(
        options.event_time_pattern,
        bases,
        zone,
        partial(instant_in, zone),
        may_be_missing=options.on_missing_event_time is OnMissingTime.MTIME,
    )


def statistics_times(options: SluiceOptions) -> StatisticsTimes:
    """The times of files by the statistics of `eventTimeColumn`."""
    return StatisticsTimes(
        # JSON, as a column may have any name.
        json.dumps([options.event_time_column, options.event_time_unit]),
        partial(_span_of, options),
    )


def _span_of(options: SluiceOptions, file: FileVersion) -> tuple[int, int] | None:
    from ...reader.files.formats.archives import class_of

    column, unit = options.event_time_column, options.event_time_unit
    try:
        return class_of(file, options).time_span(file, options, column, unit)
    except (MalformedDataError, FileVanishedError, FileChangedError):
        # The reader meets the same error, where the options of reading decide what it means.
        return None
    except SchemaMismatchError as error:
        if options.on_missing_event_time is OnMissingTime.MTIME:
            return None
        # The order is decided while files are discovered, so the error is one of discovery.
        raise SourceUnavailable(
            error.what, error.where, error.found, error.expected, error.remedy
        ) from error


def place_bounds(options: SluiceOptions) -> PlaceBounds | None:
    """Return what `startAt` and `endAt` say; None without them.

    Raises:
        ValueError: one is no time.
    """
    if not (options.start_at or options.end_at):
        return None
    start, end = (bound_of(text, options.time_zone) for text in (options.start_at, options.end_at))
    return PlaceBounds(start, end, event_times(options))


def order_of(options: SluiceOptions) -> tuple[RangeOrder, EventTimePolicy | None]:
    """The order of files, and what batches in the order of event time may have."""
    if options.file_order is not FileOrder.EVENT_TIME:
        return options.file_order, None
    times = statistics_times(options) if options.event_time_column else event_times(options)
    skew = options.max_event_time_skew * 1000
    return EventTimeOrder(times), EventTimePolicy(times, skew, options.on_late_file)

"""The event times of files, and what is decided by them, as the options say.

Not here: finding a time in a path and comparing it (`enumerator/files/discovery/selection`), or in
the statistics of a file (`reader/files/formats`).
"""

from __future__ import annotations

import json
from functools import partial

from ...checkpoint_meta.documents.file_split import FileVersion
from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.urls import shown_name
from ...enumerator.files.discovery.selection.criteria import PlaceBounds
from ...enumerator.files.discovery.selection.event_times import EventTimes
from ...enumerator.files.event_time_batches import EventTimePolicy, OnMissingTime
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
from ..options.validation import bound_of, instant_in


def event_times(options: SluiceOptions) -> EventTimes:
    """The times of files below the loaded paths, in `timeZone` or UTC."""
    from ...reader.files.path_columns import bases_of

    bases = bases_of(options)
    if bases is None:
        bases = [shown_name(path.base).rstrip("/") for path in loaded_paths(options.path)]
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
    from ...reader.files.formats.registry import format_class

    column, unit = options.event_time_column, options.event_time_unit
    try:
        return format_class(options.file_format).time_span(file, options, column, unit)
    except (MalformedDataError, FileVanishedError, FileChangedError):
        # The reader meets the same error, where the options of reading decide what it means.
        return None
    except SchemaMismatchError as error:
        if options.on_missing_event_time is OnMissingTime.MTIME:
            return None
        raise SourceUnavailable(
            error.what, error.where, error.found, error.expected, error.remedy
        ) from error


def place_bounds(options: SluiceOptions) -> PlaceBounds | None:
    """What `startAt` and `endAt` say; None without them.

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

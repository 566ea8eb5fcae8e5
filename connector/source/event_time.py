"""The event times of files, and what is decided by them, as the options say.

Not here: finding a time in a path and comparing it (`enumerator/files/discovery/selection`).
"""

from __future__ import annotations

from functools import partial

from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.urls import shown_name
from ...enumerator.files.discovery.selection.criteria import PlaceBounds
from ...enumerator.files.discovery.selection.event_times import EventTimes
from ...enumerator.files.event_time_batches import EventTimePolicy
from ...enumerator.files.ledger.event_time_order import EventTimeOrder
from ...enumerator.files.ledger.pending import FileOrder, RangeOrder
from ..options.event_time_validation import bound_of
from ..options.model import SluiceOptions
from ..options.modification_times import instant_in


def event_times(options: SluiceOptions) -> EventTimes:
    """The times of files below the loaded paths, in `timeZone` or UTC."""
    from ...reader.files.path_columns import bases_of

    bases = bases_of(options)
    if bases is None:
        bases = [shown_name(path.base).rstrip("/") for path in loaded_paths(options.path)]
    zone = options.time_zone or "UTC"
    return EventTimes(options.event_time_pattern, bases, zone, partial(instant_in, zone))


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
    times = event_times(options)
    skew = options.max_event_time_skew * 1000
    return EventTimeOrder(times), EventTimePolicy(times, skew, options.on_late_file)

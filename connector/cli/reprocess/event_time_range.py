"""Which files `sluice requeue --event-time` means: those whose paths name a time in a range.

A state does not say how its query finds times, so the whole path of a file is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ....enumerator.files.discovery.selection.event_times import EventTimes
from ....enumerator.files.discovery.selection.place_bounds import PlaceBounds
from ....errors import OptionError
from ...options.modification_times import instant, instant_in

_SEPARATOR = ".."


def in_event_time(text: str, pattern: str, time_zone: str) -> Callable[[str], bool]:
    """For a path, whether its time is in the range that `text` names: START..END.

    Raises:
        OptionError: it names no range, or `pattern` no time.
    """
    start, separator, end = text.partition(_SEPARATOR)
    zone = time_zone or "UTC"
    try:
        if not separator or not (start or end):
            message = f"found {text!r}; expected START..END, of which one may be left out"
            raise ValueError(message)
        times = EventTimes(pattern, (), zone, partial(instant_in, zone))
        bounds = PlaceBounds(instant(start, zone), instant(end, zone), times)
    except ValueError as error:
        raise OptionError(
            "--event-time or --event-time-pattern does not parse",
            "",
            str(error),
            "a range such as 2026-01-02..2026-01-09T12:00, and a pattern such as "
            "{yyyy}/{MM}/{dd}/{HH}",
        ) from error
    return bounds.takes

"""The moments that `modifiedAfter`, `modifiedBefore`, `startAt`, `endAt` and paths name.

Not here: comparing files with them (`enumerator/files/discovery/selection/criteria.py`).
"""

from __future__ import annotations

import pyarrow as pa

_KIND = pa.timestamp("us", "UTC")


def instant(text: str, time_zone: str) -> int | None:
    """Microseconds since the epoch, from any text that Spark's cast to a timestamp reads.

    None for an empty text, which names no moment.

    Raises:
        ValueError: it is no time, or nobody knows in which zone.
    """
    if not text:
        return None
    from ...reader.files.values.times.temporal import cast_text

    try:
        found = cast_text(text, _KIND, time_zone or "UTC")
        # 14 hours from UTC, farther than any other zone: only a text with a zone of its own gives
        # the same moment in both.
        elsewhere = cast_text(text, _KIND, "Pacific/Kiritimati")
    except ValueError as error:
        message = f"found {text!r}; expected a time such as 2026-01-31T12:00:00Z ({error})"
        raise ValueError(message) from error
    if not time_zone and found != elsewhere:
        message = (
            f"found {text!r}, without a time zone; expected one at its end (2026-01-31T12:00:00Z) "
            "or in the option timeZone: Spark does not tell a Python source its session's"
        )
        raise ValueError(message)
    return int(found.value)


def instant_in(time_zone: str, text: str) -> int:
    """Like `instant`, of a text that is not empty."""
    found = instant(text, time_zone)
    assert found is not None
    return found

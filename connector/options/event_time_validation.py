"""What of the options of event time is no time, or has no effect; and what a bound says.

Not here: the options themselves (`enumerator/files/event_time_options.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...enumerator.files.event_time_options import PATH_PREFIX
from ...enumerator.files.file_options import EnumeratorOptions
from ...enumerator.files.ledger.pending import FileOrder
from ...reader.files.formats.option_support import has_time_statistics
from ...reader.files.options import FileFormatName
from .modification_times import instant


def bound_of(text: str, time_zone: str) -> int | str | None:
    """A bound as `PlaceBounds` has it. A time without a zone is in `time_zone`, or else in UTC.

    Raises:
        ValueError: it is neither a name nor a time.
    """
    if text.startswith(PATH_PREFIX):
        return text.removeprefix(PATH_PREFIX).strip("/")
    return instant(text, time_zone or "UTC")


def event_time_problems(
    options: EnumeratorOptions, time_zone: str, file_format: str
) -> Iterator[str]:
    """What is wrong with them."""
    bounds = []
    for name, text in (("startAt", options.start_at), ("endAt", options.end_at)):
        try:
            bounds.append(bound_of(text, time_zone))
        except ValueError as error:
            yield f"{name}: {error}, or a name after {PATH_PREFIX}"
    if len(bounds) == len(("startAt", "endAt")) and _is_empty(*bounds):
        yield (
            f"startAt: found {options.start_at} with endAt={options.end_at}, between which there "
            "is nothing; expected an earlier start"
        )
    yield from _order_problems(options, file_format)
    asks_time = any(isinstance(bound, int) for bound in bounds) or (
        options.file_order is FileOrder.EVENT_TIME and not options.event_time_column
    )
    if options.event_time_pattern and not asks_time:
        yield (
            "eventTimePattern: found, but nothing asks for a time in paths; expected "
            "fileOrder=eventTime without eventTimeColumn, or startAt or endAt with a time"
        )


def _order_problems(options: EnumeratorOptions, file_format: str) -> Iterator[str]:
    is_ordered = options.file_order is FileOrder.EVENT_TIME
    given = options.model_fields_set
    for field, name in (
        ("max_event_time_skew", "maxEventTimeSkew"),
        ("on_late_file", "onLateFile"),
        ("event_time_column", "eventTimeColumn"),
        ("on_missing_event_time", "onMissingEventTime"),
        ("alignment_group", "alignmentGroup"),
        ("alignment_idle_timeout", "alignmentIdleTimeout"),
    ):
        if (
            field not in given
            or getattr(options, field) == type(options).model_fields[field].default
        ):
            continue
        if not is_ordered:
            yield f"{name}: found with fileOrder={options.file_order.value}; expected eventTime"
        elif field == "alignment_idle_timeout" and not options.alignment_group:
            yield f"{name}: found without alignmentGroup; expected both"
    if options.event_time_column and not has_time_statistics(file_format):
        saying = ", ".join(filter(has_time_statistics, FileFormatName))
        yield (
            f"eventTimeColumn: found with fileFormat={file_format}, whose files have no "
            f"statistics; expected one of {saying}, or eventTimePattern instead"
        )
    if options.event_time_unit and not options.event_time_column:
        yield f"eventTimeUnit: found {options.event_time_unit} without eventTimeColumn"


def _is_empty(start: int | str | None, end: int | str | None) -> bool:
    if isinstance(start, int) and isinstance(end, int):
        return start >= end
    return isinstance(start, str) and isinstance(end, str) and start >= end

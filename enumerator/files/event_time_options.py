"""The options of event time: where it is, what it orders, from where to where is read.

Not here: what they decide (`event_time_batches.py`, `discovery/selection/criteria.py`), and
what has to fit together (connector).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ...checkpoint_meta.storage.units import Milliseconds
from .discovery.selection.event_times import pattern_expression
from .event_time_batches import OnLateFile, OnMissingTime

PATH_PREFIX = "path:"
"""Before a bound that is a name and no time."""


def _pattern(value: str) -> str:
    if value:
        pattern_expression(value)
    return value


class EventTimeOptions(BaseModel):
    """Frozen by the model that joins all options."""

    model_config = ConfigDict(defer_build=True)

    event_time_pattern: Annotated[str, AfterValidator(_pattern)] = Field(
        "",
        description="Where the path of a file, below the loaded path, names its event time: "
        "{yyyy}/{MM}/{dd}/{HH}, with {mm} and {ss}; * is any text without a slash. By default "
        "Hive partitions: date=2026-01-02/hour=03, or year=2026/month=01/day=02. Times are in "
        "timeZone, UTC by default.",
    )
    event_time_column: str = Field(
        "",
        description="fileOrder=eventTime: the event time of a file is the least value of this "
        "column, by the statistics in the footer of the file (parquet, orc). A timestamp, a date, "
        "or an integer with eventTimeUnit; not within another column.",
    )
    event_time_unit: Literal["", "s", "ms", "us", "ns"] = Field(
        "",
        description="What the integers in eventTimeColumn count since 1970: s, ms, us or ns.",
    )
    on_missing_event_time: OnMissingTime = Field(
        OnMissingTime.FAIL,
        description="fileOrder=eventTime: what happens to a file whose path (or, with "
        "eventTimeColumn, whose statistics) says no event time: fail, or order it by its "
        "modification time (mtime). Such files are counted and named in the progress.",
    )
    max_event_time_skew: Milliseconds = Field(
        3_600_000,
        ge=0,
        description="fileOrder=eventTime: most time between the event times of the first and the "
        "last file of one batch; a file that is found later than that after its place is late.",
        json_schema_extra={"unit": "milliseconds"},
    )
    on_late_file: OnLateFile = Field(
        OnLateFile.READ,
        description="fileOrder=eventTime: what happens to a file whose event time is more than "
        "maxEventTimeSkew before the latest one taken: read it next, in a batch of its own time, "
        "quarantine it, or fail. Late files are counted and named in the progress.",
    )
    alignment_group: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",
        description="fileOrder=eventTime: sources of one query with the same name here read in "
        "step: none hands out a file more than maxEventTimeSkew after the earliest file that "
        "another has not handed out. No checkpoint is cut ahead. See [Event time](event-time.md).",
    )
    alignment_idle_timeout: Milliseconds = Field(
        300_000,
        gt=0,
        description="With alignmentGroup: a source that has nothing to read holds the others back "
        "for so long. In an AvailableNow run it does not hold them back.",
        json_schema_extra={"unit": "milliseconds"},
    )
    start_at: str = Field(
        "",
        description="Read only files from here on: an event time such as 2026-01-02T03:00:00, or "
        "path: and a name below the loaded path, such as path:2026/01/02.",
    )
    end_at: str = Field(
        "",
        description="Read only files before this event time or name, which is not included; "
        "written like startAt.",
    )

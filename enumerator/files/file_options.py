"""The enumerator's options: which files count as new, how they are ordered, batched, cleaned up.

They are joined to those of discovery.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)
from pydantic.alias_generators import to_camel

from ...checkpoint_meta.storage.written_values import ByteSize, LowerCase, Milliseconds
from .discovery.discovery_options import DiscoveryOptions, named
from .discovery.selection.event_times import pattern_expression
from .event_time_batches import OnLateFile, OnMissingTime
from .ledger.new_files import OnOverwrite
from .ledger.pending import FileOrder

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
        description="Where the path of a file, below the loaded path, contains its event time: "
        "{yyyy}/{MM}/{dd}/{HH}, with {mm} and {ss}; * is any text without a slash. By default "
        "Hive partitions: date=2026-01-02/hour=03, or year=2026/month=01/day=02. Times are in "
        "timeZone, UTC by default.",
    )
    event_time_column: str = Field(
        "",
        description="fileOrder=eventTime: the event time of a file is the smallest value of this "
        "column, from the statistics in the file's footer (parquet, orc). It must be a top-level "
        "column: a timestamp, a date, or an integer with eventTimeUnit.",
    )
    event_time_unit: Literal["", "s", "ms", "us", "ns"] = Field(
        "",
        description="Unit of the integers in eventTimeColumn, which count from 1970: s, ms, us or "
        "ns.",
    )
    on_missing_event_time: OnMissingTime = Field(
        OnMissingTime.FAIL,
        description="fileOrder=eventTime: what happens to a file whose path (or, with "
        "eventTimeColumn, whose statistics) does not give an event time: fail, or order it by its "
        "modification time (mtime). Such files are counted and named in progress events.",
    )
    max_event_time_skew: Milliseconds = Field(
        3_600_000,
        ge=0,
        description="fileOrder=eventTime: maximum difference between the event times of the first "
        "and the last file of one batch. A file is late if its event time is more than this "
        "before the latest one that was already planned.",
        json_schema_extra={"unit": "milliseconds"},
    )
    on_late_file: OnLateFile = Field(
        OnLateFile.READ,
        description="fileOrder=eventTime: what happens to a file whose event time is more than "
        "maxEventTimeSkew before the latest one that was already planned: read it next, in a "
        "batch of its own time, quarantine it, or fail. Late files are counted and named in "
        "progress events.",
    )
    alignment_group: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",
        description="fileOrder=eventTime: sources of one query with the same group read files of "
        "about the same event time: no source reads a file that is more than maxEventTimeSkew "
        "later than the earliest pending file of another one. No checkpoint is planned ahead. See "
        "[Aligning sources](aligning-sources.md).",
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


class LedgerOptions(BaseModel):
    """The options about found files. Frozen by the model that joins all options."""

    model_config = ConfigDict(defer_build=True)

    file_order: FileOrder = Field(
        FileOrder.MTIME,
        description="Which files are read first: mtime (the oldest), name, newestFirst, or "
        "eventTime (the earliest event time, see eventTimePattern). The order applies to the "
        "files found so far. Except with eventTime, the first batch can start before all files "
        "are found.",
        json_schema_extra=named("latestFirst") | {"common": True},
    )
    fresh_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of each batch that is reserved, while there is a backlog, for the "
        "files at the end of fileOrder (with mtime the newest): of its bytes if bytes are "
        "limited, otherwise of its files.",
    )
    include_existing_files: bool = Field(
        True,
        description="false: files that exist when the query first starts count as seen and are "
        "not read. The first batch is then empty and makes this durable.",
        json_schema_extra=named(auto_loader="cloudFiles.includeExistingFiles") | {"common": True},
    )
    identity: Literal["path", "content"] = Field(
        "path",
        description="What makes a file a known one: its path, or its content, too. With content "
        "the driver reads each new file once more; one that has the content of another file that "
        "is read is recorded and not read. See [Files that come twice](files-that-come-twice.md).",
    )
    on_overwrite: OnOverwrite = Field(
        OnOverwrite.IGNORE,
        description="What happens when a known file has another size, time or etag: ignore, "
        "reprocess (read the whole file again), replace (likewise, and the same commit removes the "
        "rows of its earlier versions from the table, which needs writeFileColumn), fail, or "
        "appendTail (read only what was appended, for local files of a line format that only "
        "grow).",
        json_schema_extra=named(auto_loader="cloudFiles.allowOverwrites"),
    )
    on_delete: Literal["ignore", "retract"] = Field(
        "ignore",
        description="What happens when a known file is gone: ignore, or retract (its rows leave "
        "the table after retractAfter, which needs writeFileColumn).",
    )
    retract_after: Milliseconds = Field(
        3_600_000,
        ge=1000,
        description="onDelete=retract: how long complete listings have to be without a file before "
        "its rows leave the table. With readyMarker the old files of a directory that is written "
        "again leave with its marker.",
        json_schema_extra={"unit": "milliseconds"},
    )


class CleaningOptions(BaseModel):
    """Joined to the others by the model that has all options."""

    model_config = ConfigDict(defer_build=True)

    clean_source: Annotated[Literal["off", "delete", "archive"], LowerCase] = Field(
        "off",
        description="What happens to a file that completed batches have read to its end: off "
        "leaves it, delete deletes it, archive moves it below sourceArchiveDir. Never a file that "
        "has changed since, nor a file of which a part was returned, skipped or quarantined.",
        json_schema_extra=named("cleanSource", "cloudFiles.cleanSource"),
    )
    source_archive_dir: str = Field(
        "",
        description="Where cleanSource=archive moves files; on the same file system or in the "
        "same bucket, and outside of the loaded paths. A file keeps its name below the loaded "
        "path; an existing file is never replaced.",
        json_schema_extra=named("sourceArchiveDir", "cloudFiles.cleanSource.moveDestination"),
    )
    clean_source_retention: Milliseconds = Field(
        7 * 86_400_000,
        ge=0,
        description="How long a file stays where it is after the last batch that read it was "
        "planned.",
        json_schema_extra=named(
            auto_loader="cloudFiles.cleanSource.retentionDuration", unit="milliseconds"
        ),
    )
    clean_source_while_retained: bool = Field(
        False,
        description="true cleans up as soon as a batch is complete. false waits until its "
        "checkpoint is older than the 100 newest ones, so that another query "
        "can still start from each of those.",
    )


_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


def _auto(value: object) -> object:
    # An option comes as text from Spark, and the default as None.
    return None if isinstance(value, str) and value.strip().lower() == "auto" else value


Parallelism = Annotated[Annotated[int, Field(gt=0)] | None, BeforeValidator(_auto)]


class EnumeratorOptions(DiscoveryOptions, LedgerOptions, EventTimeOptions):
    """The options of discovery, of the size of a batch, and of the readers that share it."""

    model_config = ConfigDict(
        frozen=True, defer_build=True, alias_generator=to_camel, populate_by_name=True
    )

    max_files_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Maximum number of files in one batch; a file counts once, with all its "
        "splits. Of archives, members count. No limit by default.",
        json_schema_extra=named("maxFilesPerTrigger", "cloudFiles.maxFilesPerTrigger")
        | {"common": True},
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        description="Maximum number of bytes in one batch; large files are split to stay within "
        "it. No limit by default.",
        json_schema_extra=named("maxBytesPerTrigger", "cloudFiles.maxBytesPerTrigger", "bytes")
        | {"common": True},
    )
    max_rows_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Maximum number of rows in one batch, in every format: a reader stops within a "
        "file, and the next batch continues there. No limit by default.",
    )
    max_batch_duration: Milliseconds | None = Field(
        None,
        gt=0,
        description="How long each reader may read in one batch, such as 60s; then it stops within "
        "a file, and the next batch continues there. A batch then has at most as many tasks as the "
        "driver has cores, or as parallelism says. No limit by default; see [Batch size]"
        "(batch-size.md).",
        json_schema_extra={"unit": "milliseconds"},
    )
    parallelism: Parallelism = Field(
        None,
        description="Number of readers, and so of Spark tasks in a batch; auto follows the bytes, "
        "and uses the driver's cores if there are that many splits.",
    )
    max_split_bytes: ByteSize = Field(
        128 * 1024 * 1024,
        gt=0,
        description="Largest split; larger files are split if their format allows it.",
        json_schema_extra=_BYTES,
    )
    on_split_error: Literal["fail", "return"] = Field(
        "fail",
        description="What happens to a split that cannot be read: fail the query, or return it to "
        "be assigned again later.",
    )
    max_split_attempts: int = Field(
        3,
        gt=0,
        description="With onSplitError=return: how often a split is tried before it is "
        "quarantined.",
    )

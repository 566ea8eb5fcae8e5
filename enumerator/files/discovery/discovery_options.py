"""The options of discovery: what is found, and how it is looked for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from ....checkpoint_meta.storage.written_values import BoundedPattern, ByteSize, Glob, Milliseconds
from .selection.name_patterns import IGNORED, ReadyMarker

_MILLISECONDS: dict[str, JsonValue] = {"unit": "milliseconds"}


def _expression(value: str) -> str:
    try:
        BoundedPattern(value)
    except ValueError as error:
        raise ValueError(f"a regular expression ({error})") from None
    return value


def _marker(value: str) -> str:
    if value:
        ReadyMarker(value)
    return value


def named(spark: str = "", auto_loader: str = "", unit: str = "") -> dict[str, JsonValue]:
    """Return what the option is called elsewhere, for the reference; `unit` of its number."""
    names = {"spark": spark, "autoLoader": auto_loader, "unit": unit}
    return {key: value for key, value in names.items() if value}


class DiscoveryOptions(BaseModel):
    """The options that choose files. Frozen by the model that joins all options."""

    # Only the model that joins all options validates, so building this one would only take time.
    model_config = ConfigDict(defer_build=True)

    fail_on_missing_path: bool = Field(
        True, description="Fail if the path does not exist; false waits for it."
    )
    path_glob_filter: Glob | None = Field(
        None,
        description="Read only files whose name matches this pattern, in Hadoop's syntax: "
        "*.{json,csv}, part-[0-9]*, ?.txt.",
        json_schema_extra=named("pathGlobFilter", "pathGlobFilter, cloudFiles.pathGlobFilter")
        | {"common": True},
    )
    ignored_path_segment_regex: Annotated[str, AfterValidator(_expression)] = Field(
        IGNORED,
        description="Ignore directories and files in whose names this regular expression is "
        "found; empty ignores no names. By default hidden names, and names of unfinished uploads: "
        "^[._] reads the latter, as Spark does. _name=value is always read and *._COPYING_ never.",
        json_schema_extra=named("ignoredPathSegmentRegex"),
    )
    modified_after: str = Field(
        "",
        description="Read only files that were modified later: 2026-01-31T12:00:00Z, or without a "
        "zone in timeZone.",
        json_schema_extra=named("modifiedAfter (batch)", "modifiedAfter"),
    )
    modified_before: str = Field(
        "",
        description="Read only files that were modified earlier; written like modifiedAfter.",
        json_schema_extra=named("modifiedBefore (batch)", "modifiedBefore"),
    )
    min_file_size: ByteSize = Field(
        1,
        ge=0,
        description="Read only files of at least this many bytes; empty files are never read.",
        json_schema_extra=named(unit="bytes"),
    )
    max_file_age: Milliseconds | None = Field(
        None,
        gt=0,
        description="Skip files whose last modification is longer ago than this when they are "
        "found, by this machine's clock. Skipped files are counted. Off by default.",
        json_schema_extra=named("maxFileAge", "cloudFiles.maxFileAge", "milliseconds"),
    )
    settle_time: Milliseconds = Field(
        0,
        ge=0,
        description="Read a file only when it has not been modified for this long, by this "
        "machine's clock: for writers that fill files in place.",
        json_schema_extra=_MILLISECONDS,
    )
    ready_marker: Annotated[str, AfterValidator(_marker)] = Field(
        "",
        description="Read a file only when this marker exists too: a name such as _SUCCESS in the "
        "file's own directory, or <name>.done next to it, where <name> is the file's name.",
    )
    discovery_mode: Literal["full", "incremental", "notifications", "journal"] = Field(
        "full",
        description="full lists all names each time. incremental lists only names after the "
        "greatest one found before, for names that increase with time (dates, timestamps). "
        "notifications reads the files that events in queueUrl announce, journal those that the "
        "journal table of S3 Metadata has. The latter three also do a full listing every "
        "fullListingInterval.",
        json_schema_extra=named(auto_loader="cloudFiles.useIncrementalListing"),
    )
    queue_url: str = Field(
        "",
        description="discoveryMode=notifications: URL of the queue, which only this source may "
        "use: SQS with events directly from S3, through SNS or through EventBridge; for abfss:// "
        "paths an Azure Storage Queue with events of Event Grid; for gs:// paths a subscription, "
        "https://pubsub.googleapis.com/v1/projects/P/subscriptions/S. Keys come from "
        "storageOptions. discoveryMode=journal: iceberg:CATALOG.NAMESPACE.TABLE, with the catalog "
        "as pyiceberg is configured.",
    )
    dead_letter_queue_url: str = Field(
        "",
        description="discoveryMode=notifications: URL of the queue for messages that are not "
        "events; for Pub/Sub of a topic. Without it they stay in queueUrl: in SQS for its redrive "
        "policy, elsewhere until they expire.",
    )
    full_listing_interval: Milliseconds = Field(
        3_600_000,
        ge=1,
        description="Time after which a listing looks at everything again: names before the "
        "greatest one, excluded files, and directories assumed to be unchanged.",
        json_schema_extra=named(auto_loader="cloudFiles.backfillInterval", unit="milliseconds"),
    )
    discovery_interval: Milliseconds = Field(
        1000,
        ge=10,
        description="Time between two listings; 250 ms by default if all paths are local. A long "
        "listing that finds little is followed by a pause of four times its length, during which "
        "discoveryMode=notifications still reads the queue.",
        json_schema_extra=_MILLISECONDS,
    )
    discovery_timeout: Milliseconds = Field(
        600_000,
        ge=1,
        description="How long the first batch waits for the first listing before it fails.",
        json_schema_extra=_MILLISECONDS,
    )
    discovery_attempts: int = Field(
        5,
        gt=0,
        description="The query fails after this many failed listings in a row; the waits between "
        "them are 0.6 s, then three times as long each time, at most 30 s. The first listing is "
        "not repeated after 25 s.",
    )

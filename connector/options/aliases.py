"""Options of Spark's file source and of Auto Loader, and what they are called here.

The one table from which it comes that their names are accepted where they mean the same, what an
error says where they do not, and the pages for those who come from there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["AUTO_LOADER", "SPARK", "KnownName", "in_our_names"]


@dataclass(frozen=True)
class KnownName:
    """An option as it is called elsewhere.

    With `here` it is accepted under its own name. Without, it is refused, and `note` says what to
    do instead; but for a value in `happens_anyway`, which asks for what is done in any case.
    """

    name: str
    here: str = ""
    """The option that does it here."""

    note: str = ""
    """What differs, or what to do instead; a sentence."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Value there, in lower case -> value here. Empty: values mean the same."""

    happens_anyway: tuple[str, ...] = ()
    """Values, in lower case, that are accepted and change nothing."""


def _refused(note: str, *names: str, unless: tuple[str, ...] = ()) -> Iterator[KnownName]:
    for name in names:
        yield KnownName(name, note=note, happens_anyway=unless)


WITHOUT_EFFECT = ("prefersDecimal", "ignoreNullFields", "dropFieldIfAllNull", "rootTag")
"""Options of Spark that change nothing here; accepted, so that those of a query can stay."""

SPARK: tuple[KnownName, ...] = (
    KnownName("inferSchema", "inferColumnTypes"),
    KnownName("maxPartitionBytes", "maxSplitBytes", "As spark.sql.files.maxPartitionBytes."),
    KnownName(
        "latestFirst",
        "fileOrder",
        "Among the files found so far; freshShare reserves a part of each batch for the newest.",
        values={"true": "newestFirst", "false": "mtime"},
    ),
    *_refused(
        "A file is identified by its whole path, never by its name alone.",
        "fileNameOnly",
        unless=("false",),
    ),
    *_refused("All files that were found are kept: leave the option out.", "maxCachedFiles"),
    *_refused("Files that were found are kept: leave the option out.", "discardCachedInputRatio"),
    *_refused(
        "The schemas of all files of the sample are merged.", "mergeSchema", unless=("true",)
    ),
    *_refused("Use inferSampleFiles and inferSampleBytes.", "samplingRatio"),
    *_refused("inferColumnTypes infers dates.", "preferDate", unless=("true",)),
    *_refused("Text in the style of Spark 2 is not read.", "enableDateTimeParsingFallback"),
    *_refused(
        "Timestamps in JSON are inferred as text: use a hint for those columns.",
        "inferTimestamp",
        unless=("false",),
    ),
    *_refused(
        "Text with such spellings is not JSON, and malformed.",
        *("allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter"),
        "allowUnquotedControlChars",
        unless=("false",),
    ),
    *_refused("Times of day are text: leave the option out.", "timeFormat"),
    *_refused(
        "A value in a path that its column cannot hold is an error.",
        "ignoreInvalidPartitionPaths",
        unless=("false",),
    ),
    *_refused("Use pathGlobFilter, such as *.csv.", "extension"),
    *_refused("There is no such limit: leave the option out.", "maxColumns", "maxCharsPerColumn"),
    *_refused(
        "There is no such limit, but 1,000 levels of nesting: leave the option out.",
        *("maxNestingDepth", "maxNumLen", "maxStringLen"),
    ),
    *_refused(
        "It tunes Spark's own reader: leave the option out.",
        *("inputBufferSize", "columnPruning", "useUnsafeRow"),
    ),
    *_refused(
        "Sluice always does what Spark does by default: leave the option out.",
        "explodeEmbeddedArray",
    ),
    *_refused("Use compression; auto follows the suffix.", "codec"),
    *_refused(
        "Avro files bring their own schema: choose columns and types with .schema(...) or "
        "schemaHints.",
        *("avroSchema", "avroSchemaUrl"),
    ),
    *_refused(
        "Fields of Avro files are matched by name.", "positionalFieldMatching", unless=("false",)
    ),
    *_refused(
        "File names do not matter; select files with pathGlobFilter=*.avro.",
        "ignoreExtension",
        unless=("true",),
    ),
    *_refused("Recursive types of Avro are refused: leave it out.", "recursiveFieldMaxDepth"),
    *_refused(
        "It affects writing only: pass it to writeStream.",
        *("quoteAll", "escapeQuotes", "pretty", "sortKeys", "parquet.compression"),
        *("orc.compress", "writeNonAsciiCharacterAsCodePoint", "recordName", "recordNamespace"),
    ),
)

_OWN_QUEUE = (
    "It belongs to a Databricks service: leave it out. Files are found by listing, or with "
    "discoveryMode=notifications by the events of your own queue."
)
_CREDENTIALS = (
    "Put credentials and service endpoints into storageOptions, under the names that fsspec or "
    "the client of the store has."
)

AUTO_LOADER: tuple[KnownName, ...] = (
    KnownName("cloudFiles.format", "fileFormat"),
    KnownName("cloudFiles.maxFilesPerTrigger", "maxFilesPerTrigger", "No limit by default."),
    KnownName(
        "cloudFiles.maxBytesPerTrigger",
        "maxBytesPerTrigger",
        "A hard limit: large files are split. With both limits, the first one reached applies.",
    ),
    KnownName(
        "cloudFiles.maxFileAge",
        "maxFileAge",
        "Based on a file's modification time. Files that were found are read, however old they "
        "become.",
    ),
    KnownName("cloudFiles.pathGlobFilter", "pathGlobFilter"),
    KnownName("fileNamePattern", "pathGlobFilter"),
    KnownName(
        "cloudFiles.useIncrementalListing",
        "discoveryMode",
        "Sluice has no value auto: choose one.",
        values={"true": "incremental", "false": "full"},
    ),
    KnownName("cloudFiles.backfillInterval", "fullListingInterval"),
    KnownName("cloudFiles.inferColumnTypes", "inferColumnTypes"),
    KnownName("cloudFiles.schemaHints", "schemaHints"),
    KnownName(
        "cloudFiles.schemaEvolutionMode",
        "schemaEvolutionMode",
        "The rescued data column is added only with rescue, or by rescuedDataColumn.",
    ),
    *_refused(
        "The schema is kept with the state, below checkpointLocation: leave it out, and give "
        "checkpointLocation to readStream as well.",
        "cloudFiles.schemaLocation",
    ),
    *_refused(
        "Columns of the path are found automatically; with .schema(...), include them in the "
        "schema.",
        "cloudFiles.partitionColumns",
    ),
    KnownName(
        "cloudFiles.includeExistingFiles",
        "includeExistingFiles",
        "With false the first batch is empty.",
    ),
    KnownName(
        "cloudFiles.allowOverwrites",
        "onOverwrite",
        "The whole changed file is read again; see also fail and appendTail.",
        values={"true": "reprocess", "false": "ignore"},
    ),
    KnownName(
        "cloudFiles.cleanSource",
        "cleanSource",
        "A file also stays while one of the 100 newest checkpoints needs it.",
        values={"off": "off", "delete": "delete", "move": "archive"},
    ),
    KnownName(
        "cloudFiles.cleanSource.retentionDuration",
        "cleanSourceRetention",
        "7 days by default, and can be short: retained checkpoints keep their files in any case.",
    ),
    KnownName("cloudFiles.cleanSource.moveDestination", "sourceArchiveDir"),
    *_refused(
        "Patterns are Hadoop's: * does not reach into directories.",
        "cloudFiles.useStrictGlobber",
        unless=("true",),
    ),
    *_refused("Options are always checked.", "cloudFiles.validateOptions", unless=("true",)),
    *_refused(
        "Set discoveryMode=notifications, and queueUrl to a queue that receives the events of the "
        "bucket; Sluice does not create a queue.",
        "cloudFiles.useNotifications",
        unless=("false",),
    ),
    *_refused(_OWN_QUEUE, "cloudFiles.useManagedFileEvents", unless=("false",)),
    *_refused(
        _OWN_QUEUE,
        *("cloudFiles.listOnStart", "cloudFiles.fetchParallelism", "cloudFiles.pathRewrites"),
        *("cloudFiles.resourceTag", "cloudFiles.queueName", "cloudFiles.subscription"),
    ),
    *_refused("Use queueUrl, with discoveryMode=notifications.", "cloudFiles.queueUrl"),
    *(
        KnownName(f"cloudFiles.{name}", note=_CREDENTIALS)
        for name in (
            *("region", "awsAccessKey", "awsSecretKey", "roleArn", "roleExternalId"),
            *("roleSessionName", "stsEndpoint", "resourceGroup", "subscriptionId", "tenantId"),
            *("clientId", "clientSecret", "connectionString", "projectId", "client"),
            *("clientEmail", "privateKey", "privateKeyId"),
        )
    ),
    *_refused(_CREDENTIALS, "databricks.serviceCredential"),
    *_refused(
        "Columns are matched exactly, then ignoring case if that is unambiguous.",
        *("readerCaseSensitive", "parserCaseSensitive"),
        unless=("false",),
    ),
)

_INERT = {name.lower() for name in WITHOUT_EFFECT}

_TAG = "cloudfiles.resourcetag"
"""Followed by a dot and a name of the user's own."""

_KNOWN = {
    alias.name.lower(): (whose, alias)
    for whose, names in (("Spark's file source", SPARK), ("Auto Loader", AUTO_LOADER))
    for alias in names
}


def in_our_names(texts: Mapping[str, str], own: Container[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a call under the names they have here, and a sentence for each problem.

    Args:
        texts: name in any case -> text.
        own: names that are options here, in lower case; these are left as they are.
    """
    texts = {n: t for n, t in texts.items() if n.lower() in own or n.lower() not in _INERT}
    foreign = {n: t for n, t in texts.items() if _key(n) in _KNOWN and n.lower() not in own}
    ours = {name: text for name, text in texts.items() if name not in foreign}
    problems: list[str] = []
    for name, text in foreign.items():
        problems.extend(_take(*_KNOWN[_key(name)], text, ours))
    return ours, problems


def _key(name: str) -> str:
    lower = name.lower()
    return _TAG if lower.startswith(f"{_TAG}.") else lower


def _take(whose: str, alias: KnownName, text: str, ours: dict[str, str]) -> Iterator[str]:
    value = text.strip().lower()
    # It asks for what is done in any case, so a call that is ported need not be changed.
    if value in alias.happens_anyway:
        return
    if not alias.here:
        actual = f" found {text!r};" if alias.happens_anyway else ""
        yield f"{alias.name}: an option of {whose} that Sluice does not have;{actual} {alias.note}"
    elif alias.values and value not in alias.values:
        listed = ", ".join(alias.values)
        yield f"{alias.name}: found {text!r}; expected one of {listed}. {alias.note}".rstrip()
    elif any(name.lower() == alias.here.lower() for name in ours):
        yield f"{alias.name}: {alias.here} is set as well and means the same; set only one of them"
    else:
        ours[alias.here] = alias.values[value] if alias.values else text

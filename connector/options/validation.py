"""What is wrong with options: single values, names, paths, places, and what needs a stream.

Most functions yield a line per problem. A place can be written in many ways: by a symbolic link,
with `..`, with another scheme of the same store. Only what it resolves to is compared, here and
nowhere else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from ...checkpoint_meta.storage.providers import S3, uses_fsspec
from ...checkpoint_meta.storage.urls import (
    LoadedPath,
    Location,
    hadoop_path,
    join,
    loaded_paths,
    shown_name,
)
from ...enumerator.files.discovery.discovery_options import DiscoveryOptions
from ...enumerator.files.discovery.selection.criteria import Scope
from ...enumerator.files.discovery.selection.name_patterns import NameRule
from ...enumerator.files.file_options import PATH_PREFIX, CleaningOptions, EnumeratorOptions
from ...enumerator.files.ledger.pending import FileOrder
from ...errors import OptionError
from .rules import ONLY_STREAMS, is_chosen, shown

Options: TypeAlias = Any
"""The `SluiceOptions` of a call, whose module uses this one."""

_LOG: Final = ("metadata", "offsets/0", "commits/0")
"""Files of the host in a checkpoint."""

_STATE: Final = (
    "FORMAT",
    "epochs/0000000001.json",
    "checkpoints/0000000001-0000000001.arrow",
    "readers/0000000001-0000000001-0123456789abcdef/00000.json",
)
"""Files in the state of each source."""


class Place(NamedTuple):
    """A directory or prefix of the call, into which the query writes."""

    option: str
    written: str
    """As the option has it."""

    url: str
    """Resolved."""

    files: Sequence[str] = ()
    """Names of files in it, for a place that may be within hidden directories of the input."""


def places(options: Options) -> Iterator[Place]:
    """Yield each place into which the query writes."""
    state = [join(options.source_name, name) for name in _STATE]
    if checkpoint := options.checkpoint_location:
        below = [] if options.state_location else [join("sluice", name) for name in state]
        yield Place("checkpointLocation", checkpoint, _of(hadoop_path(checkpoint)), [*_LOG, *below])
    if options.state_location:
        yield Place("stateLocation", options.state_location, _of(options.state_location), state)
    if options.bad_records_path:
        yield Place("badRecordsPath", options.bad_records_path, _of(options.bad_records_path))
    if options.source != "files":
        return
    if options.write_to and options.write_copy != "never":
        yield Place("writeTo", options.write_to, _of(options.write_to))
    if options.clean_source == "archive" and options.source_archive_dir:
        archive = options.source_archive_dir
        yield Place("sourceArchiveDir", archive, _of(archive))


def place_problems(options: Options) -> Iterator[str]:
    """Yield a line for each place whose files would be read as input, or be lost in a table."""
    all_places = list(places(options))
    for path in paths_of(options.path):
        for place in all_places:
            if problem := _overlap(place, path, options):
                yield f"{place.option}: {problem}"
    table = next((place for place in all_places if place.option == "writeTo"), None)
    for place in all_places:
        if table is None or place is table or not is_within(place.url, table.url):
            continue
        # Names that begin so are left alone by those who clean up a table.
        if not any(part.startswith("_") for part in place.url[len(table.url) :].split("/")):
            yield (
                f"{place.option}: found {place.written!r} within writeTo={table.written}, where a "
                "VACUUM of the table deletes files that are not its own; expected a directory "
                "outside of the table, or one whose name begins with _"
            )


def _overlap(place: Place, path: LoadedPath, options: Options) -> str:
    base = path.base.resolved
    if place.files:
        names = NameRule(options.ignored_path_segment_regex, options.path_glob_filter)
        nested = options.recursive_file_lookup is not False
        scope = Scope(base, path.wildcards, names, nested=nested)
        if any(scope.covers(shown_name(join(place.url, file)), file=True) for file in place.files):
            return (
                f"found {place.written!r} within the input path {path.given!r}, where its files "
                "would be read as input; expected a directory outside of that path, or one whose "
                "name begins with _ or ."
            )
        return ""
    if place.option == "sourceArchiveDir":
        if is_within(place.url, base):
            return (
                f"found {place.written!r} within {path.given!r}, where archived files would be "
                "read again; expected a directory outside that path"
            )
    elif is_within(place.url, base) or is_within(base, place.url):
        return (
            f"found {place.written!r}, which overlaps the input path {path.given!r}; expected a "
            "separate directory, since data files would be read as input"
        )
    return ""


def is_within(url: str, other: str) -> bool:
    """True if a resolved place is another one, or lies below it."""
    return f"{url.rstrip('/')}/".startswith(f"{other.rstrip('/')}/")


def paths_of(loaded: str) -> Sequence[LoadedPath]:
    """The loaded paths; none if they cannot be parsed, which `parse_options` reports."""
    try:
        return loaded_paths(loaded)
    except ValueError:
        return ()


def _of(url: str) -> str:
    return Location.of(url).resolved


def archive_of(options: CleaningOptions) -> str:
    """The archive, absolute; empty without one."""
    return Location.of(options.source_archive_dir).url if options.source_archive_dir else ""


def cleaning_problems(options: CleaningOptions, loaded: str) -> Iterator[str]:
    """Yield what does not fit together."""
    archive = archive_of(options)
    if options.clean_source != "archive" or not archive:
        return
    for path in paths_of(loaded):
        # A file is moved by a rename, an object by a copy that its store makes: neither leaves the
        # one place for another.
        if _root(path.base) != _root(Location.of(archive)):
            yield (
                f"sourceArchiveDir: found {options.source_archive_dir!r} for files of "
                f"{path.given!r}; expected a directory of the same file system or bucket"
            )


def _root(place: Location) -> Sequence[str]:
    # All local paths count as one place: between two file systems a file is copied.
    return () if place.is_local else place.resolved.split("/")[:3]


def bound_of(text: str, time_zone: str) -> int | str | None:
    """A bound as `PlaceBounds` has it. A time without a zone is in `time_zone`, or else in UTC.

    Raises:
        ValueError: it is neither a name nor a time.
    """
    if text.startswith(PATH_PREFIX):
        return text.removeprefix(PATH_PREFIX).strip("/")
    return instant(text, time_zone or "UTC")


def event_time_problems(options: EnumeratorOptions, time_zone: str) -> Iterator[str]:
    """Yield what is wrong with them."""
    bounds = []
    for name, text in (("startAt", options.start_at), ("endAt", options.end_at)):
        try:
            bounds.append(bound_of(text, time_zone))
        except ValueError as error:
            yield f"{name}: {error}, or a name after {PATH_PREFIX}"
    if len(bounds) == 2 and _is_empty(*bounds):
        yield (
            f"startAt: found {options.start_at} with endAt={options.end_at}, which is not after "
            "it; expected an earlier start"
        )
    asks_time = any(isinstance(bound, int) for bound in bounds) or (
        options.file_order is FileOrder.EVENT_TIME and not options.event_time_column
    )
    if options.event_time_pattern and not asks_time:
        yield (
            "eventTimePattern: found, but no option uses times in paths; expected "
            "fileOrder=eventTime without eventTimeColumn, or startAt or endAt with a time"
        )


def _is_empty(start: int | str | None, end: int | str | None) -> bool:
    if isinstance(start, int) and isinstance(end, int):
        return start >= end
    # A name and a time cannot be compared; then both bounds apply.
    return isinstance(start, str) and isinstance(end, str) and start >= end


def queue_problems(
    options: DiscoveryOptions, path: str, storage_options: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with the queues and paths of notifications and journal."""
    if options.discovery_mode not in ("notifications", "journal"):
        return
    queues = {"queueUrl": options.queue_url, "deadLetterQueueUrl": options.dead_letter_queue_url}
    for name, url in queues.items():
        if options.discovery_mode == "journal":
            if url and not re.fullmatch(r"iceberg:[^.]+(\.[^.]+){2,}", url):
                yield f"{name}: found {url}; expected iceberg:CATALOG.NAMESPACE.TABLE"
        elif url and not url.startswith(("https://", "http://")):
            yield (
                f"{name}: found {url}; expected the URL of a queue of SQS or of Azure Storage, or "
                "of a subscription or topic of Pub/Sub"
            )
        # A signature is a secret, and errors show this URL; those in storageOptions are masked.
        if "?" in url:
            yield (
                f"{name}: found {url.partition('?')[0]} with a query after it; expected the URL "
                "of the queue alone, and a signature as sas_token in storageOptions"
            )
    try:
        schemes = {one.base.scheme for one in loaded_paths(path)}
        by_fsspec = uses_fsspec(storage_options)
    except (ValueError, OptionError) as error:
        yield str(error)
        return
    # Imports the services, which a query without a queue does not need.
    from ...enumerator.files.discovery.queue.queue_discovery import QUEUES

    is_journal = options.discovery_mode == "journal"
    wanted = {S3.path_scheme} if is_journal else QUEUES.keys()
    if by_fsspec or len(schemes) != 1 or not schemes <= wanted:
        yield (
            f"discoveryMode={options.discovery_mode}: found {path}"
            + (' with "client": "fsspec"' if by_fsspec else "")
            + f"; expected paths that all begin s3://{'' if is_journal else ', abfss:// or gs://'}"
            ", and obstore, the default client"
        )


_KIND = pa.timestamp("us", "UTC")


def instant(text: str, time_zone: str) -> int | None:
    """Microseconds since the epoch, from any text that Spark's cast to a timestamp reads.

    None for an empty text, which names no moment.

    Raises:
        ValueError: it is no time, or its zone is unknown.
    """
    if not text:
        return None
    from ...reader.files.values.times.temporal import cast_text

    try:
        moment = cast_text(text, _KIND, time_zone or "UTC")
        # 14 hours from UTC, farther than any other zone: only a text with a zone of its own gives
        # the same moment in both.
        elsewhere = cast_text(text, _KIND, "Pacific/Kiritimati")
    except ValueError as error:
        message = f"found {text!r}; expected a time such as 2026-01-31T12:00:00Z ({error})"
        raise ValueError(message) from error
    if not time_zone and moment != elsewhere:
        message = (
            f"found {text!r}, without a time zone; expected one at its end (2026-01-31T12:00:00Z) "
            "or in the option timeZone: Spark does not tell a Python source its session's"
        )
        raise ValueError(message)
    return int(moment.value)


def instant_in(time_zone: str, text: str) -> int:
    """Like `instant`, of a text that is not empty."""
    moment = instant(text, time_zone)
    assert moment is not None
    return moment


def refuse_streaming_options(options: EnumeratorOptions) -> None:
    """Raise if a batch read is given what only a stream can do. A default value is accepted.

    Raises:
        OptionError: names each of them.
    """
    fields = type(options).model_fields
    problems = [
        f"{fields[name].alias}: found {shown(getattr(options, name))} in a batch read; "
        "expected it with readStream only"
        for name in sorted(ONLY_STREAMS)
        if is_chosen(options, name)
    ]
    if problems:
        what = 'spark.read.format("sluice") reads all files at once, without a state'
        remedy = "Leave these out, or use readStream with trigger(availableNow=True)"
        raise OptionError(listed(problems, what) + remedy)


def listed(problems: Iterable[str], what: str = "the options are wrong") -> str:
    """The text of the one error that has all of them."""
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return f"{what}:{lines}\n"


# A wrong hint is worse than none: a name is near if it is the other one, mistyped.
_ALIKE, _CHARACTERS = 0.85, 2


def near_name(name: str, names: Mapping[str, str]) -> str:
    """A question after the option that was probably meant, to be appended; empty if none is near.

    Args:
        name: what the user wrote.
        names: lower-case spelling -> spelling.
    """
    # Python's spelling and Auto Loader's prefix are no typing errors.
    bare = name.lower().removeprefix("cloudfiles.").replace("_", "")
    alike = [other for other in names if abs(len(other) - len(bare)) <= _CHARACTERS]
    near = [bare] if bare in names else difflib.get_close_matches(bare, alike, 1, _ALIKE)
    return f"; did you mean {names[near[0]]}?" if near else ""


def problem_of(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors about an option, in this package's words.

    This package's validators say in their `ValueError` what they expect; one of the whole model
    says all.
    """
    if not error["loc"]:
        return _expected(error)
    name = str(error["loc"][0])
    # Credentials that did not parse are not registered as secrets yet.
    shown = "(hidden)" if name == "storageOptions" else repr(error["input"])
    return f"{name}: found {shown}; expected: {_expected(error)}"


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string_pattern": "letters, digits and . _ -, beginning with a letter or a digit",
    "string": "text",
}
"""Beginning of pydantic's name of an error -> what it expects."""

_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
}


def _expected(error: Mapping[str, Any]) -> str:
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("enum", "literal_error"):
        # pydantic writes 'a', 'b' or 'c'.
        return "one of " + str(context["expected"]).replace("'", "").replace(" or ", ", ")
    if kind in _BOUNDS:
        return f"{_BOUNDS[kind]} {next(iter(context.values()))}"
    meanings = (meant for beginning, meant in _KINDS.items() if kind.startswith(f"{beginning}_"))
    return next(meanings, "another value")

"""All places of a call, resolved, and what must not be within what.

A place can be written in many ways: by a symbolic link, with `..`, with another scheme of the same
store. Only what it resolves to is compared, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ...checkpoint_meta.storage.urls import (
    LoadedPath,
    Location,
    hadoop_path,
    join,
    loaded_paths,
    shown_name,
)
from ...enumerator.files.discovery.selection.criteria import Scope
from ...enumerator.files.discovery.selection.name_patterns import NameRule

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

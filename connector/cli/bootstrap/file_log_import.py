"""What another system has read counts as seen: its list of files, held against what is there now.

Files that are there and on the list are seen in the version that is there. One that has changed
since, and one that is gone, is seen in the version on the list: whether a changed file is read
again is then for `onOverwrite` to say, as it is for a file that this source has read itself. All
others are left to the query, which finds them.

The list of Spark's own file source is a log below the checkpoint of its query.
`sources/<source>/<n>` has the files of batch n of the log, a JSON object a line after `v1`; a
`<n>.compact` has those of all batches up to n. `offsets/<batch>` says up to which batch of the log
a batch of the query went, and `commits/<batch>` that it has finished.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

import numpy as np

from ....checkpoint_meta.files.file_columns import files_of
from ....checkpoint_meta.files.file_split import FileVersion
from ....checkpoint_meta.storage.urls import Location, hadoop_path, written_path
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....enumerator.coordinator.restore import RestoredState
from ....enumerator.files.discovery.tree_discovery import all_files
from ....enumerator.files.ledger_source import OfflineEnumerator, OfflineFileSource
from ....enumerator.offline.offline_state import OfflineState, offline_state
from ....errors import OptionError, StateMissingError
from ...options.model import SluiceOptions, parse_options
from ...query.spark_checkpoint import NO_OFFSET, damaged, last_committed, numbers
from ...source.discovery import make_listing
from ...views.amounts import counted
from ..arguments import parsed_options
from ..offline_edit import Plan
from .new_state import Target

_COMPACT: Final = ".compact"


def spark_file_log(place: str, source: str, options: Mapping[str, Any]) -> OtherLog:
    """Read what the query with the checkpoint at `place` says of files.

    Args:
        place: its `checkpointLocation`.
        source: which of its sources, the name of a folder in `sources/`; the only one if empty.
        options: of the storage.
    """
    store = open_store(hadoop_path(place), options, to_read=True)
    name = source or _only_source(store)
    files: dict[str, OtherFile] = {}
    unfinished: dict[str, OtherFile] = {}
    end = _end(store, name)
    for batch, file in _entries(store, f"sources/{name}"):
        if batch <= end:
            files[file.path] = file
        else:
            unfinished[file.path] = file
    origin = {"checkpoint": store.location, "source": name, "log_offset": end}
    return OtherLog(files, unfinished, origin)


def _only_source(store: StateStore) -> str:
    names = store.list("sources")
    if len(names) == 1:
        return names[0]
    raise StateMissingError(
        "there is no log of Spark's file source" if not names else "the query has several sources",
        f"{store.location}/sources",
        ", ".join(names) or "nothing",
        "the checkpointLocation of a query that reads files with Spark's own source",
        "Choose one with --source." if names else "",
    )


def _end(store: StateStore, name: str) -> int:
    """The batch of the log up to which the query has finished; -1 before the first."""
    batch = last_committed(store)
    if batch is None:
        return -1
    where = f"offsets/{batch.number}"
    text = _offset_of(name, batch.offsets, store.list("sources"))
    if text is None:
        raise damaged(
            store,
            where,
            f"{counted(len(batch.offsets), 'offset')} for "
            f"{counted(len(store.list('sources')), 'source')}",
            "an offset for each source: a source that occurs several times in the query's "
            "plan, as in a.union(a), has several offsets, which do not name their source",
        )
    # A query has committed batches without this source having had a file.
    if text == NO_OFFSET:
        return -1
    try:
        offset = json.loads(text)
        return int(offset["logOffset"] if isinstance(offset, dict) else offset)
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(store, where, str(error), f"the offset of source {name}") from error


def _offset_of(name: str, offsets: Sequence[str], sources: Sequence[str]) -> str | None:
    """The offset of one source; None where it cannot be known.

    The log has a line for each occurrence of a source in the plan, in the plan's order, and the
    folders have the numbers of the sources. Only if there are as many of the one as of the other
    does a source's number say which line is its own.
    """
    if len(set(offsets)) == 1:
        return offsets[0]
    return offsets[int(name)] if len(offsets) == len(sources) and name in sources else None


def _entries(store: StateStore, directory: str) -> Iterator[tuple[int, OtherFile]]:
    compact = numbers(store, directory, _COMPACT)
    plain = numbers(store, directory)
    # Spark deletes the logs that a compact one replaces only after a while, so both may be there.
    first = compact[-1] if compact else -1
    names = [f"{directory}/{first}{_COMPACT}"] if compact else []
    after = [number for number in plain if number > first]
    # The files of a log that is missing would be read a second time.
    for expected, number in enumerate(after, first + 1):
        if number != expected:
            raise damaged(store, f"{directory}/{expected}", "no such object", "a log without gaps")
    names += [f"{directory}/{number}" for number in after]
    if not names:
        raise StateMissingError(
            "there is no log of Spark's file source",
            f"{store.location}/{directory}",
            ", ".join(store.list(directory)[:5]) or "nothing",
            "files with the names 0, 1, 2.compact ...",
            "Give the checkpointLocation of a query that reads files with Spark's own source.",
        )
    for name in names:
        yield from _read(store, name)


def _read(store: StateStore, name: str) -> Iterator[tuple[int, OtherFile]]:
    # Only a line feed ends an entry: names of files may have other ends of lines in them.
    version, *lines = store.read(name).decode().split("\n")
    if version != "v1":
        raise damaged(store, name, f"version {version[:20]!r}", "v1")
    for line in filter(None, lines):
        try:
            entry = json.loads(line)
            modified = int(entry["timestamp"]) * 1000
            file = OtherFile(str(entry["path"]), is_quoted=True, modified=modified)
            # Not the number of the object: an entry of a compact log keeps the batch that it came
            # with.
            yield int(entry["batchId"]), file
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(
                store, name, line[:80], "an entry with path, timestamp and batchId"
            ) from error


_SHOWN: Final = 10
_STEP: Final = 50_000
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+://?[^/]*)(/.*)$")


_NOTES: Final = {
    "unfinished": "unfinished files are in a batch that was not committed: they are read again, "
    "although the old sink may have some of the rows",
    "changed": "changed files count as seen: see onOverwrite, or --read-changed",
    "gone": "files that are gone count as seen",
}


@dataclass(frozen=True)
class OtherFile:
    """A file as another system has it."""

    path: str
    is_quoted: bool
    """True if special characters of the path are written as %20."""

    size: int | None = None
    modified: int | None = None
    """Microseconds since the epoch."""

    @property
    def name(self) -> str:
        """Return what the file is called here."""
        return name_here(_unquoted(self.path) if self.is_quoted else hadoop_path(self.path))

    def has_become(self, file: FileVersion) -> bool:
        """True if it is another version that is there now."""
        if self.size is not None and self.size != file.size:
            return True
        if self.modified is None or file.modified < 0:
            return False
        # Times may have been rounded in the list: to milliseconds, or to seconds.
        unit = 1_000_000 if self.modified % 1_000_000 == 0 else 1000
        return file.modified // unit > self.modified // unit

    def version(self, path: str) -> FileVersion:
        """The version on the list, as far as it is known."""
        return FileVersion(path, self.size or 0, -1 if self.modified is None else self.modified)


def name_here(path: str) -> str:
    """A path as state and listings of this source have it."""
    place = Location.of(path)
    return written_path(place.url) if place.is_local else place.url


def _unquoted(path: str) -> str:
    # `file:` URLs are unquoted where their path is taken out.
    match = _URL.match(path)
    if match is None or match[1].lower().startswith(("file:", "local:")):
        return path
    return match[1] + unquote(match[2])


@dataclass
class OtherLog:
    """All that another system says of files."""

    files: Mapping[str, OtherFile]
    """What it has ingested."""

    unfinished: Mapping[str, OtherFile]
    """What it has begun and may not have ingested: pending."""

    origin: Mapping[str, Any]
    """Where the list is, for the record."""

    def renamed(self, rewrites: Sequence[tuple[str, str]]) -> OtherLog:
        """With other beginnings of paths: each file by the first that fits."""

        def here(file: OtherFile) -> OtherFile:
            for old, new in rewrites:
                if file.path.startswith(old):
                    return replace(file, path=new + file.path.removeprefix(old))
            return file

        files = {path: here(file) for path, file in self.files.items()}
        unfinished = {path: here(file) for path, file in self.unfinished.items()}
        return OtherLog(files, unfinished, {**self.origin, "rewrite": [list(r) for r in rewrites]})


@dataclass
class Import:
    """The files of a list that count as seen, and why the rest does not."""

    origin: Mapping[str, Any]
    seen: list[FileVersion] = field(default_factory=list)
    matched: int = 0
    changed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    gone: int = 0
    new: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return the number of files of each kind, which the bootstrap record stores."""
        return {
            "listed": self.matched + len(self.changed) + self.gone,
            "matched": self.matched,
            "changed": len(self.changed),
            "gone": self.gone,
            "unfinished": len(self.unfinished),
            "not_listed": len(self.new),
        }

    def plan(self, target: Target, purpose: str) -> Plan:
        """Plan the state of a new query at `target`."""
        report = {
            "origin": dict(self.origin),
            "counts": self.counts(),
            "changed": sorted(self.changed)[:_SHOWN],
            "unfinished": sorted(self.unfinished)[:_SHOWN],
            "not_listed": sorted(self.new)[:_SHOWN],
        }
        notes = [_NOTES[kind] for kind, count in self.counts().items() if count and kind in _NOTES]
        return target.plan(purpose, report, self.origin, lambda _: self._state(), notes)

    def _state(self) -> OfflineState[Any, Any]:
        state = offline_state(OfflineFileSource(), RestoredState())
        assert isinstance(state.enumerator, OfflineEnumerator)
        now = int(time.time() * 1_000_000)
        # In steps, since a text column of one record batch holds at most 2 GiB.
        for at in range(0, len(self.seen), _STEP):
            files = self.seen[at : at + _STEP]
            rows = files_of(files)
            ends = np.array([file.size for file in files], np.int64)
            state.enumerator.count_as_seen(rows, ends, now)
        return state


def options_of(path: str, texts: Sequence[str], storage_options: str) -> SluiceOptions:
    """The query's options, as far as they say which files there are."""
    named = {"storageOptions": storage_options, **parsed_options(texts), "path": path}
    return parse_options(named, streaming=False)


def rewrites_of(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The values of `--rewrite`."""
    pairs = [text.partition("=") for text in texts]
    if any(not (old and new) for old, _, new in pairs):
        raise OptionError(
            "--rewrite does not parse", "", ", ".join(texts), "OLD=NEW, two path prefixes"
        )
    return [(old, new) for old, _, new in pairs]


def imported(log: OtherLog, options: SluiceOptions, *, read_changed: bool, anyway: bool) -> Import:
    """Hold a list against what is there.

    Args:
        log: the list.
        options: the query's.
        read_changed: leave files that have changed since to the query, which then reads them.
        anyway: although nothing on the list is there.
    """
    outcome = Import({**log.origin, "path": options.path})
    # By the name here, since one file may be listed with several spellings, as file:/a and /a.
    by_name = {file.name: file for file in log.files.values()}
    waiting = {file.name for file in log.unfinished.values()}
    present_names: set[str] = set()
    for file in all_files(make_listing(options)):
        name = name_here(file.path)
        other = by_name.get(name)
        if other is not None:
            present_names.add(name)
        if name in waiting:
            outcome.unfinished.append(file.path)
        elif other is None:
            outcome.new.append(file.path)
        elif not other.has_become(file):
            outcome.matched += 1
            outcome.seen.append(file)
        else:
            outcome.changed.append(file.path)
            if not read_changed:
                # In the version that was read, so that onOverwrite decides about the one that is
                # there.
                outcome.seen.append(other.version(file.path))
    for name, other in by_name.items():
        if name not in present_names:
            outcome.gone += 1
            outcome.seen.append(other.version(name))
    # Most likely a wrong path, and every file would be read a second time without a word.
    if log.files and not present_names and outcome.new and not anyway:
        raise OptionError(
            "no file of the list exists",
            options.path,
            f"{counted(len(outcome.new), 'file')}, such as {outcome.new[0]}",
            f"files such as {next(iter(log.files.values())).path}",
            "Correct the path, pass --rewrite OLD=NEW if the files have moved, or --force "
            "to read all existing files.",
        )
    return outcome

"""The log of Spark's own file source, below the checkpoint of a query that has one.

`sources/<source>/<n>` has the files of batch n of the log, a JSON object a line after `v1`; a
`<n>.compact` has those of all batches up to n. `offsets/<batch>` says up to which batch of the log
a batch of the query went, and `commits/<batch>` that it has finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....checkpoint_meta.storage.urls import hadoop_path
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import StateMissingError
from ...query.spark_checkpoint import NO_OFFSET, damaged, last_committed, numbers
from ...views.amounts import counted
from .file_log_import import OtherFile, OtherLog

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

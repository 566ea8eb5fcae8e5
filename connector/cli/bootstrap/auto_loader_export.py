"""An export of Auto Loader's `cloud_files_state`: which files it has ingested.

A row a file (or a version of one): `path`, `size`, `create_time`, `discovery_time`, `commit_time`
(null where the file is not processed yet), `source_id` and others. Only newer runtimes record times
of commit: an export that has none says nothing of what was processed.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa

from ....checkpoint_meta.storage.urls import Location
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import OptionError
from ...views.amounts import counted
from .file_log_import import OtherFile, OtherLog

# A CSV has no null; each tool writes it in its own way.
_NULLS: Final = ("", "null", "NULL", r"\N")
_ENDINGS: Final = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")
_COLUMNS: Final = ("path", "size", "create_time", "discovery_time", "commit_time", "source_id")


def auto_loader_log(
    export: str,
    options: Mapping[str, Any],
    source_id: str,
    *,
    all_processed: bool,
    quoted_paths: bool,
) -> OtherLog:
    """Read what an export says of files; of several versions of a file the newest counts.

    Args:
        export: a file, or a directory of such files.
        options: of the storage.
        source_id: only rows of this source; all where it is empty and there is one only.
        all_processed: a row without a time of commit was processed, too.
        quoted_paths: paths are written as in URLs, with %20 for a blank.
    """
    newest: dict[str, dict[str, Any]] = {}
    sources: set[str] = set()
    for row in _rows(export, options):
        sources.add(str(row["source_id"] or ""))
        if source_id and str(row["source_id"]) != source_id:
            continue
        previous = newest.get(row["path"])
        if previous is None or _order(previous) <= _order(row):
            newest[row["path"]] = row
    if not source_id and len(sources) > 1:
        raise OptionError(
            "the export has rows of several sources",
            export,
            ", ".join(sorted(sources)),
            "rows of one source",
            "Name it with --source-id.",
        )
    # A row without a time was found and not committed, or its runtime does not record times.
    done = {path for path, row in newest.items() if all_processed or row["commit_time"]}
    if newest and not done:
        raise OptionError(
            "the export does not show which files were processed",
            export,
            f"{counted(len(newest), 'file')}, none with a commit_time",
            "commit times, which newer runtimes record (16.4 with cloudFiles.cleanSource, 18.2)",
            "If the stream had finished before it was exported, add --all-processed.",
        )
    files = {
        path: OtherFile(
            path,
            quoted_paths,
            None if row["size"] is None else int(row["size"]),
            _microseconds(row["create_time"]),
        )
        for path, row in newest.items()
    }
    origin = {
        "export": Location.of(export).url,
        "source_id": source_id,
        "all_processed": all_processed,
    }
    return OtherLog(
        {path: file for path, file in files.items() if path in done},
        {path: file for path, file in files.items() if path not in done},
        origin,
    )


def _order(row: Mapping[str, Any]) -> tuple[int, int]:
    return (_microseconds(row["create_time"]) or 0, _microseconds(row["discovery_time"]) or 0)


def _microseconds(value: Any) -> int | None:
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000)


def _rows(export: str, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    has_files = False
    for name, data in _objects(export, options):
        has_files = True
        try:
            for row in _parsed(name, data):
                if not row.get("path"):
                    message = f"a row without a path: {str(row)[:80]}"
                    raise ValueError(message)
                fields = {key: row.get(key) for key in _COLUMNS}
                # For its errors: here it is still known which file the time that does not parse is
                # in.
                _order(fields)
                yield fields
        except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
            raise _unreadable(name, f"{type(error).__name__}: {error}") from error
    if not has_files:
        raise _unreadable(export, "nothing")


def _objects(export: str, options: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    location = Location.of(export)
    place = location.url.rstrip("/")
    folder, _, leaf = place.rpartition("/")
    store = open_store(place, options, to_read=True)
    # In a bucket there is no directory, but names below it; elsewhere a file may list itself.
    below = [] if location.is_local and os.path.isfile(place) else store.list("")
    if not [name for name in below if name != leaf]:
        if leaf.lower().endswith(_ENDINGS):
            with suppress(FileNotFoundError):
                yield place, open_store(folder, options, to_read=True).read(leaf)
        return
    for name in below:
        if name.lower().endswith(_ENDINGS) and not name.startswith(("_", ".")):
            yield f"{place}/{name}", store.read(name)


def _parsed(name: str, data: bytes) -> Iterator[dict[str, Any]]:
    ending = PurePosixPath(name).suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        file = pq.ParquetFile(io.BytesIO(data))
        columns = [column for column in _COLUMNS if column in file.schema_arrow.names]
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()
    elif ending == ".csv":
        # A byte order mark would become part of the first name. `newline=""` leaves quoted line
        # ends.
        for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")):
            yield {key: None if value in _NULLS else value for key, value in row.items()}
    else:
        # `splitlines` would also split at U+2028 and others, which JSON permits within a text.
        for line in data.decode().split("\n"):
            if line.strip():
                yield dict(json.loads(line))


def _unreadable(where: str, found: str) -> OptionError:
    return OptionError(
        "the export cannot be read",
        where,
        found,
        "rows of cloud_files_state with their columns, in a file whose name ends in "
        + ", ".join(_ENDINGS)
        + ", or in a directory of such files",
        "SELECT * FROM cloud_files_state('<checkpoint>') creates them.",
    )

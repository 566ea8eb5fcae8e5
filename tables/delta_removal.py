"""Removes rows and whole files from a Delta table.

Rows go by a condition in delta-rs' SQL. Whole files go in one commit that nobody else can come
between: it is an object of the log, created only if it does not exist, so if another writer has
committed since the table was read, nothing happens. delta-rs removes files by path only in some
releases, and commits such a removal next to a compaction of the same files.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..checkpoint_meta.documents.written_file import Removal
from ..checkpoint_meta.stores.open_store import open_store
from ..errors import TableError
from .written_batch import RemovedRows

if TYPE_CHECKING:
    from deltalake import DeltaTable


def predicate_of(removals: Sequence[Removal], columns: pa.Schema) -> str:
    """The condition that exactly the removed rows fulfil."""
    rows = RemovedRows.of(removals, columns)
    conditions = [f"{quoted(rows.column)} IN ({', '.join(map(_literal, rows.keys))})"]
    for column, values in rows.values.items():
        name = quoted(column)
        if values:
            # Of long lists delta-rs makes no use where it leaves out files.
            texts = list(map(_literal, values))
            if pa.types.is_int32(columns.field(column).type):
                # delta-rs compares a literal of 64 bits with no narrower column in the files.
                texts = [f"CAST({text} AS INT)" for text in texts]
            first, last, among = texts[0], texts[-1], f"{name} IN ({', '.join(texts)})"
            within = f"{name} >= {first} AND {name} <= {last} AND {among}"
            conditions.append(f"(({within}) OR {name} IS NULL)")
        else:
            conditions.append(f"{name} IS NULL")
    return " AND ".join(conditions)


def quoted(column: str) -> str:
    """The name of a column in SQL."""
    return '"' + column.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


_FEATURES: Final = {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    *("columnMapping", "timestampNtz", "v2Checkpoint"),
}
"""Features of tables under which a commit that only removes files needs nothing else."""

REMOVAL: Final = "DELETE"
"""The operation of such a commit."""

_PLAIN: Final = re.compile(r"[\w.=/-]+", re.ASCII)
"""Paths that the log has as they are; it escapes other characters."""


def remove_files(
    table: DeltaTable,
    name: str,
    storage_options: Mapping[str, Any],
    paths: Sequence[str],
    mark: Mapping[str, int],
) -> None:
    """Remove files, and set the versions of application transactions.

    A crash before the commit changes nothing; after it, everything is done.

    Raises:
        TableError: another writer was first, or the table has features that forbid it.
    """
    names = {path.rpartition("/")[2] for path in paths}
    rows = pa.table(table.get_add_actions()).to_pylist()
    chosen = [row for row in rows if row["path"].rpartition("/")[2] in names]
    protocol = table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())} - _FEATURES
    odd = [row["path"] for row in chosen if not _PLAIN.fullmatch(row["path"])]
    if features or is_append_only(table) or odd or len(chosen) < len(names):
        problem = ", ".join(
            sorted(features) or (["delta.appendOnly"] if is_append_only(table) else odd)
        )
        raise _not_removed(name, problem or "files of these batches are not in the table any more")
    now = int(time.time() * 1000)
    actions: list[Mapping[str, Any]] = [
        {"commitInfo": {"timestamp": now, "operation": REMOVAL, "operationParameters": {}}},
        *(
            {"txn": {"appId": application, "version": version, "lastUpdated": now}}
            for application, version in mark.items()
        ),
        *(
            {
                "remove": {
                    "path": row["path"],
                    "deletionTimestamp": now,
                    "dataChange": True,
                    "extendedFileMetadata": True,
                    "partitionValues": {
                        column: None if value is None else str(value)
                        for column, value in (row.get("partition") or {}).items()
                    },
                    "size": row["size_bytes"],
                }
            }
            for row in chosen
        ),
    ]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    log = open_store(f"{name.rstrip('/')}/_delta_log", storage_options)
    try:
        log.publish(f"{table.version() + 1:020}.json", text.encode())
    except FileExistsError as error:
        raise _not_removed(name, "a commit of another writer at the same moment") from error


def is_append_only(table: DeltaTable) -> bool:
    """True if the table forbids to remove rows."""
    return table.metadata().configuration.get("delta.appendOnly") == "true"


def _not_removed(table: str, problem: str) -> TableError:
    return TableError(
        "batches were not removed from the table",
        table,
        problem,
        "a table of which whole files can be removed, and that others do not change meanwhile",
        "Nothing has changed. If another writer was first, run the command again. Otherwise "
        "restore the table and the checkpoint from backups of the same moment.",
    )

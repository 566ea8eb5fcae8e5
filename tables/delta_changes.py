"""Takes rows and files out of a Delta table, and guards its compaction.

Rows go by a condition in delta-rs' SQL. Whole files go in one commit that nobody else can come
between: it is an object of the log, created only if it does not exist, so if another writer has
committed since the table was read, nothing happens. delta-rs removes files by path only in some
releases, and commits such a removal next to a compaction of the same files.

Compactions go one at a time for a table, and only with a library that refuses a second: from 1.6.4
on, deltalake lets a compaction pass that removes files which another one has removed meanwhile.
Each row of these files is then in the table twice.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import cache
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..checkpoint_meta.documents.epochs import claim_epoch, claim_of
from ..checkpoint_meta.documents.heartbeat import Heartbeat, look_at
from ..checkpoint_meta.documents.layout import EPOCHS, HEARTBEATS, numbered, numbers_in
from ..checkpoint_meta.documents.written_file import Removal, WrittenFile
from ..checkpoint_meta.stores.contract import StateStore
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
        found = sorted(features) or (["delta.appendOnly"] if is_append_only(table) else odd)
        problem = ", ".join(found)
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


def check_partitions(table: DeltaTable, location: str, more: Sequence[WrittenFile] = ()) -> None:
    """Check that delta-rs can write rows again under the partition values of these files.

    It writes -1.10 as -1.-10, raises an error after the commit, and opens the table no more.

    Raises:
        TableError: a value is a negative decimal with a fraction.
    """
    columns = pa.schema(table.schema().to_arrow())
    names = table.metadata().partition_columns
    decimals = [name for name in names if pa.types.is_decimal(columns.field(name).type)]
    if not decimals:
        return
    values = [*table.partitions(), *(file.partition for file in more)]
    for text in sorted({str(value[name] or 0) for value in values for name in decimals}):
        number = Decimal(text)
        if number < 0 and number != number.to_integral_value():
            raise TableError(
                "delta-rs cannot write rows of this table again",
                location,
                f"{text} in a partition column: {', '.join(decimals)}",
                "no negative decimals with a fraction there",
                "Nothing has changed. Let Spark rewrite the rows, with OPTIMIZE or MERGE, or "
                "partition a new table by another column.",
            )


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


# Compaction ----------------------------------------------------------------------------------

_CLAIMS: Final = "_sluice_compaction"
"""Directory below a table with the claims of its compactions; readers of tables leave it out."""


@contextmanager
def one_compaction(table: str, storage_options: Mapping[str, Any]) -> Iterator[None]:
    """Hold the claim to compact a table, or refuse.

    Of two that begin at once, the one with the lower claim works. A process that is killed leaves
    its claim, which nothing heeds once the process is known to be gone.

    Raises:
        TableError: another compaction of Sluice works, or may work; or the library is unsafe.
    """
    check_library()
    store = open_store(f"{table.rstrip('/')}/{_CLAIMS}", storage_options)
    own, ended = claim_epoch(store), Event()
    _forget_beats(store, own)
    # Other hosts see by it that this one is at work.
    heartbeat = Heartbeat(store, own, time.time)
    heartbeat.beat()
    beating = Thread(target=_beat, args=(heartbeat, ended), daemon=True)
    beating.start()
    try:
        for number in numbers_in(store.list(EPOCHS)):
            if number < own:
                _check_gone(store, number, table)
        yield
    finally:
        ended.set()
        beating.join()
        _forget_beats(store, own)
        store.delete(numbered(EPOCHS, own))


def _forget_beats(store: StateStore, number: int) -> None:
    # The number of a claim that is gone is used again.
    for leaf in store.list(HEARTBEATS):
        if leaf.startswith(f"{number:010d}-"):
            store.delete(f"{HEARTBEATS}/{leaf}")


def _beat(heartbeat: Heartbeat, ended: Event) -> None:
    while not ended.wait(1.0):
        with suppress(OSError):
            heartbeat.beat()


def _check_gone(store: StateStore, number: int, table: str) -> None:
    try:
        sign = look_at(store, claim_of(store, number))
    except FileNotFoundError:
        return  # It has finished.
    if sign.life != "gone":
        raise TableError(
            "another compaction of the table is at work",
            table,
            f"{store.location}/{numbered(EPOCHS, number)}: {sign.evidence or sign.life}",
            "one compaction of a table at a time",
            "Nothing has changed. Run the command again when the other one has finished. If its "
            "process is gone, delete that object.",
        )
    store.delete(numbered(EPOCHS, number))


@cache
def check_library() -> None:
    """Check with a tiny table that the library refuses the second of two compactions.

    Raises:
        TableError: it does not.
    """
    import deltalake
    from deltalake.exceptions import DeltaError

    with tempfile.TemporaryDirectory() as table:
        for number in range(2):
            rows = pa.table({"id": pa.array([number], pa.int64())})
            deltalake.write_deltalake(table, rows, mode="append")
        first, second = deltalake.DeltaTable(table), deltalake.DeltaTable(table)
        first.optimize.compact()
        try:
            second.optimize.compact()
        except DeltaError:
            return
    raise TableError(
        "this release of deltalake doubles rows if two compactions meet",
        "",
        f"deltalake {deltalake.__version__}, which lets the second compaction pass",
        "a release that refuses it, such as 1.6.3",
        "Nothing has changed. Install another release: pip install 'deltalake<1.6.4'. Only "
        "compaction needs it.",
    )

"""Data files into a Delta table: one transaction a batch, recognized by application transactions.

Each commit carries five `txn` actions of the Delta protocol: the query's lineage with the
checkpoint id, one with digits of its checksum, one with a digest of the list of files, one with the
version of the table, since a RESTORE leaves them all, and one whose name says the input. The first
commit of a fork carries one more, whose name is the end of the query that it continues. delta-rs
accepts a `txn` that is there already (delta-rs issue 2580), so the table is read again before every
try.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from typing_extensions import override

from ..checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, TableInput
from ..checkpoint_meta.storage.open_storage import open_storage
from ..checkpoint_meta.storage.providers import BY_SCHEME, client_config
from ..checkpoint_meta.storage.urls import Location
from ..checkpoint_meta.stores.open_store import check_exclusive_creates, open_store
from ..errors import OptionError, TableError
from ..reader.direct_write.field_ids import to_text
from ..reader.direct_write.statistics import Path
from ..reader.direct_write.table_fit import check_values, has_rules, with_demands
from .batch_order import TableMark, inputs_by_files, mark_by_files, not_retained
from .delta_changes import (
    REMOVAL,
    check_partitions,
    is_append_only,
    one_compaction,
    predicate_of,
    quoted,
    remove_files,
)
from .delta_log import DeltaHistory, both
from .row_counts import Counts
from .table_sink import TableSink
from .written_batch import WrittenBatch

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import AddAction

log = logging.getLogger(__name__)


_INPUT: Final = "sluice-input "
"""Begins the name of an application whose name says what a query reads."""

_CONTINUED: Final = "-continued"
"""Ends the name of an application whose version is the lineage of a fork."""

_OF_CATALOG: Final = "catalogManaged"
_MAPPING: Final = "delta.columnMapping.mode"

_WRITTEN: Final = frozenset(
    (
        *("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors"),
        *("generatedColumns", "invariants", "timestampNtz", "v2Checkpoint"),
        *("variantType", "variantType-preview"),
    )
)
"""Table features that delta-rs accepts in a commit, of those with a writer feature (1.6.3)."""


class DeltaSink(TableSink):
    """See `TableSink`."""

    format = "Delta"
    _final = ("Unsupported table features",)

    def __init__(self, table: str, storage_options: Mapping[str, Any]) -> None:
        """Touches nothing.

        Raises:
            OptionError: a file system that deltalake does not know, or on which it can hang.
        """
        place = Location.of(table)
        super().__init__(place.url, storage_options)
        self._scheme = place.scheme
        if place.scheme not in ("", *BY_SCHEME):
            # Its client for HDFS waits for ever where a connection to a DataNode breaks.
            raise OptionError(
                "a Delta table cannot be written there",
                table,
                f"the file system {place.scheme!r}",
                "a local path, or one of " + ", ".join(f"{scheme}://" for scheme in BY_SCHEME),
                "Keep the table there, or write Parquet files with manifests.",
            )

    @override
    def check_place(self) -> None:
        check_exclusive_creates(self._name, self._storage_options, "the table")

    @property
    def client_options(self) -> dict[str, str] | None:
        """The storage options by the names that deltalake has for them."""
        if not self._scheme:
            return None
        config = client_config(self._scheme, self._storage_options)
        # By itself delta-rs asks a store that does not answer for three minutes.
        options = {"retry_timeout": "15s"}
        options |= {name: str(value) for name, value in config.store.items()}
        if config.connections.get("allow_http"):
            options["allow_http"] = "true"
        return options

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        from deltalake.exceptions import DeltaError

        # Not only `CommitFailedError`: that a table exists by now, which another writer has
        # created, is a plain `DeltaError`.
        return DeltaError, OSError

    @override
    def opened(self) -> DeltaTable | None:
        return self._opened()

    def _opened(self, version: int | None = None) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._name, version, storage_options=self.client_options)
        except TableNotFoundError:
            return None

    def _read(self) -> DeltaTable | None:
        from deltalake.exceptions import DeltaError

        try:
            table: DeltaTable | None = self.current()
        except DeltaError as error:
            if "Catalog-managed table" in str(error):
                raise self._not_written([_OF_CATALOG]) from error
            raise TableError(
                "the table cannot be opened",
                self._name,
                # Below its first line is the history of the kernel's error.
                f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
                "a Delta table that delta-rs reads",
                "Nothing was read or stored. Repair the table or the access to it, or write into "
                "another one.",
            ) from error
        if table is not None:
            features = {*(table.protocol().writer_features or ())} - _WRITTEN
            if features:
                raise self._not_written(sorted(features))
        return table

    def _not_written(self, features: Sequence[str]) -> TableError:
        of_catalog = (
            " Commits of this table go through its catalog." if _OF_CATALOG in features else ""
        )
        return TableError(
            "delta-rs cannot write to a table with these features",
            self._name,
            ", ".join(features),
            "a table without them, see the page on tables: Which tables can I write",
            f"Nothing was read or stored.{of_catalog} Write into another table, or let Spark's own "
            "connector write the rows, as the page on sinks shows.",
        )

    @override
    def check_places(self, places: Sequence[str]) -> None:
        root = self._url(self._name)
        for place in places:
            if not self._url(place).startswith(root):
                raise TableError(
                    "the data files would be outside the directory of the table",
                    place,
                    f"the table {self._name}",
                    "a directory of the table, or one below it: a Delta table names its files so",
                    "Nothing was read or stored. Leave writeCopy=never out, or set writeTo to the "
                    "table's directory.",
                )

    def _url(self, place: str) -> str:
        storage, name = open_storage(place, self._storage_options)
        return storage.url(name).rstrip("/") + "/"

    @override
    def identity(self) -> str:
        table = self._read()
        return "" if table is None else f"delta:{table.metadata().id}"

    @override
    def columns(self) -> str:
        table = self._read()
        if table is None:
            # Columns of no table: what no Delta table takes is refused before it is created.
            return to_text(with_demands(pa.schema([]), self._name))
        schema = table.schema()
        columns = pa.schema(schema.to_arrow()).remove_metadata()
        partitions = table.metadata().partition_columns
        rules = _rules(table, json.loads(schema.to_json())["fields"])
        return to_text(with_demands(columns, self._name, partitions, rules))

    @override
    def files(self, table: DeltaTable | None) -> Sequence[str]:
        return [] if table is None else table.file_uris()

    @override
    def rows_by(self, table: DeltaTable | None, column: str) -> Counts | None:
        if table is None:
            return iter(())
        is_there = column in (field.name for field in table.schema().fields)
        if not is_there:
            return None
        # Where the data files hold the rows as they are, counting them alone takes half the time.
        mapping = table.metadata().configuration.get(_MAPPING, "none")
        is_stored = mapping == "none" and not self.has_deletes(table)
        counts = super().rows_by(table, column) if is_stored else None
        return self._counts(table, column) if counts is None else counts

    def _counts(self, table: DeltaTable, column: str) -> Counts:
        from deltalake import QueryBuilder

        name = quoted(column)
        sql = f"SELECT {name} AS f, count(*) AS n FROM t GROUP BY {name}"  # noqa: S608 - quoted
        for batch in QueryBuilder().register("t", table).execute(sql):
            counts = pa.record_batch(batch)
            yield counts.column(0).cast(pa.string()), counts.column(1)

    @override
    def has_deletes(self, table: DeltaTable | None) -> bool:
        features = () if table is None else table.protocol().reader_features or ()
        return "deletionVectors" in features

    @override
    def remove(
        self, table: DeltaTable, paths: Sequence[str], lineage: str, newest: TableMark
    ) -> None:
        mark = zip(_names(lineage), _numbers(newest, table.version() + 1), strict=True)
        remove_files(table, self._name, self._storage_options, paths, dict(mark))

    @override
    def _marks(
        self, table: DeltaTable | None, lineage: str
    ) -> Iterator[tuple[TableMark, Sequence[str]]]:
        if table is None:
            return
        names = _names(lineage)
        try:
            for commit in self._history.commits(table.version()):
                if names[0] in commit.transactions:
                    mark = replace(
                        _mark([commit.transactions[name] for name in names]),
                        has_removals="predicate" in commit.parameters,
                        takes_back=commit.operation == REMOVAL,
                    )
                    yield mark, [path.rpartition("/")[2] for path in commit.added]
        except FileNotFoundError as error:
            raise not_retained(self._name, str(error)) from error

    @override
    def _fork_at(self, table: DeltaTable | None, end: str) -> str:
        fork = None if table is None else table.transaction_version(f"{end}{_CONTINUED}")
        return "" if fork is None else fork.to_bytes(8, signed=True).hex()

    @override
    def _inputs(self, table: DeltaTable | None) -> Iterator[tuple[str, TableInput]]:
        if table is None:
            return
        known = set()
        for name in self._history.applications(table.version()):
            if name.startswith(_INPUT):
                lineage, _, text = name.removeprefix(_INPUT).partition(" ")
                known.add(lineage)
                yield lineage, TableInput.parse(text)
        yield from inputs_by_files(table.file_uris(), known)

    @property
    def _history(self) -> DeltaHistory:
        return DeltaHistory(open_store(f"{self._name}/_delta_log", self._storage_options))

    def compact(self, target_bytes: int) -> Mapping[str, int]:
        """Rewrite small files as files of about this size, in one commit; what was rewritten.

        Rows stay as they are, so a stream that reads the table skips the commit. A crash before it
        leaves files that no version of the table names, and that a full VACUUM deletes.

        Raises:
            TableError: there is no table, it was changed meanwhile by more than new files, or
                another compaction works.
        """
        try:
            if self.opened() is None:
                raise FileNotFoundError(self._name)
            with one_compaction(self._name, self._storage_options):
                # Not the table from before the claim: another compaction may have ended meanwhile.
                table = self.opened()
                assert table is not None
                check_partitions(table, self._name)
                figures = table.optimize.compact(target_size=target_bytes)
        except self._conflicts() as error:
            raise TableError(
                "the table was not compacted",
                self._name,
                f"{type(error).__name__}: {error}",
                "a Delta table to which others only add files meanwhile",
                "Nothing has changed. If another writer was first, run the command again.",
            ) from error
        return {
            "files_removed": figures["numFilesRemoved"],
            "files_added": figures["numFilesAdded"],
        }

    def _create(self, batch: WrittenBatch) -> None:
        """With the files. Another writer may be first: then the table is there at the next try."""
        from deltalake.transaction import create_table_with_add_actions

        partitions = list(batch.files[0].partition)
        # Their values are text in the paths; a table of other types is made beforehand.
        values = [pa.field(name, pa.string()) for name in partitions]
        create_table_with_add_actions(
            self._name,
            self._with(None, [pa.schema([*schema, *values]) for schema in batch.schemas]),
            self._additions(batch),
            partition_by=partitions,
            storage_options=self.client_options,
            commit_properties=_identity(batch, 0),
        )

    def _additions(self, batch: WrittenBatch) -> list[AddAction]:
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        paths = batch.below(self._name)
        for path in paths:
            _check_name(path, self._name)
        return [
            # True is `dataChange`: a stream that reads the table skips commits that only rearrange
            # rows.
            AddAction(path, file.bytes, dict(file.partition), now, True, file.statistics)
            for path, file in zip(paths, batch.files, strict=True)
        ]

    @override
    def newest(self, table: DeltaTable | None, lineage: str) -> TableMark | None:
        if table is None:
            return None
        numbers = [table.transaction_version(name) for name in _names(lineage)]
        versions = [number for number in numbers if number is not None]
        if len(versions) == len(numbers):
            try:
                restored = self._history.restored(table.version(), after=versions[-1])
                if restored is not None:
                    return self.newest(self._opened(restored), lineage)
                return _mark(versions) if versions[0] else None  # See `remove`.
            except self._conflicts():
                log.warning("%s: the log does not say where a RESTORE led", self._name)
        # Spark deletes transactions that are older than delta.setTransactionRetentionDuration.
        return mark_by_files(table.file_uris(), lineage)

    def _with(self, present: Any, schemas: Sequence[pa.Schema]) -> Schema:
        """The columns of the table and those of the files, which become nullable there.

        `present` is the table's schema in Delta's JSON; None without a table.
        """
        from deltalake import Schema

        kinds = [json.loads(Schema.from_arrow(schema).to_json()) for schema in schemas]
        whole = kinds[0] if present is None else present
        try:
            for kind in kinds:
                whole = both(whole, kind, "", of_table=present is not None)
        except ValueError as error:
            raise TableError(
                "the columns of the files do not fit the table's",
                self._name,
                str(error),
                "columns of the same types; new ones are added",
                "Nothing is lost. delta-rs cannot widen a column, so write the table again with "
                "the type of the files, and start the query again, which adds this batch: "
                "rows = DeltaTable(t).to_pyarrow_table().cast(schema); "
                "write_deltalake(t, rows, mode='overwrite', schema_mode='overwrite').",
            ) from error
        return Schema.from_json(json.dumps(whole))

    @override
    def check_removal(self, column: str) -> None:
        table = self._read()
        if table is not None and is_append_only(table):
            raise self._append_only()

    def _append_only(self) -> TableError:
        return self._not_replaced(
            "delta.appendOnly=true",
            "a table without that property",
            "Remove the property (ALTER TABLE ... UNSET TBLPROPERTIES ('delta.appendOnly'))",
        )

    @override
    def _commit(self, table: DeltaTable | None, batch: WrittenBatch) -> None:
        if table is None:
            if batch.files:
                self._create(batch)
            return
        partitions = list(table.metadata().partition_columns)
        if any(set(file.partition) != set(partitions) for file in batch.files):
            raise TableError(
                "the table is partitioned by other columns than the files",
                self._name,
                f"writePartitionBy={','.join(batch.files[0].partition)}",
                f"the table's partition columns: {', '.join(partitions) or 'none'}",
            )
        schema_before = table.schema()
        as_json = json.loads(schema_before.to_json())
        self._check_rules(table, as_json, batch)
        columns = with_demands(pa.schema(schema_before.to_arrow()), self._name)
        for file in batch.files:
            check_values(file.partition, columns)
        keys = [pa.schema([(each.column, pa.string())]) for each in batch.removals[:1]]
        schema = self._with(as_json, [*batch.schemas, *keys])
        grows = schema != schema_before
        if batch.removals:
            self._replace(table, batch, schema if grows else None)
            return
        filter_column = _plain_column(schema_before, partitions)
        if grows and (filter_column is None or _needs_feature(schema, schema_before)):
            # A commit of its own: a crash after it leaves a table that has the columns already.
            table.alter.add_columns([*schema.fields], commit_properties=_without_retries())
            grows = False
        # Only an overwrite takes new columns in; it removes the files that the filters select.
        table.create_write_transaction(
            # Unpacked for mypy: deltalake's parameter is a list of additions and removals.
            [*self._additions(batch)],
            "overwrite" if grows else "append",
            schema,
            partition_by=partitions,
            partition_filters=[(filter_column, "in", [])] if grows and filter_column else None,
            commit_properties=_identity(batch, table.version() + 1),
        )

    def _replace(self, table: DeltaTable, batch: WrittenBatch, grown: Schema | None) -> None:
        """Take rows out and add those of the batch in one commit, which delta-rs writes again.

        Never by actions of removal: those of a file with a deletion vector remove nothing, and next
        to a compaction its rows would be there twice.
        """
        from deltalake import WriterProperties, write_deltalake

        if is_append_only(table):
            raise self._append_only()
        check_partitions(table, self._name, batch.files)
        if grown is not None:
            # A commit of its own: a crash after it leaves a table that has the columns already.
            table.alter.add_columns([*grown.fields], commit_properties=_without_retries())
        columns = pa.schema(table.schema().to_arrow()).remove_metadata()
        write_deltalake(
            # The table that was compared: a commit since then by this query is a conflict.
            table,
            batch.rows(columns),
            mode="overwrite",
            predicate=predicate_of(batch.removals, columns),
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=_identity(batch, table.version() + 1),
        )

    def _check_rules(self, table: DeltaTable, present: Any, batch: WrittenBatch) -> None:
        """Refuse what the table does not allow in rows, which nothing looks at again."""
        rules = _rules(table, present["fields"])
        if rules:
            raise has_rules(self._name, rules)
        never_null = [path for path, field in _columns(present["fields"]) if not field["nullable"]]
        batch.check_never_null(never_null, self._name)


def _rules(table: DeltaTable, fields: Sequence[Any]) -> list[str]:
    """What a writer of rows has to check or to make for this table."""
    rules = [
        f"{name}={value}"
        for name, value in table.metadata().configuration.items()
        if name.startswith("delta.constraints.") or (name == _MAPPING and value != "none")
    ]
    for path, field in _columns(fields):
        rules += [f"{name} of {'.'.join(path)}" for name in _RULES if name in field["metadata"]]
    return rules


def _plain_column(schema: Schema, partitions: Sequence[str]) -> str | None:
    """A column that filters may name: one of none of these values selects no file."""
    from deltalake.schema import PrimitiveType

    plain = (field.name for field in schema.fields if isinstance(field.type, PrimitiveType))
    # A partition column comes first: its values are in the log, also for files without statistics.
    return next(iter(partitions), None) or next(plain, None)


def _needs_feature(schema: Schema, before: Schema) -> bool:
    """True if the table's protocol has to list a new type, which an overwrite does not see to."""
    ntz = '"timestamp_ntz"'
    return ntz in schema.to_json() and ntz not in before.to_json()


def _without_retries(*transactions: Any) -> CommitProperties:
    from deltalake import CommitProperties

    # A conflict waits for a look at the table.
    return CommitProperties(max_commit_retries=0, app_transactions=[*transactions])


def _identity(batch: WrittenBatch, version: int) -> CommitProperties:
    """Return what identifies the batch in a version of the table; conflicts wait for a look."""
    from deltalake import Transaction

    # Without a time, Spark's Delta deletes them at its next checkpoint if the table has
    # delta.setTransactionRetentionDuration, however long that is.
    now = int(time.time() * 1000)
    numbers = _numbers(TableMark(batch.mark, batch.digest), version)
    pairs = [*zip(_names(batch.lineage), numbers, strict=True)]
    pairs.append((f"{_INPUT}{batch.lineage} {batch.origin.reads}", version))
    if batch.continues:
        # Signed: Delta stores 64 bits, and a lineage has as many.
        fork = int.from_bytes(bytes.fromhex(batch.lineage), signed=True)
        pairs.append((f"{batch.continues}{_CONTINUED}", fork))
    return _without_retries(*(Transaction(name, number, now) for name, number in pairs))


def _numbers(newest: TableMark, version: int) -> Sequence[int]:
    """The versions of the applications that are a table's mark."""
    mark, digest = newest.batch, int(newest.digest[:15] or "0", 16)
    return mark.checkpoint, int(mark.checksum or "0", 16), digest, version


def _mark(numbers: Sequence[int]) -> TableMark:
    checkpoint, checksum, digest, _ = numbers
    if not checkpoint:
        return TableMark(NO_BATCH, "")  # See `remove`.
    return TableMark(BatchMark(checkpoint, f"{checksum:015x}"), f"{digest:015x}")


def _names(lineage: str) -> Sequence[str]:
    """The applications of a mark: checkpoint, its checksum, digest of files, version of table."""
    return lineage, f"{lineage}-checksum", f"{lineage}-files", f"{lineage}-version"


def _check_name(path: str, table: str) -> None:
    """Refuse a path that readers of the log would take for another; delta-rs escapes none."""
    if ":" in path.partition("/")[0] or any(character in path for character in "\t\n\r"):
        raise TableError(
            "the name of a data file cannot be written to a Delta table",
            table,
            repr(path),
            "no tab or line break; and no colon directly in the table's directory, because Spark "
            "takes what is before it for the scheme of a URL",
            "Rename the file, move it into a folder, or write without writeCopy=never.",
        )


_RULES: Final = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
"""Metadata of columns by which a writer has to check or make values."""


def _columns(fields: Sequence[Any], outer: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The columns of a schema in Delta's JSON, and the fields of structs."""
    for field in fields:
        path = (*outer, field["name"])
        yield path, field
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _columns(field["type"]["fields"], path)

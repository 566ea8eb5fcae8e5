"""Batches without a table format: one manifest a batch, created once and never changed."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from ..checkpoint_meta.documents.batch_mark import BatchMark, TableInput
from ..checkpoint_meta.storage.urls import Location, hadoop_pattern
from ..checkpoint_meta.stores.contract import in_parallel
from ..checkpoint_meta.stores.open_store import check_exclusive_creates, open_store
from ..errors import TableError
from .batch_order import TableMark
from .table_sink import TableSink
from .written_batch import WrittenBatch, digest_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANIFESTS: Final = "_sluice"
"""Directory of the manifests below a `parquet:` target; Spark's listings leave out its name."""

_FOLDER: Final = "manifests"
_IDENTITY: Final = "identity"


class Manifests(TableSink):
    """The manifests of one directory; call it with a batch, as `foreachBatch` does."""

    format = "manifests"

    def __init__(self, directory: str, storage_options: Mapping[str, Any]) -> None:
        super().__init__(Location.of(directory).url, storage_options)
        self._store = open_store(self._name, storage_options)

    @override
    def check_place(self) -> None:
        check_exclusive_creates(self._name, self._storage_options, "the manifests")

    @override
    def opened(self) -> Sequence[str]:
        return self._store.list(_FOLDER)

    @override
    def columns(self) -> None:
        return None

    @override
    def newest(self, table: Sequence[str], lineage: str) -> TableMark | None:
        return next((mark for mark, _ in self.batches(table, lineage)), None)

    @override
    def _marks(
        self, table: Sequence[str], lineage: str
    ) -> Iterator[tuple[TableMark, Sequence[str]]]:
        # Names sort by checkpoint.
        for leaf in sorted(table, reverse=True):
            if leaf.startswith(f"{lineage}-"):
                manifest = self._manifest(leaf)
                mark = BatchMark(manifest["checkpoint"], manifest["checksum"])
                paths = [str(file["path"]) for file in manifest["files"]]
                yield TableMark(mark, digest_of(paths)), [path.rpartition("/")[2] for path in paths]

    @override
    def _fork_at(self, table: Sequence[str], end: str) -> str:
        # Names sort by query, and then by checkpoint: the first of each may be that of a fork.
        firsts = {leaf.partition("-")[0]: leaf for leaf in sorted(table, reverse=True)}
        forks = (
            lineage
            for lineage, leaf in firsts.items()
            if not end.startswith(f"{lineage}-") and self._manifest(leaf).get("continues") == end
        )
        return next(forks, "")

    @override
    def _inputs(self, table: Sequence[str]) -> Iterator[tuple[str, TableInput]]:
        for manifest in in_parallel(self._manifest, table):
            yield manifest["lineage"], TableInput(**manifest["reads"])

    @override
    def files(self, table: Sequence[str]) -> Sequence[str]:
        return [str(file["path"]) for leaf in table for file in self._manifest(leaf)["files"]]

    @override
    def remove(
        self, table: Sequence[str], paths: Sequence[str], lineage: str, newest: TableMark
    ) -> None:
        # The newest first: a crash between two leaves the table ahead by fewer batches.
        for leaf in sorted(table, reverse=True):
            if leaf.startswith(f"{lineage}-") and {*self.files([leaf])} <= {*paths}:
                self._store.delete(f"{_FOLDER}/{leaf}")

    @override
    def _commit(self, table: Sequence[str], batch: WrittenBatch) -> None:
        name = f"{_FOLDER}/{batch.lineage}-{batch.mark.checkpoint:010d}.json"
        self._store.publish(name, batch.to_json())
        try:
            # Nothing else says that the batch is in the table.
            self._store.read(name)
        except FileNotFoundError as error:
            raise TableError(
                "the manifest of a batch is missing directly after it was written",
                f"{self._name}/{name}",
                "an answer of success, and no such object",
                "a store that keeps what it has confirmed",
                "Check the store, then start the query again: it repeats the batch.",
            ) from error

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        # Another driver has published the manifest of this checkpoint: the next look says whether
        # it has the same files.
        return (FileExistsError,)

    def _manifest(self, leaf: str) -> Mapping[str, Any]:
        manifest: Mapping[str, Any] = json.loads(self._store.read(f"{_FOLDER}/{leaf}"))
        return manifest

    @override
    def identity(self) -> str:
        """Drawn for the directory when it has manifests; empty before."""
        if not self._store.list(_FOLDER):
            return ""
        with contextlib.suppress(FileExistsError):
            self._store.publish(_IDENTITY, f"{uuid.uuid4()}\n".encode())
        return f"manifests:{self._store.read(_IDENTITY).decode().strip()}"

    def paths(self) -> Sequence[str]:
        """All data files of all batches."""
        return self.files(self.opened())

    def _files(self) -> Iterator[Mapping[str, Any]]:
        for leaf in self._store.list(_FOLDER):
            yield from self._manifest(leaf)["files"]

    def frame(self, spark: SparkSession | None = None) -> DataFrame:
        """The rows of exactly these files; columns of all of them, and of partitions, as strings.

        Args:
            spark: the session; by default the active one.

        Raises:
            TableError: there are no manifests, or no session.
        """
        from pyspark.sql import SparkSession
        from pyspark.sql.types import StringType, StructField, StructType

        session = spark or SparkSession.getActiveSession()
        files = list(self._files())
        paths = [str(file["path"]) for file in files]
        if session is None or not paths:
            raise TableError(
                "nothing to read: no manifests, or no session of Spark",
                self._name,
                "no session of Spark" if paths else "no manifests",
                "a session, and a directory that tables.manifest has written to",
            )
        reader = session.read.option("mergeSchema", "true").option("basePath", _base(paths))
        names = [hadoop_pattern(_with_scheme(path)) for path in paths]
        rows = reader.parquet(*names)
        partitions = {name for file in files for name in file["partition"]}
        if not partitions:
            return rows
        # Spark would make the number 1 of the text 01.
        schema = [
            StructField(f.name, StringType()) if f.name in partitions else f for f in rows.schema
        ]
        return reader.schema(StructType(schema)).parquet(*names)


def _base(paths: Sequence[str]) -> str:
    """Return what is above the partition directories of all files."""
    folders = {path.rpartition("/")[0] for path in paths}
    parts = [folder.split("/") for folder in folders]
    common = list(os.path.commonprefix(parts))  # noqa: RUF071 - of lists; commonpath spoils URLs
    # Where all files are in one partition, its name has to stay below `basePath`, or Spark makes no
    # column of it.
    while common and "=" in common[-1]:
        common.pop()
    return _with_scheme("/".join(common))


def _with_scheme(path: str) -> str:
    # Hadoop's default file system is not the local one on a cluster.
    return f"file:{path}" if path.startswith("/") else path

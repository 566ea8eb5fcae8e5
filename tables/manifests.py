"""Batches without a table format: one manifest a batch, created once and never changed."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..checkpoint_meta.storage.urls import absolute, hadoop_pattern
from ..checkpoint_meta.stores.exclusive_creates import check_exclusive_creates
from ..checkpoint_meta.stores.open_store import open_store
from ..errors import TableError
from .written_batch import FileBatch, WrittenBatch, not_next

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDER = "manifests"
_IDENTITY = "identity"


class Manifests:
    """The manifests of one directory; call it with a batch, as `foreachBatch` does."""

    def __init__(self, directory: str, storage_options: Mapping[str, Any]) -> None:
        self._directory = absolute(directory)
        self._storage_options = storage_options
        self._store = open_store(self._directory, storage_options)

    def check_place(self) -> None:
        """See `TableSink.check_place`."""
        check_exclusive_creates(self._directory, self._storage_options, "the manifests")

    def __call__(self, frame: DataFrame | FileBatch, _: int) -> None:
        """Publish the manifest of a batch, unless it is there.

        Raises:
            TableError: it is there with other files, or the files are gone.
        """
        self.check_place()
        batch = WrittenBatch.of(frame, self._storage_options)
        if batch is not None:
            self.add(batch)

    def add(self, batch: WrittenBatch) -> None:
        """See `__call__`."""
        batch.check_there()
        name = f"{_FOLDER}/{_manifest_of(batch.lineage, batch.checkpoint)}"
        try:
            # The same bytes are this batch again: Spark repeats a batch that it did not log as
            # complete.
            self._store.publish(name, batch.to_json())
            # Nothing else says that the batch is in the table, and no later batch looks at it.
            self._store.read(name)
        except FileNotFoundError as error:
            raise TableError(
                "the manifest of a batch is missing directly after it was written",
                f"{self._directory}/{name}",
                "an answer of success, and no such object",
                "a store that keeps what it has confirmed",
                "Check the store, then start the query again: it repeats the batch.",
            ) from error
        except FileExistsError:
            raise not_next(batch, self._directory, f"{name} with other files") from None

    def has(self, lineage: str, checkpoint: int) -> bool:
        """True if there is a manifest of this batch of a query, or of a later one."""
        name = _manifest_of(lineage, checkpoint)
        return any(leaf >= name for leaf in self._store.list(_FOLDER) if leaf[:16] == name[:16])

    def identity(self) -> str:
        """Drawn for the directory when it has manifests; empty before."""
        if not self._store.list(_FOLDER):
            return ""
        with contextlib.suppress(FileExistsError):
            self._store.publish(_IDENTITY, f"{uuid.uuid4()}\n".encode())
        return f"manifests:{self._store.read(_IDENTITY).decode().strip()}"

    def paths(self) -> Sequence[str]:
        """All data files of all batches."""
        return [str(file["path"]) for file in self._files()]

    def _files(self) -> Iterator[Mapping[str, Any]]:
        for leaf in self._store.list(_FOLDER):
            yield from json.loads(self._store.read(f"{_FOLDER}/{leaf}"))["files"]

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
                self._directory,
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


def _manifest_of(lineage: str, checkpoint: int) -> str:
    return f"{lineage}-{checkpoint:010d}.json"


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

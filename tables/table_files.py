"""Which files a table names: a sweep must not delete those, even if no reader commit names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..checkpoint_meta.documents.batch_mark import TableInput
from ..checkpoint_meta.documents.written_file import FileName
from ..checkpoint_meta.storage.open_storage import open_storage
from ..checkpoint_meta.storage.urls import Location
from .batch_order import TableMark
from .delta_table import DeltaSink
from .iceberg_files import written_name
from .iceberg_history import Snapshots, inputs_in
from .manifests import MANIFESTS, Manifests

_METADATA: Final = ".metadata.json"


@dataclass(frozen=True)
class TableFiles:
    """The data files of a table."""

    names: frozenset[str]
    """Their names, also those of versions that can still be read."""

    newest: Callable[[str], TableMark | None]
    """Lineage -> the newest batch of that query."""

    @classmethod
    def of(cls, table: str, storage_options: Mapping[str, Any]) -> TableFiles:
        """Those of a Delta table, a directory of manifests, or an Iceberg *.metadata.json.

        Names nothing if there is no table.
        """
        if table.endswith(_METADATA):
            from pyiceberg.table import StaticTable

            iceberg = StaticTable.from_metadata(table, dict(storage_options))
            paths = iceberg.inspect.all_data_files().column("file_path").to_pylist()
            snapshots = Snapshots.of(iceberg.metadata)
            return cls(_names(paths), partial(snapshots.mark, iceberg.properties))
        if Location.of(table).scheme not in ("hdfs", "viewfs"):  # deltalake does not know it
            sink = DeltaSink(table, storage_options)
            delta = sink.opened()
            if delta is not None:
                # Older versions of the table name files that its log has as removed.
                removed = delta.vacuum(0, dry_run=True, enforce_retention_duration=False)
                return cls(_names([*delta.file_uris(), *removed]), partial(sink.newest, delta))
        manifests = Manifests(table, storage_options)
        leaves = manifests.opened()
        return cls(_names(manifests.files(leaves)), partial(manifests.newest, leaves))

    def has(self, path: str) -> bool:
        """True if the table names a file."""
        return written_name(path) in self.names

    def had(self, path: str) -> bool:
        """True if a file is part of the table, or belongs to a batch before the newest one."""
        if self.has(path):
            return True
        name = FileName.parse(path)
        newest = None
        with suppress(LookupError):
            newest = None if name is None else self.newest(name.checkpoint.lineage)
        # Files of older batches may have been rewritten or deleted there since.
        return bool(name and newest and name.checkpoint.ref.checkpoint < newest.batch.checkpoint)


@dataclass(frozen=True)
class TableAround:
    """The table around a directory of data files, as its sink has it."""

    _identity: str
    """Empty without a table."""

    inputs: Callable[[], Iterable[TableInput]]
    """See `TableSink.inputs`."""

    def identity(self) -> str:
        """See `TableSink.identity`."""
        return self._identity


def table_around(write_to: str, storage_options: Mapping[str, Any]) -> TableAround | None:
    """The table that has the data files of a directory; None if that cannot be known."""
    try:
        for table in _tables(write_to, storage_options):
            if table.endswith(_METADATA):
                from pyiceberg.table import StaticTable

                iceberg = StaticTable.from_metadata(table, dict(storage_options))
                inputs = tuple(reads for _, reads in inputs_in(iceberg.properties))
                identity = f"iceberg:{iceberg.metadata.table_uuid}"
                return TableAround(identity, inputs.__iter__)
            is_manifests = table.endswith(f"/{MANIFESTS}")
            sink = (Manifests if is_manifests else DeltaSink)(table, storage_options)
            if identity := sink.identity():
                return TableAround(identity, sink.inputs)
    except Exception:  # noqa: BLE001 - of any library; the host's sink may know a table better
        return None
    return TableAround("", list)


def named_by_tables_of(
    write_to: str, storage_options: Mapping[str, Any]
) -> Callable[[], Callable[[str], bool]]:
    """Return a function that opens the tables around a directory of data files.

    The result of it says whether one of these tables names a file. A Delta table is that directory
    or above it, manifests are below it, and Iceberg's metadata are next to it.
    """

    def opened() -> Callable[[str], bool]:
        try:
            around = [TableFiles.of(t, storage_options) for t in _tables(write_to, storage_options)]
        except Exception:  # noqa: BLE001 - of any library; a table that cannot be read may name all
            return lambda _: True
        return lambda path: any(table.has(path) for table in around)

    return opened


def _names(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(map(written_name, paths))


def _tables(write_to: str, storage_options: Mapping[str, Any]) -> Iterator[str]:
    storage, root = open_storage(write_to, storage_options)
    yield f"{storage.url(root).rstrip('/')}/{MANIFESTS}"
    parts = root.rstrip("/").split("/")
    for count in range(len(parts), 0, -1):
        folder = "/".join(parts[:count])
        if not folder:
            return
        if next(iter(storage.files(f"{folder}/_delta_log")), None) is not None:
            yield storage.url(folder)
        metadata = [n for n in storage.files(f"{folder}/metadata") if n.endswith(_METADATA)]
        if metadata:
            yield storage.url(max(metadata))

"""Whether data files have become part of a table: what a sweep reports, and never deletes.

A table has a file if its newest batch of that query is not older: files that were rewritten or
deleted there since then were part of it, too. Not here: adding files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ..checkpoint_meta.documents.landed_file import FileName
from ..errors import TableError
from .delta_table import DeltaSink
from .iceberg_table import newest_checkpoint
from .manifests import Manifests


def membership(table: str, storage_options: Mapping[str, Any]) -> Callable[[str], bool]:
    """What says of the path of a landed file whether it is or was part of a table.

    Args:
        table: directory or URL of a Delta table or of manifests; of Iceberg the metadata file.
        storage_options: as `storageOptions` of the stream.

    Raises:
        TableError: there is no such table.
    """
    newest = _newest(table, storage_options)
    if newest is not None:
        known = cache(newest)
        return lambda path: _is_within(path, known)
    paths = set(Manifests(table, storage_options).paths())
    if not paths:
        raise TableError(
            "no table to compare data files with",
            table,
            "neither a Delta table nor manifests",
            "a Delta table, the directory of tables.manifest, or an Iceberg *.metadata.json",
        )
    return paths.__contains__


def _newest(table: str, storage_options: Mapping[str, Any]) -> Callable[[str], int] | None:
    """Lineage -> checkpoint of the newest batch, 0 without one; None for other tables."""
    if table.endswith(".metadata.json"):
        from pyiceberg.table import StaticTable

        properties = StaticTable.from_metadata(table).properties
        return lambda lineage: newest_checkpoint(properties, lineage)
    delta = DeltaSink(table, storage_options).opened()
    # A query that has added nothing yet has no transaction here; checkpoints begin with 1.
    return None if delta is None else lambda lineage: delta.transaction_version(lineage) or 0


def _is_within(path: str, newest: Callable[[str], int]) -> bool:
    name = FileName.parse(path)
    return name is not None and name.ref.checkpoint <= newest(name.lineage)

"""Where the batches go: `delta:URL`, `iceberg:CATALOG.TABLE`, `parquet:URL`, or a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...errors import OptionError
from ...tables import delta, iceberg, manifest
from ...tables.table_sink import TableSink
from ...tables.written_batch import FileBatch

MANIFESTS: Final = "_sluice"
"""Directory of the manifests below a `parquet:` target; Spark's listings leave out its name."""

Sink = Callable[[FileBatch, int], None]


@dataclass(frozen=True)
class Target:
    """A sink, and the directory of its data files."""

    sink: Sink
    write_to: str = ""
    """Empty if the options say it."""

    def columns(self) -> str | None:
        """The columns of the table for the writers of data files; None if it has none."""
        return self.sink.columns() if isinstance(self.sink, TableSink) else None


def target_of(to: str | Sink, storage_options: Mapping[str, Any]) -> Target:
    """The target that `--to` or `to` names.

    Raises:
        OptionError: it names no kind of target, or a table that cannot be opened.
    """
    if not isinstance(to, str):
        return Target(to)
    kind, _, place = to.partition(":")
    if place and kind == "delta":
        return Target(delta(place, storage_options=storage_options), place)
    if place and kind == "parquet":
        directory = f"{place.rstrip('/')}/{MANIFESTS}"
        return Target(manifest(directory, storage_options=storage_options), place)
    catalog, _, name = place.partition(".")
    if kind == "iceberg" and name:
        return _iceberg(catalog, name, storage_options)
    raise OptionError("to: not a table", "", to, "delta:URL, iceberg:CATALOG.TABLE or parquet:URL")


def _iceberg(catalog: str, name: str, storage_options: Mapping[str, Any]) -> Target:
    from pyiceberg.catalog import load_catalog

    try:
        table = load_catalog(catalog).load_table(name)
    except Exception as error:  # each catalog has errors of its own
        found = f"{type(error).__name__}: {error}"
        expected = "a catalog that pyiceberg is configured for, and a table in it"
        raise OptionError(
            "to: cannot open the table", f"{catalog}.{name}", found, expected
        ) from error
    sink = iceberg(table, storage_options=storage_options)
    return Target(sink, f"{table.location().rstrip('/')}/data")

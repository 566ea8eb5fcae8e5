"""An Iceberg table in a catalog of its own, its sink, and batches for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.utils.config import Config

from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tables.written_batch import WrittenBatch
from pyspark_sluice.tests.tables.sinks import batch_of

if TYPE_CHECKING:
    import pytest


def catalog_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """The catalog that the environment names `lake`, with the table `db.orders`."""
    place = {"uri": f"sqlite:///{folder}/c.db", "warehouse": str(folder), "type": "sql"}
    for name, value in place.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    # The configuration of catalogs is read once, at the import.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("lake")
    catalog.create_namespace("db")
    catalog.create_table("db.orders", Schema())
    return catalog


class IcebergLake:
    """A table with `columns`, partitioned by transforms of columns."""

    def __init__(
        self, folder: Path, columns: Schema, *, version: str = "2", **transforms: str
    ) -> None:
        where = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder / "w")}
        self.catalog = SqlCatalog("x", **where)
        self.catalog.create_namespace("lake")
        self.data = folder / "data"
        ids = {field.name: field.field_id for field in columns.fields}
        fields = [
            PartitionField(ids[name], 1000 + number, parse_transform(text), f"{name}_part")
            for number, (name, text) in enumerate(transforms.items())
        ]
        table = self.catalog.create_table(
            "lake.orders",
            columns,
            partition_spec=PartitionSpec(*fields),
            properties={"format-version": version},
        )
        self.sink = IcebergSink(table)

    @property
    def table(self) -> Table:
        """The table as it is now, as another process opens it."""
        return self.catalog.load_table("lake.orders")

    def batch(self, number: int, rows: pa.Table, **options: Any) -> WrittenBatch:
        """A batch with the field ids that the sink passes to readers."""
        return batch_of(self.data, number, rows, **{"columns": self.sink.columns(), **options})

    def add(self, number: int, rows: pa.Table, **options: Any) -> None:
        """Add a batch to the table."""
        self.sink.add(self.batch(number, rows, **options))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table by `id`."""
        return sorted(self.table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])

    def ids(self, *expression: Any) -> list[int]:
        """The ids of the rows that a scan finds."""
        return sorted(self.table.scan(*expression).to_arrow()["id"].to_pylist())

    def files(self, *expression: Any) -> list[Any]:
        """The data files that a scan plans."""
        return [task.file for task in self.table.scan(*expression).plan_files()]

"""Sinks for streams whose rows are landed (`landAt`): each batch becomes part of a table once.

Readers write the rows into Parquet files, and the stream has one row for each file. A sink is what
`foreachBatch` takes. It makes the files of a batch part of its table in one transaction that names
the query and the checkpoint, so that a batch that is repeated changes nothing.

    >>> from pyspark_sluice import tables
    >>> files = (
    ...     spark.readStream.format("sluice")
    ...     .option("fileFormat", "json")
    ...     .option("landAt", table)
    ...     .option("landSchema", "id long, name string")
    ...     .option("checkpointLocation", checkpoint)
    ...     .load(landing)
    ... )
    >>> writer = files.writeStream.option("checkpointLocation", checkpoint)
    >>> writer = writer.trigger(availableNow=True)
    >>> writer.foreachBatch(tables.delta(table)).start().awaitTermination()

The examples below go on with this `writer`.
`delta` and `iceberg` need the extra `tables`. `manifest` needs no table format, and `read` gives
Spark the rows of the files that the manifests list. `frame` is for formats that only Spark reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from .manifests import Manifests

__all__ = ["delta", "frame", "iceberg", "manifest", "read"]

_GLOB = re.compile(r"[*?\[\]{}\\]")

Sink = Callable[["DataFrame", int], None]


def delta(table: str, *, storage_options: Mapping[str, Any] | None = None) -> Sink:
    """A sink that adds the files of each batch to a Delta table, which is created if it is missing.

        >>> writer.foreachBatch(delta(table)).start().awaitTermination()
        >>> from deltalake import DeltaTable
        >>> DeltaTable(table).to_pyarrow_table().num_rows
        2

    Args:
        table: its directory or URL; `landAt` is that, or lies below it.
        storage_options: as `storageOptions` of the stream.

    The sink raises `TableError` for a batch that does not follow what the table has of this query,
    for files that are gone, and for columns that do not fit the table's.
    """
    from .delta_table import DeltaSink

    return DeltaSink(table, storage_options or {})


def iceberg(table: Any) -> Sink:
    """A sink that adds the files of each batch to an Iceberg table.

        >>> orders = catalog.load_table("lake.orders")
        >>> writer.foreachBatch(iceberg(orders)).start().awaitTermination()
        >>> catalog.load_table("lake.orders").scan().to_arrow().num_rows
        2

    Args:
        table: a `pyiceberg.table.Table`, not partitioned. Columns that it lacks are added.

    The sink raises `TableError` as `delta` does.
    """
    from .iceberg_table import IcebergSink

    return IcebergSink(table)


def manifest(directory: str, *, storage_options: Mapping[str, Any] | None = None) -> Manifests:
    """A sink without a table format: one manifest for each batch, created and never changed.

        >>> sink = manifest(manifests)
        >>> writer.foreachBatch(sink).start().awaitTermination()
        >>> sink.frame().count()
        2

    Args:
        directory: of the manifests, not where the data files are.
        storage_options: as `storageOptions` of the stream.
    """
    from .manifests import Manifests

    return Manifests(directory, storage_options or {})


def read(directory: str, *, storage_options: Mapping[str, Any] | None = None) -> DataFrame:
    """The rows of exactly the files that the manifests in `directory` name, through Spark.

        >>> writer.foreachBatch(manifest(manifests)).start().awaitTermination()
        >>> read(manifests).count()
        2

    Raises:
        TableError: there are no manifests, or no session of Spark.
    """
    return manifest(directory, storage_options=storage_options).frame()


def frame(
    batch: DataFrame,
    format: str,  # noqa: A002 - as in Spark
    options: Mapping[str, str] | None = None,
    *,
    schema: StructType | str | None = None,
) -> DataFrame:
    """The content of a batch's files through a reader of Spark's own, for formats such as XML.

        >>> def write(batch, number):
        ...     rows = frame(batch, "json", schema="id long, name string")
        ...     rows.write.mode("append").parquet(table)
        >>> writer_of_paths.foreachBatch(write).start().awaitTermination()
        >>> spark.read.parquet(table).count()
        2

    For streams of `fileFormat=binaryFile` without the column `content`: Sluice says which files are
    in the batch, exactly once, and Spark reads them whole. Files are not cut, and one that is
    replaced after its batch was planned is read as it is then.

    Args:
        batch: what `foreachBatch` is given.
        format: any that `spark.read.format` knows.
        options: of that reader.
        schema: of the rows. Without it Spark infers one for each batch, and its XML reader then
            finds no files with any of * ? [ ] { } in their names.
    """
    paths = [row.path for row in batch.select("path").collect()]
    reader = batch.sparkSession.read.format(format).options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    # Spark takes characters such as * in paths for patterns.
    return reader.load([_GLOB.sub(r"\\\g<0>", path) for path in paths])

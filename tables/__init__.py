"""Sinks for streams with `writeTo`: each batch is added to a table exactly once.

Readers write the rows into Parquet files, and the stream has one row for each file. Pass a sink to
`foreachBatch`. It adds the files of a batch to its table in one transaction, which records the
query and the checkpoint. If Spark repeats the batch, the sink finds that record and adds nothing.

    >>> from pyspark_sluice import tables
    >>> files = (
    ...     spark.readStream.format("sluice")
    ...     .option("fileFormat", "json")
    ...     .option("writeTo", table)
    ...     .option("writeSchema", "id long, name string")
    ...     .option("checkpointLocation", checkpoint)
    ...     .load(landing)
    ... )
    >>> writer = files.writeStream.option("checkpointLocation", checkpoint)
    >>> writer = writer.trigger(availableNow=True)
    >>> writer.foreachBatch(tables.delta(table)).start().awaitTermination()

The examples of the functions use this `writer`.

`delta` and `iceberg` need the extra `tables`. `manifest` needs no table format; `read` returns the
rows of the files that its manifests list. `frame` is for formats that only Spark can read, and
`query_id` for sinks of your own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from .manifests import Manifests
    from .written_batch import FileBatch

__all__ = ["delta", "frame", "iceberg", "manifest", "query_id", "read"]

Sink = Callable[["DataFrame | FileBatch", int], None]
"""Spark passes a data frame with a row for each file; `pyspark_sluice.run` passes a `FileBatch`."""


def delta(table: str, *, storage_options: Mapping[str, Any] | None = None) -> Sink:
    """A sink that adds the files of each batch to a Delta table. It creates the table if necessary.

        >>> writer.foreachBatch(delta(table)).start().awaitTermination()
        >>> from deltalake import DeltaTable
        >>> DeltaTable(table).to_pyarrow_table().num_rows
        2

    Args:
        table: directory or URL of the table. `writeTo` must be the same or below it.
        storage_options: like the option `storageOptions` of the stream.

    The sink raises `TableError` if the table already contains a later batch of this query, or a
    different one with the same checkpoint, if a file of the batch is missing, or if its columns do
    not fit those of the table.
    """
    from .delta_table import DeltaSink

    return DeltaSink(table, storage_options or {})


def iceberg(table: Any, *, storage_options: Mapping[str, Any] | None = None) -> Sink:
    """A sink that adds the files of each batch to an Iceberg table.

        >>> orders = catalog.load_table("lake.orders")
        >>> writer.foreachBatch(iceberg(orders)).start().awaitTermination()
        >>> catalog.load_table("lake.orders").scan().to_arrow().num_rows
        2

    Args:
        table: a `pyiceberg.table.Table`, which may be partitioned. The sink adds columns that it
            lacks.
        storage_options: like the option `storageOptions` of the stream, to check the files of each
            batch. The table itself uses the properties of its catalog, such as `s3.endpoint`.

    The sink raises `TableError` in the same cases as that of `delta`.
    """
    from .iceberg_table import IcebergSink

    return IcebergSink(table, storage_options)


def manifest(directory: str, *, storage_options: Mapping[str, Any] | None = None) -> Manifests:
    """A sink without a table format. It writes one manifest per batch, and never changes it.

        >>> sink = manifest(manifests)
        >>> writer.foreachBatch(sink).start().awaitTermination()
        >>> sink.frame().count()
        2

    Args:
        directory: directory or URL for the manifests, not that of the data files.
        storage_options: like the option `storageOptions` of the stream.
    """
    from .manifests import Manifests

    return Manifests(directory, storage_options or {})


def read(directory: str, *, storage_options: Mapping[str, Any] | None = None) -> DataFrame:
    """Read exactly the files that the manifests in `directory` list, as a data frame.

        >>> writer.foreachBatch(manifest(manifests)).start().awaitTermination()
        >>> read(manifests).count()
        2

    Raises:
        TableError: there are no manifests, or no Spark session is active.
    """
    return manifest(directory, storage_options=storage_options).frame()


def frame(
    batch: DataFrame,
    format: str,  # noqa: A002 - as in Spark
    options: Mapping[str, str] | None = None,
    *,
    schema: StructType | str | None = None,
) -> DataFrame:
    """Read the files of a batch with one of Spark's own readers.

        >>> def write(batch, number):
        ...     rows = frame(batch, "json", schema="id long, name string")
        ...     rows.write.mode("append").parquet(table)
        >>> writer_of_paths.foreachBatch(write).start().awaitTermination()
        >>> spark.read.parquet(table).count()
        2

    For a stream with `fileFormat=binaryFile` and a schema without `content`: Sluice decides which
    files are in the batch, each exactly once, and Spark reads them. Files are not split. If a file
    is replaced after its batch was planned, Spark reads the new version.

    Args:
        batch: the data frame that `foreachBatch` passes.
        format: any format that `spark.read.format` accepts.
        options: options of that format.
        schema: schema of the rows. Without it, Spark infers a schema for each batch, and its XML
            reader does not find files whose names contain any of * ? [ ] { }.
    """
    from ..checkpoint_meta.storage.urls import hadoop_pattern

    paths = [hadoop_pattern(row.path) for row in batch.select("path").collect()]
    reader = batch.sparkSession.read.format(format).options(**(options or {}))
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(paths)


def query_id(checkpoint: str, *, storage_options: Mapping[str, Any] | None = None) -> str:
    """The id of a query: with the number of a batch, the name under which a sink remembers it.

        >>> writer.foreachBatch(delta(table)).start().awaitTermination()
        >>> len(query_id(checkpoint))
        36

    A query that starts with a new checkpoint has a new id, and counts its batches from 0 again.

    Args:
        checkpoint: the `checkpointLocation` of the query. Spark writes the id there at its start.
        storage_options: like the option `storageOptions` of the stream.

    Raises:
        FileNotFoundError: no query has been started with this checkpoint.
        StateCorruptError: the id cannot be read.
    """
    from ..checkpoint_meta.storage.open_storage import open_storage
    from ..checkpoint_meta.storage.urls import hadoop_path, join
    from ..errors import damaged_id

    # Spark writes it through Hadoop, which knows more stores than obstore does.
    storage, name = open_storage(join(hadoop_path(checkpoint), "metadata"), storage_options or {})
    try:
        return str(json.loads(storage.whole(name))["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise damaged_id(storage.url(name), str(error)) from error

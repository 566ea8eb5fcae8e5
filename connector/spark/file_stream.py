"""`pyspark_sluice.stream`: a stream of files whose checkpoint is named once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ...tables import delta
from ..options.call import checked, inferred_types, written_columns
from .registration import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def stream(
    spark: SparkSession,
    path: str,
    *,
    checkpoint: str,
    format: str,  # noqa: A002 - the word of Spark's readers and writers
    schema: str | None = None,
    **options: object,
) -> FileStream:
    """Describe a stream of the files below a path; `to_delta` or `rows` starts it.

    The checkpoint is set on both sides of the query, and the source is registered in the session.

        >>> orders = stream(spark, landing, checkpoint=checkpoint, format="json")
        >>> orders.to_delta(table).awaitTermination()
        >>> spark.read.parquet(table).count()
        2

    Args:
        spark: a classic or Spark Connect session.
        path: the directory, file or URL to ingest.
        checkpoint: the `checkpointLocation` of the query: a directory of its own.
        format: the `fileFormat`.
        schema: columns of the rows, such as `id long, name string`. Without it, the columns and
            their types are inferred, and the schema evolves.
        options: other options of the source.

    Raises:
        OptionError: an option is wrong. The message lists every problem.
    """
    register(spark)
    named = {"fileFormat": format, "checkpointLocation": checkpoint, **options}
    return FileStream(spark, path, checkpoint, checked(named), schema)


@dataclass(frozen=True)
class FileStream:
    """A stream of files that `stream` has described."""

    spark: SparkSession
    path: str
    checkpoint: str
    options: dict[str, str]
    schema: str | None = None

    def rows(self) -> DataFrame:
        """Return the rows of the files as a streaming DataFrame."""
        reader = self.spark.readStream.format("sluice")
        if self.schema is None:
            inferred = inferred_types(self.options["fileFormat"])
            return reader.options(**{**inferred, **self.options}).load(self.path)
        return reader.options(**self.options).schema(self.schema).load(self.path)

    def writer(self, rows: DataFrame, every: float | None = None) -> DataStreamWriter:
        """Return the writer of a query over `rows`, with the checkpoint and the trigger.

        Args:
            rows: the result of `rows`, as the query changes it.
            every: seconds between two batches. By default the query reads what exists when it
                starts, and then ends.
        """
        writer = rows.writeStream.option("checkpointLocation", self.checkpoint)
        if every is None:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=f"{max(round(every * 1000), 1)} milliseconds")

    def to_delta(self, table: str, *, every: float | None = None) -> StreamingQuery:
        """Start a query that writes the rows straight into a Delta table.

        The rows do not pass through the JVM; see `tables.delta`.

        Args:
            table: directory or URL of the table, which is created if it does not exist.
            every: seconds between two batches. By default the query reads what exists when it
                starts, and then ends.
        """
        return self.to_sink(delta(table), write_to=table, every=every)

    def to_sink(
        self, sink: Callable[..., None], *, write_to: str, every: float | None = None
    ) -> StreamingQuery:
        """Start a query that writes data files below `write_to`, and passes them to a sink.

        Args:
            sink: a sink of `tables`, such as `tables.iceberg(table)`.
            write_to: directory or URL of the data files.
            every: as in `to_delta`.
        """
        from ..query.start_check import TERMS_IN_SPARK, check_start
        from ..source.rehearsal import check_sink

        columns = written_columns(self.schema, self.options["fileFormat"])
        options = {**columns, **self.options, "writeTo": write_to}
        # A client of Spark Connect may see neither the files nor the checkpoint.
        if getattr(self.spark, "_sc", None) is not None:
            call = {**options, "path": self.path}
            check_sink(call, sink)
            check_start(call, sink, TERMS_IN_SPARK)
        files = self.spark.readStream.format("sluice").options(**options).load(self.path)
        on_batch = cast("Callable[[Any, int], None]", sink)
        return self.writer(files, every).foreachBatch(on_batch).start()

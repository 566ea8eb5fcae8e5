"""Streams for people: `stream`, whose checkpoint is named once, and `run_with_evolution`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ... import errors
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


_EVOLVED = f"{errors.__name__}.{errors.SchemaEvolvedError.__name__}"
# Two errors about the same columns differ in the number of the version.
_VERSION = re.compile(r"\bversion \d+")


def run_with_evolution(
    start: Callable[[], StreamingQuery], timeout: int | None = None
) -> StreamingQuery:
    """Run a query until it ends, and restart it whenever new columns stop it.

    For queries whose schema evolves (`schemaEvolutionMode=addNewColumns`, the default without
    `.schema(...)`): Spark can change the schema of a query only when the query starts.

        >>> def start():
        ...     reader = spark.readStream.format("sluice").option("fileFormat", "json")
        ...     events = reader.option("checkpointLocation", checkpoint).load(landing)
        ...     writer = events.writeStream.option("checkpointLocation", checkpoint)
        ...     return writer.format("parquet").trigger(availableNow=True).start(table)
        >>> query = run_with_evolution(start)
        >>> spark.read.parquet(table).columns
        ['id', 'name']

    Args:
        start: loads the stream and starts the query. It is called for each version of the schema,
            because a data frame keeps the schema that it was loaded with.
        timeout: seconds after which to return even if the query is running; None: no limit.

    Returns:
        The last query, which has ended or is still running after `timeout`.

    Raises:
        StreamingQueryException: the query failed for another reason.
    """
    from pyspark.errors import StreamingQueryException

    deadline = None if timeout is None else time.monotonic() + timeout
    before = ""
    while True:
        query = start()
        try:
            # PySpark refuses a timeout that is not positive.
            left = None if deadline is None else max(1, round(deadline - time.monotonic()))
            query.awaitTermination(left)
            return query
        except StreamingQueryException as error:
            # Spark passes on only the text of a Python error, and puts its own words around it.
            change = str(error).partition(_EVOLVED)[2].partition("SQLSTATE")[0]
            change = _VERSION.sub("", change)
            # The same news twice would mean that `start` does not load the stream again.
            if not change or change == before:
                raise
            before = change

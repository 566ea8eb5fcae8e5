"""Starts a query again whenever its schema has grown."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import errors

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

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

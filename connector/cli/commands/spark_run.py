"""`sluice run --spark`: the same call as a query of Spark, which reports the same batches."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from .... import errors
from ....checkpoint_meta.storage.urls import hadoop_path
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import OptionError, SluiceError
from ...host.embedded_query import SinkTarget
from ...host.run_record import BatchReport, RunRecord
from ...options.model import parse_options
from ...query.spark_checkpoint import splits_of_batch
from ...source.state_location import open_state
from ...spark.file_stream import FileStream, run_with_evolution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def spark_run(
    master: str,
    options: Mapping[str, str],
    target: SinkTarget,
    every: float | None,
    record: RunRecord,
    on_batch: Callable[[BatchReport], None],
) -> None:
    """Run the query to its end; `record` and `on_batch` learn of each batch that is in the table.

    Raises:
        SluiceError: Spark cannot start, or the query failed.
    """
    texts = {name: text for name, text in options.items() if name != "path"}
    path, parsed = options["path"], parse_options(options, streaming=True, names_format=True)
    place = parsed.checkpoint_location or ""
    log = open_store(hadoop_path(place), parsed.storage_options)
    record.begin(parsed)
    state = open_state(parsed)

    def sink(frame: DataFrame, number: int) -> None:
        began, rows = time.monotonic(), _CountedFrame(frame)
        # A sink of `tables` takes what either host passes.
        target.sink(cast("Any", rows), number)
        splits, seconds = splits_of_batch(log, state, number), time.monotonic() - began
        report = BatchReport(number, splits, rows.rows, rows.files, rows.bytes, seconds)
        record.add(report)
        on_batch(report)

    try:
        builder = SparkSession.builder.master(master).appName(f"sluice run {path}")
        session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        found, expected = f"{type(error).__name__}: {error}", "a session, which needs Java 17"
        remedy = "Run `sluice doctor --spark`, or leave --spark out."
        raise OptionError(
            "--spark: Spark does not start", master, found, expected, remedy
        ) from error

    def start() -> StreamingQuery:
        files = session.readStream.format("sluice").options(**texts).load(path)
        writer = FileStream(session, path, place, dict(texts)).writer(files, every)
        return writer.foreachBatch(sink).start()

    try:
        query = run_with_evolution(start)
        record.look(0, _figures(query.lastProgress))
    except StreamingQueryException as error:
        raise _own_error(str(error), place) from error
    finally:
        session.stop()


# Spark puts the traceback of a task or a sink around the message.
_OWN = re.compile(rf"{re.escape(errors.__name__)}\.(\w+): ([^\n]+)")


def _own_error(text: str, place: str) -> SluiceError:
    """The error of this package that ended a query, or one with the first line of Spark's."""
    match = _OWN.search(text)
    kind = getattr(errors, match[1], None) if match else None
    if match is None or kind is None:
        return SluiceError("the query failed in Spark", place, text.partition("\n")[0])
    error: SluiceError = kind(match[2])
    return error


def _figures(progress: Any) -> Mapping[str, Any]:
    """The report of the source in a progress event; empty without one."""
    offset = progress and json.loads(progress.json)["sources"][0]["latestOffset"]
    return offset if isinstance(offset, dict) else {}


class _CountedFrame:
    """A frame of rows about data files, which counts what a sink collects."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self.rows = self.files = self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    def collect(self) -> list[Any]:
        """The rows, read once."""
        rows = self._frame.collect()
        self.files = len(rows)
        self.rows, self.bytes = (sum(row[name] for row in rows) for name in ("rows", "bytes"))
        return rows

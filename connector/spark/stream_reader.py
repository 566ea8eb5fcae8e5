"""Adapts the coordinator to Spark's calls, and a task to a reader.

Spark builds a stream reader in two processes: one pickles it for the executors, which call `read`;
one lives with the query on the driver and calls everything else. Building it is therefore cheap and
pure; the driver's half opens at the first driver call.

Spark 4.2 passes the start offset and a read limit to `latestOffset`, and says when a run ends with
what is there (AvailableNow). Spark 4.0 and 4.1 do neither, so `StartTrackingReader` remembers the
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ..session.processes import plain_errors
from .types import SluicePartition, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from ..query.driver import StreamDriver


class SluiceStreamReader(DataSourceStreamReader):
    """One streaming source of one query: the calls that every Spark 4 makes."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: StructType | pa.Schema,
        *,
        inferred: bool = False,
        writes_files: bool = False,
    ) -> None:
        """With `writes_files` the schema is that of the rows in data files."""
        self._writes_files = writes_files
        self._options = dict(options)
        self._schema = schema
        self._inferred = inferred
        self._driver: StreamDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Its threads and locks cannot be pickled, and no executor needs them.
        return {**self.__dict__, "_driver": None}

    def _opened(self) -> StreamDriver:
        if self._driver is None:
            from ..query.driver import StreamDriver
            from ..source.direct_write import refuse_direct_write
            from ..views.view_reader import refuse_as_stream

            # Not in `streamReader()`: Spark puts an error of its own after one that is raised
            # there.
            refuse_as_stream(self._options)
            if not self._writes_files:
                refuse_direct_write(
                    self._options, "describe the rows of the data files with writeSchema"
                )
            self._driver = StreamDriver(
                self._options, self._arrow_schema(), inferred=self._inferred
            )
        return self._driver

    def _arrow_schema(self) -> pa.Schema:
        # Not before it is needed: Spark puts an error of its own after one in `streamReader()`.
        return arrow_schema(self._schema) if isinstance(self._schema, StructType) else self._schema

    @plain_errors()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first checkpoint."""
        return self._opened().initial_offset()

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """This run ends with what is there now."""
        self._opened().coordinator.prepare_available_now()

    @plain_errors()
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The backlog, for Spark's progress events.

        Spark describes the source there as `PythonMicroBatchStream...@1a2b3c`: the class has no
        `toString` and asks Python for none. So the report says what is read, and where the state
        is.
        """
        return self._opened().report()

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The assignment of the range, out of the checkpoint files."""
        return list(map(SluicePartition, self._opened().partitions(start, end)))

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Let old state go; nothing else depends on this call."""
        self._opened().commit(end)

    def stop(self) -> None:
        """Stop the background threads; may never be called."""
        # A query that failed before its first call, or another process's copy, has nothing open.
        if self._driver is not None:
            self._driver.coordinator.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor: the rows of one partition, then its reader commits."""
        # The driver reads nothing, so what reads is imported on executors only.
        from ..query.partitions import current_attempt, read_partition

        assert isinstance(partition, SluicePartition)
        with plain_errors():
            yield from read_partition(
                self._options,
                self._arrow_schema(),
                partition.value,
                current_attempt(),
                inferred=self._inferred,
            )


class StartTrackingReader(SluiceStreamReader):
    """For Spark 4.0 and 4.1: remembers the start offset, which `latestOffset` does not get there.

    A restarted query first calls `partitions(n, n)` with the newest offset n of Spark's log, and
    then `partitions(n-1, n)` if it repeats that batch. Being asked for the next offset proves that
    everything before it is complete. (Seen on 4.0.5 and 4.1.4.)
    """

    _newest: dict[str, Any] | None = None
    """The newest offset that Spark has; None in a fresh query."""

    _has_answered = False

    @plain_errors()
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # noqa: N802
        """The next checkpoint, already durable; the same offset again if there is nothing new."""
        driver = self._opened()
        self._newest = driver.next_offset(self._newest or driver.initial_offset())
        if not self._has_answered:
            driver.warn_of_unread_files()
        self._has_answered = True
        return self._newest

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The assignment of the range, out of the checkpoint files."""
        is_replay = self._newest == end != start and not self._has_answered
        self._newest = end
        if is_replay:
            self._opened().warn_of_replay()
        return [] if start == end else super().partitions(start, end)

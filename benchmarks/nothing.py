"""A Python source that does nothing but yield one row a batch: the floor under every other one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource


def do_nothing_source() -> type[DataSource]:
    """The class; made in a function so that Spark ships it by value to its workers."""
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

    class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, batches: int) -> None:
            self._batches = batches

        def initialOffset(self) -> dict[str, Any]:  # noqa: N802
            return {"n": 0}

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            return

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802, ARG002
            return {"n": min(start["n"] + 1, self._batches)}

        def partitions(
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Sequence[InputPartition]:
            return [InputPartition(n) for n in range(start["n"], end["n"])]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict(
                {"id": pa.array([partition.value], pa.int64()), "name": ["x"], "value": [0.5]}
            )

    class DoNothing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "do_nothing"

        def schema(self) -> str:
            return "id long, name string, value double"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802, ARG002
            return Reader(int(self.options["batches"]))

    return DoNothing

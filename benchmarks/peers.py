"""A Python source that reads no file, and sends ready-made rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource


def ready_rows_source() -> type[DataSource]:
    """The class; made in a function so that Spark ships it by value to its workers.

    Options: `schema`, `like`, a Parquet file whose first rows are sent again and again, and
    `rows`, how many each of two tasks sends.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def __init__(self, like: str, rows: int) -> None:
            self._like = like
            self._rows = rows

        def initialOffset(self) -> dict[str, Any]:  # noqa: N802
            return {"sent": 0}

        def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
            return {"sent": 1}

        def partitions(
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Sequence[InputPartition]:
            return [InputPartition(n) for n in range(2 * (end["sent"] - start["sent"]))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
            ready = next(pq.ParquetFile(self._like).iter_batches(50_000))
            # About a MiB at a time, which Spark takes fastest.
            ready = ready.slice(0, max(1, min(32_768, ready.num_rows * (1 << 20) // ready.nbytes)))
            left = self._rows
            while left:
                part = ready.slice(0, left)
                left -= part.num_rows
                yield part

    class ReadyRows(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ready_rows"

        def schema(self) -> str:
            return str(self.options["schema"])

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802, ARG002
            return Reader(self.options["like"], int(self.options["rows"]))

    return ReadyRows

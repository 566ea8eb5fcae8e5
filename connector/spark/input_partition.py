"""The form in which Spark carries a partition to its task."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from ..query.partitions import ReaderPartition


class SluicePartition(InputPartition):
    """A partition of any host, which Spark pickles."""

    value: ReaderPartition

    def __init__(self, value: ReaderPartition) -> None:
        super().__init__(value)

"""A source whose coordinator holds nothing, as Spark's processes import it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_sluice.connector.query import driver
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.connector.spark.limited_reader import LimitedReader
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.tests.protocol.broken_gateways import _Absent


class WithoutGateways(SluiceDataSource):
    """The source as it is, in whose coordinator nothing is ever held."""

    @classmethod
    def name(cls) -> str:
        return "sluice_without_gateways"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(dict(self.options), schema)


class _Reader(LimitedReader):
    def _opened(self) -> driver.StreamDriver:
        # The driver does not give up a reader before its task has run; in Spark's process only.
        patient = partial(CoordinatorSettings, commit_patience=600.0)
        driver.CoordinatorSettings = patient  # type: ignore[assignment]
        return super()._opened()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        coordinator = self._opened().coordinator._opened
        assert coordinator is not None, "Spark asks for the offset first"
        coordinator.gateways.gateway = _Absent
        return super().partitions(start, end)

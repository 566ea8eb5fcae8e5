"""Simulations that look at nothing but the rows that Spark has."""

from __future__ import annotations

from pyspark_sluice.tests.protocol.simulation import Simulation

from .spark_model import Plan


class RowsOnly(Simulation):
    """The same, and an oracle that knows nothing but rows: it counts those that Spark has."""

    def every_split_is_in_one_place(self) -> None:
        """Not looked at."""

    def everything_a_base_refers_to_is_there(self) -> None:
        """Not looked at."""

    def events_arrive_in_order_without_gaps(self) -> None:
        """Not looked at."""

    def _check_told(self, *, later: bool) -> None:
        """Not looked at."""

    def _check_limits(self, plan: Plan) -> None:
        """Not looked at."""


class FilesOnly(RowsOnly):
    """The same for a query over files: no split is unbounded, so nothing is ever continued."""

    def grow(self, lane: tuple[int, int], discover: bool) -> None:
        """No lane is there to grow."""

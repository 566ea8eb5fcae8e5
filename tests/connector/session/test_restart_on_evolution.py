"""The helper that starts a query again: as long as there is news, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_sluice import run_with_evolution


class Stopped:
    """A query that new columns have stopped, or that has ended."""

    def __init__(self, column, version):
        self.column, self.version = column, version

    def awaitTermination(self, timeout):  # noqa: N802
        if self.column:
            raise StreamingQueryException(
                "pyspark_sluice.errors.SchemaEvolvedError: the data has new columns: "
                f"found {self.column} long. It continues with version {self.version} of the "
                "schema. "
                "SQLSTATE: 38000"
            )


def test_a_query_that_stops_of_the_same_column_again_and_again_is_not_started_for_ever():
    starts: Iterator[Any]
    starts = iter([Stopped("a", 1), Stopped("b", 2), Stopped("b", 4), Stopped("", 0)])
    with pytest.raises(StreamingQueryException, match=r"found b long.*version 4"):
        run_with_evolution(lambda: next(starts))
    assert not run_with_evolution(lambda: next(starts)).column

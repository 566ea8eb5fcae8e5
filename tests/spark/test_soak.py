"""The short form of the soak: what is killed is killed once. `make soak` is the long one."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.soak import Soak
from pyspark_sluice.tests.spark.soak_grounds import OneMachine


@pytest.mark.thorough("each moment is met by a kill of test_crash.py")
@pytest.mark.spark
@pytest.mark.drivers
@pytest.mark.parametrize(
    "kills", [3, pytest.param(5, marks=pytest.mark.thorough("two kills more"))]
)
def test_random_kills_of_a_stream_into_a_table_leave_each_row_and_no_file_too_many(tmp_path, kills):
    ground = OneMachine(tmp_path / "soak", direct=True)
    figures = Soak(ground, kills=kills, seconds=PATIENCE, seed=12).run()
    print(figures)
    assert figures.kills.total() == kills
    assert figures.landed > 0
    assert (figures.lost, figures.duplicated, figures.unnamed) == (0, 0, 0), str(figures)

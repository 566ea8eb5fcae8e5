"""The short form of the soak: what is killed is killed once. `make soak` is the long one."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.soak import Soak
from pyspark_sluice.tests.spark.soak_grounds import OneMachine


@pytest.mark.thorough("each moment is met by a kill of test_crash.py")
@pytest.mark.spark
@pytest.mark.drivers
def test_random_kills_of_a_stream_into_a_table_leave_each_row_and_no_file_too_many(tmp_path):
    ground = OneMachine(tmp_path / "soak", direct=True)
    figures = Soak(ground, kills=3, seconds=PATIENCE, seed=12).run()
    print(figures)
    assert figures.kills.total() == 3
    assert figures.landed > 0
    assert (figures.lost, figures.duplicated, figures.unnamed) == (0, 0, 0), str(figures)

"""Kills and restores drawn at random: exact, or refused with a remedy that makes it exact."""

import pytest

from pyspark_sluice.tests.connector.host import deliveries
from pyspark_sluice.tests.connector.host.restores import KINDS, run


@pytest.mark.thorough("starts and kills many processes; test_batch_order.py has each restore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_table_or_checkpoint_loses_and_doubles_nothing(tmp_path, kind):
    figures = run(tmp_path, kind, kills=8, seed=11)
    assert figures["settled"] > 1


@pytest.mark.thorough("starts and kills many processes; test_replacing.py has each step")
@pytest.mark.parametrize("kind", deliveries.KINDS)
def test_after_a_month_of_deliveries_the_table_has_what_a_fresh_read_of_the_files_gives(
    tmp_path, kind
):
    figures = deliveries.month(tmp_path, kind, kills=34, seed=5)
    # Each deed is drawn; with another schedule of the machine a restore may stand in its place.
    assert (figures["audits"], figures["kills"] >= 34, figures["settled"] > 10) == (1, True, True)

"""Kills and restores drawn at random: exact, or refused with a remedy that makes it exact."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.connector.host.restores import KINDS, run


@pytest.mark.thorough("starts and kills many processes; test_batch_order.py has each restore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_table_or_checkpoint_loses_and_doubles_nothing(tmp_path, kind):
    figures = run(tmp_path, kind, kills=8, seed=11)
    assert figures["settled"] > 1

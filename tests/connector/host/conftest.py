"""What tests of the embedded host share."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.connector.host.query import Query


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)

"""What the tests of the coordinator share."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.protocol.numbers import Harness


@pytest.fixture
def query():
    return Harness([0, 1, 2, 3])

"""What the tests of the coordinator share."""

import pytest

from pyspark_sluice.tests.protocol.numbers import Harness


@pytest.fixture
def query():
    return Harness([0, 1, 2, 3])

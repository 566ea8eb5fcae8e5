"""What tests of the embedded host share."""

import pytest

from pyspark_sluice.tests.connector.host.feeds import Feeds
from pyspark_sluice.tests.connector.host.landing import Landing
from pyspark_sluice.tests.connector.host.query import Query


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


@pytest.fixture
def landing(tmp_path):
    return Landing(tmp_path)


@pytest.fixture
def feeds(tmp_path):
    return Feeds(tmp_path)

"""Fixtures of the tests of the connector."""

from functools import partial

import pytest

from pyspark_sluice.connector.query import driver
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.tests.connector.stream import SCHEMA, Stream


@pytest.fixture(autouse=True)
def commits_are_not_awaited(monkeypatch):
    """What a driver in this process does not see at once is not there: no test waits for it."""
    impatient = partial(CoordinatorSettings, commit_patience=0.0)
    monkeypatch.setattr(driver, "CoordinatorSettings", impatient)


@pytest.fixture
def begin(tmp_path):
    """Makes a stream; each has the files and the state of the one before."""
    begun = []

    def made(schema=SCHEMA, **options):
        begun.append(Stream(tmp_path, options, schema))
        return begun[-1]

    yield made
    for stream in begun:
        stream.reader.stop()

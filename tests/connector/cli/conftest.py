"""A query whose state the command line changes."""

import subprocess
import sys

import pytest

from pyspark_sluice.checkpoint_meta.documents import epochs
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.tests.connector.queries import Query


@pytest.fixture(scope="module")
def dead_pid():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.fixture
def ended_driver(monkeypatch, dead_pid):
    """Queries of this process are taken for those of a process that has ended."""
    claim = epochs._claim

    def of_the_dead(*arguments):
        return with_checksum({**without_checksum(claim(*arguments)), "pid": dead_pid})

    monkeypatch.setattr(epochs, "_claim", of_the_dead)


@pytest.fixture
def query(tmp_path, ended_driver):
    """A query whose driver is a process that has ended."""
    made = Query(tmp_path)
    yield made
    made.coordinator.close()

"""Fixtures of the tests of the connector."""

from __future__ import annotations

from functools import partial

import pytest

from pyspark_sluice.connector.query import driver
from pyspark_sluice.enumerator.settings import CoordinatorSettings


@pytest.fixture(autouse=True)
def commits_are_not_awaited(monkeypatch):
    """What a driver in this process does not see at once is not there: no test waits for it."""
    impatient = partial(CoordinatorSettings, commit_patience=0.0)
    monkeypatch.setattr(driver, "CoordinatorSettings", impatient)

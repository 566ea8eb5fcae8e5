"""Passes of discovery that no busy machine cuts in two."""

from __future__ import annotations

import pytest

from pyspark_sluice.enumerator.files import enumerator
from pyspark_sluice.tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _hands_over_by_number(monkeypatch):
    """Hand over what a pass finds after so many files, never because its time is over."""
    monkeypatch.setattr(enumerator, "_PATIENCE", PATIENCE)

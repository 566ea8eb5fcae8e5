"""Passes of discovery that no busy machine cuts in two, and what they ask for."""

import os
from collections import Counter

import pytest

from pyspark_sluice.enumerator.files import enumerator
from pyspark_sluice.tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _hands_over_by_number(monkeypatch):
    """Hand over what a pass finds after so many files, never because its time is over."""
    monkeypatch.setattr(enumerator, "_PATIENCE", PATIENCE)


@pytest.fixture
def calls(monkeypatch):
    """How often the operating system is asked, by function; the calls go through."""
    counted = Counter()

    def counting(name):
        real = getattr(os, name)

        def call(*arguments, **more):
            counted[name] += 1
            return real(*arguments, **more)

        return call

    for name in ("lstat", "scandir"):
        monkeypatch.setattr(os, name, counting(name))
    return counted

"""A stream with options, for one test."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.connector.stream import Stream


@pytest.fixture
def begin(tmp_path):
    """Makes the stream; a directory has one with any options."""
    begun = []

    def made(**options):
        begun.append(Stream(tmp_path, options))
        return begun[-1]

    yield made
    for stream in begun:
        stream.reader.stop()

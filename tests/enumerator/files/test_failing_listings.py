"""Listings that fail: retried, forgiven, and what fails the query in the end."""

from __future__ import annotations

import pytest

from pyspark_sluice.errors import (
    MissingPathError,
    SourceUnavailable,
)
from pyspark_sluice.tests.enumerator.files.bench import Bench, file, whole


def test_a_listing_that_fails_is_retried_with_growing_delays_and_nothing_is_lost():
    bench = Bench(file("a"))
    bench.errors = [OSError("one"), OSError("two")]
    delays = []
    for _ in range(2):
        bench.discover()
        delays.append(bench.context.calls[0].delay)
    assert 0.3 <= delays[0] <= 0.6
    assert 0.9 <= delays[1] <= 1.8
    bench.discover()
    assert bench.plan() == [whole(file("a"))]
    assert bench.context.calls[0].delay == 7.0


def test_a_listing_that_keeps_failing_fails_the_query_with_its_cause():
    bench = Bench()
    bench.errors = [OSError(str(i)) for i in range(3)]
    bench.discover()
    bench.discover()
    with pytest.raises(SourceUnavailable, match="discovery failed 3 times in a row; found OSError"):
        bench.discover()


def test_a_success_forgives_earlier_failures():
    bench = Bench()
    for _ in range(3):
        bench.errors = [OSError("1"), OSError("2")]
        for _ in range(3):
            bench.discover()


def test_an_error_of_the_lister_keeps_its_name():
    bench = Bench()
    bench.errors = [SourceUnavailable("no access", str(i)) for i in range(3)]
    bench.discover()
    bench.discover()
    with pytest.raises(SourceUnavailable, match="no access: 2"):
        bench.discover()


def test_a_path_that_is_missing_at_the_start_fails_at_once_and_later_only_after_retries():
    bench = Bench()
    bench.errors = [MissingPathError("no path")]
    with pytest.raises(MissingPathError):
        bench.discover()
    bench = Bench()
    bench.discover()
    bench.errors = [MissingPathError("gone")]
    bench.discover()
    bench.discover()
    assert bench.errors == []

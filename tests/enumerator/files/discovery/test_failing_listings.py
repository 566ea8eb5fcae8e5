"""Listings that fail: retried, forgiven, and what fails the query in the end."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import GrowingMark
from pyspark_sluice.checkpoint_meta.storage.storage_errors import RefusedRequest
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.sifting import OnOverwrite
from pyspark_sluice.errors import MissingPathError, OptionError, SluiceError, SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import Bench, file, whole
from pyspark_sluice.tests.enumerator.files.discovery.finding import land, make_discovery
from pyspark_sluice.tests.enumerator.files.listed import Listed


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


def test_what_a_pass_has_brought_is_taken_though_it_fails_afterwards():
    class Failing(Listed):
        def listing(self, known):
            yield from super().listing(known)
            if errors:
                raise errors.pop()

    errors = [OSError("later")]
    bench = Bench(discovery=Failing(lambda: [file("a"), file("b"), file("c")], chunk=2))
    bench.discover()
    assert "later" in bench.enumerator.backlog()["listingError"]
    assert not bench.enumerator.has_discovered
    assert len(bench.plan()) == 3
    bench.discover()
    assert bench.enumerator.has_discovered
    assert bench.plan() == []


def test_a_listing_whose_files_could_not_be_entered_does_not_count_as_done(tmp_path):
    path = land(tmp_path, "a", "line\n")
    failures = [OSError("cannot be read")]

    def whole_records(path, start, size, known):
        if failures:
            raise failures.pop()
        return GrowingMark(1, size, 0)

    policy = LedgerPolicy(on_overwrite=OnOverwrite.APPEND_TAIL, whole_records=whole_records)
    bench = Bench(discovery=make_discovery(tmp_path, incremental=True), ledger=policy)
    bench.discover()
    assert bench.enumerator.cursors() == {}
    bench.discover()
    assert [split.file.path for split in bench.plan()] == [path]
    cursors = bench.enumerator.cursors()
    assert cursors["discovery"]["greatest"] == {str(tmp_path): "a"}
    restored = Bench(discovery=make_discovery(tmp_path, incremental=True)).enumerator
    restored.resume_from(cursors)
    assert restored.cursors() == cursors


def test_nothing_is_planned_before_all_that_was_there_is_known_and_none_of_it_is_read():
    a, b = file("a"), file("b")
    bench = Bench(a, include_existing=False)
    bench.enumerator.requeue_splits([whole(b)])
    bench.errors = [OSError("away")]
    bench.discover()
    assert bench.plan() == []
    bench.discover()
    assert bench.plan() == [whole(b)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("away"), "discovery failed 3 times in a row; found OSError"),
        (SourceUnavailable("no access", "there"), "no access: there"),
    ],
)
def test_a_listing_that_keeps_failing_fails_the_query_with_its_cause(error, told):
    bench = Bench()
    bench.errors = [error] * 3
    bench.discover()
    bench.discover()
    with pytest.raises(SourceUnavailable, match=told):
        bench.discover()


def test_a_success_forgives_earlier_failures():
    bench = Bench()
    for _ in range(3):
        bench.errors = [OSError("1"), OSError("2")]
        for _ in range(3):
            bench.discover()


FINAL = [
    OptionError("no such option"),
    ModuleNotFoundError("No module named 'gcsfs'"),
    PermissionError("no access"),
    RefusedRequest("not a key"),
    MissingPathError("no path"),
]


@pytest.mark.parametrize("error", FINAL, ids=lambda error: type(error).__name__)
def test_what_no_retry_can_help_with_fails_at_once_unless_a_listing_has_worked_before(error):
    bench = Bench()
    bench.errors = [error]
    with pytest.raises(SluiceError, match=str(error)) as caught:
        bench.discover()
    assert "times in a row" not in str(caught.value)
    bench = Bench()
    bench.discover()
    bench.errors = [error, error]
    bench.discover()
    bench.discover()
    assert bench.errors == []

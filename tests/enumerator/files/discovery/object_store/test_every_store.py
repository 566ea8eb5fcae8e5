"""Listings of S3, Google Cloud Storage and Azure: each finds the same files."""

from __future__ import annotations

from itertools import product

import pytest

from pyspark_sluice.checkpoint_meta.storage import bucket as buckets
from pyspark_sluice.checkpoint_meta.storage.bucket import open_bucket
from pyspark_sluice.enumerator.files.discovery.object_store.listing_pages import BucketPages
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger, make_discovery

pytestmark = pytest.mark.slow

DAYS = [f"day={day:02}" for day in range(1, 13)]
KEYS = sorted(
    [
        *(f"in/{day}/{n}.json" for day in DAYS for n in range(5)),
        *("in/day=03-late/x", "in/day=03.5/x", "in/ä", "in/deep/" + "/".join("abcdefgh") + "/z"),
    ]
)


class River:
    """A bucket that holds `KEYS`, and others; pages are of ten keys."""

    def __init__(self, server, bucket):
        for key in [*KEYS, "in-other/x", "in/_tmp/y", "in/day=01/.z", "one.json"]:
            server.put(bucket, key, b"x")
        server.most_keys = 10
        self.server, self.bucket, self.options = server, bucket, server.options
        self._begin = f"{server.path_scheme}://{bucket}/"

    def discovery(self, path, **options):
        return make_discovery(
            f"{self.server.scheme}://{self.bucket}/{path}", self.options, **options
        )

    def keys(self, paths):
        return [path.removeprefix(self._begin) for path in paths]


@pytest.fixture
def river(any_server, any_bucket, monkeypatch):
    monkeypatch.setattr(buckets, "_PAGE", 10)
    yield River(any_server, any_bucket)
    any_server.most_keys = 0


def test_a_long_listing_brings_each_file_once_and_again_nothing(river):
    discovery, ledger = river.discovery("in"), Ledger()
    assert river.keys(ledger.take(discovery)) == KEYS
    assert discovery.skipped.counts == {"ignoredPathSegmentRegex": 2}
    assert ledger.take(discovery) == []


@pytest.mark.parametrize("incremental", [False, True])
def test_what_is_new_is_found_by_either_mode(river, incremental):
    discovery, ledger = river.discovery("in", incremental=incremental), Ledger()
    assert len(ledger.take(discovery)) == len(KEYS)
    river.server.put(river.bucket, "in/ä1", b"x")
    assert river.keys(ledger.take(discovery)) == ["in/ä1"]
    assert ledger.take(discovery) == []


def test_only_azure_lists_everything_again_where_others_begin_behind_the_greatest_name(river):
    discovery, ledger = river.discovery("in", incremental=True), Ledger()
    ledger.take(discovery)
    counted = river.server.counted(lambda: ledger.take(discovery))
    # Six full pages and what is left: the client's parameter is of a later version of the service.
    assert counted == {"LIST": 7 if river.server.scheme == "abfss" else 1}


def test_wildcards_names_and_markers_choose_alike(river):
    assert river.keys(Ledger().take(river.discovery("in/day=0[12]*/[3-4].json"))) == [
        f"in/day=0{d}/{n}.json" for d in (1, 2) for n in (3, 4)
    ]
    assert river.keys(Ledger().take(river.discovery("one.json"))) == ["one.json"]
    for key in ("a/1", "a/1.done", "a/2", "b/_SUCCESS", "b/a", "c/a"):
        river.server.put(river.bucket, f"marked/{key}", b"x")
    beside = river.discovery("marked/a", ready_marker="<name>.done")
    assert river.keys(Ledger().take(beside)) == ["marked/a/1"]
    whole = river.discovery("marked", ready_marker="_SUCCESS")
    assert river.keys(Ledger().take(whole)) == ["marked/b/a"]
    with pytest.raises(Exception, match="/one; found nothing"):
        Ledger().take(river.discovery("one"))


def test_stretches_of_a_listing_are_exact(river):
    opened = open_bucket(f"{river.server.scheme}://{river.bucket}", river.options)
    assert opened is not None
    pages, begin = BucketPages(opened[0]), f"{river.bucket}/"
    prefixes = ("in/", "in/d", "in/day=03", "in/day=03/", "zz")
    afters = ("", "in/day=03", "in/day=11/2.json", "in/e")
    for prefix, after, until in product(prefixes, afters, ("", "in/day=05/", "in/day=05/2")):
        limits = [begin + text if text else "" for text in (after, until)]
        found = [
            name
            for page in pages.pages(begin + prefix, after=limits[0], until=limits[1])
            for name in page.names
        ]
        assert found == [
            begin + key
            for key in sorted([*KEYS, "in/_tmp/y", "in/day=01/.z"])
            if key.startswith(prefix) and key > after and (not until or key <= until)
        ], (prefix, after, until)

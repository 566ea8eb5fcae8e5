"""Listings of S3, Google Cloud Storage and Azure: each finds the same files."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.storage import bucket_storage
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
    monkeypatch.setattr(bucket_storage, "_PAGE", 10)
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


def test_objects_that_were_overwritten_and_are_not_read_again_are_counted(river):
    from pyspark_sluice.enumerator.files.ledger.ledger import Ledger as FileLedger
    from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy

    discovery, ledger = river.discovery("in"), FileLedger(LedgerPolicy())

    def listed():
        portions = [ledger.sift([files], 0) for files in discovery.listing(ledger.seen)]
        for sifted in portions:
            ledger.enter(sifted)
        return sum(sifted.new for sifted in portions)

    assert listed() == len(KEYS)
    river.server.put(river.bucket, KEYS[0], b"longer")
    river.server.put(river.bucket, KEYS[-1], b"longer")
    for _ in range(2):
        assert listed() == 0
        assert discovery.skipped.counts == {"ignoredPathSegmentRegex": 2, "onOverwrite": 2}
    named = {one.path for one in discovery.skipped.sample if one.reason == "onOverwrite"}
    assert river.keys(sorted(named)) == [KEYS[0], KEYS[-1]]

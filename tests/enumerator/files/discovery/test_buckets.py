"""Listing of a bucket through a real S3 API: what is found, and with how many requests."""

from __future__ import annotations

from collections import Counter

import fsspec
import pytest

from pyspark_sluice.enumerator.files.discovery import object_pages, remote_tree
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger, make_discovery

DAYS = [f"day={day:02}" for day in range(1, 13)]
KEYS = sorted(f"in/{day}/{n}.json" for day in DAYS for n in range(9))


@pytest.fixture(scope="module")
def server():
    """Storage options of a server with one bucket that holds `KEYS`, and others beside them."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = {"endpoint_url": f"http://{host}:{port}"}
    options = {"key": "test", "secret": "test", "client_kwargs": endpoint}
    files = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **options)
    files.call_s3("create_bucket", Bucket="river")
    for key in [*KEYS, "in-other/x", "in/_tmp/y", "in/day=01/.z", "one.json"]:
        files.pipe_file(f"river/{key}", b"x")
    files.call_s3("put_object", Bucket="river", Key="drawn/", Body=b"")
    yield options
    server.stop()


@pytest.fixture
def requests(monkeypatch):
    """The calls to the store, by name; pages are of ten keys."""
    made = []
    real = object_pages.S3Pages.__init__

    class Counting:
        def __init__(self, files):
            self._files = files

        def call_s3(self, name, **asked):
            made.append((name, asked.get("Prefix"), asked.get("StartAfter", "")))
            return self._files.call_s3(name, **{"MaxKeys": 10, **asked})

    monkeypatch.setattr(
        object_pages.S3Pages, "__init__", lambda self, files: real(self, Counting(files))
    )
    return made


def keys(paths):
    return [path.removeprefix("s3://river/") for path in paths]


def test_a_long_listing_is_shared_out_and_each_key_comes_once(server, requests):
    discovery, ledger = make_discovery("s3a://river/in", server), Ledger()
    assert keys(ledger.take(discovery)) == KEYS
    assert discovery.skipped.counts == {"ignoredNamesRegex": 2}
    assert {name for name, *_ in requests} == {"list_objects_v2"}
    # Eleven full pages alone; a last one for each part, and one to find the parts.
    assert 12 <= len(requests) <= 12 + remote_tree._LANES + 1
    assert len({after for _, _, after in requests}) > 4
    requests.clear()
    assert ledger.take(discovery) == []
    assert Counter(name for name, *_ in requests) == {"list_objects_v2": len(requests)}


def test_a_short_listing_takes_one_request_and_nothing_is_asked_for_a_file(server, requests):
    discovery = make_discovery("s3://river/in/day=03", server)
    assert keys(Ledger().take(discovery)) == KEYS[18:27]
    assert requests == [("list_objects_v2", "in/day=03/", "")]


def test_wildcards_ask_only_for_what_they_can_match(server, requests):
    discovery = make_discovery("s3://river/in/day=0[12]*/[3-4].json", server)
    assert keys(Ledger().take(discovery)) == [
        f"in/day=0{d}/{n}.json" for d in (1, 2) for n in (3, 4)
    ]
    prefixes = {prefix for _, prefix, _ in requests}
    assert prefixes == {"in/", "in/day=01/", "in/day=02/"}
    requests.clear()
    taken = Ledger().take(make_discovery("s3://river/in/day=1*", server))
    assert keys(taken) == KEYS[81:]
    assert {prefix for _, prefix, _ in requests} == {"in/day=1"}


def test_an_incremental_pass_begins_behind_the_greatest_key(server, requests):
    discovery, ledger = make_discovery("s3://river/in", server, incremental=True), Ledger()
    assert len(ledger.take(discovery)) == len(KEYS)
    requests.clear()
    assert ledger.take(discovery) == []
    assert requests == [("list_objects_v2", "in/", "in/day=12/8.json")]


def test_the_greatest_of_each_path_is_its_own(server, requests):
    text = "s3://river/in/day=0{1,2},s3://river/in/day=12"
    discovery, ledger = make_discovery(text, server, incremental=True), Ledger()
    assert len(ledger.take(discovery)) == 27
    requests.clear()
    assert ledger.take(discovery) == []
    begun = sorted(after for _, _, after in requests)
    assert begun[0] == "in/day=02/8.json"
    assert "in/day=12/8.json" in begun


def test_markers_are_looked_for_on_the_page_before_they_are_asked_for(server, requests):
    files = fsspec.filesystem("s3", skip_instance_cache=True, **server)
    for key in ("a/1", "a/1.done", "a/2", "b/_SUCCESS", "b/a", "c/a"):
        files.pipe_file(f"river/marked/{key}", b"x")
    beside = make_discovery("s3://river/marked/a", server, ready_marker="<name>.done")
    assert keys(Ledger().take(beside)) == ["marked/a/1"]
    assert beside.skipped.counts == {"isMarker": 1, "readyMarker": 1}
    requests.clear()
    whole = make_discovery("s3://river/marked", server, ready_marker="_SUCCESS")
    assert keys(Ledger().take(whole)) == ["marked/b/a"]
    asked = [prefix for _, prefix, _ in requests[1:]]
    # That of a/ would have been on the page.
    assert asked == ["marked/c/_SUCCESS"]


def test_one_object_an_empty_directory_and_nothing_at_all_are_told_apart(server):
    assert keys(Ledger().take(make_discovery("s3://river/one.json", server))) == ["one.json"]
    assert Ledger().take(make_discovery("s3://river/drawn", server)) == []
    with pytest.raises(Exception, match="s3://river/one; found nothing"):
        Ledger().take(make_discovery("s3://river/one", server))
    with pytest.raises(Exception, match=r"s3://river/none/\*; found nothing"):
        Ledger().take(make_discovery("s3://river/none/*", server))

"""Listing of a bucket through a real S3 API: what is found, and with how many requests."""

from urllib.parse import parse_qs

import pytest

from pyspark_sluice.checkpoint_meta.storage import bucket_storage
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.discovery import make_listing
from pyspark_sluice.enumerator.files.discovery.object_store import remote_tree
from pyspark_sluice.enumerator.files.ledger.ledger import Ledger as FileLedger
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.errors import MissingPathError, OptionError
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import S3Server, as_json
from pyspark_sluice.tests.enumerator.files.discovery.finding import (
    Ledger,
    enter_new,
    make_discovery,
)

pytestmark = pytest.mark.slow

DAYS = [f"day={day:02}" for day in range(1, 13)]
KEYS = sorted(f"in/{day}/{n}.json" for day in DAYS for n in range(9))


@pytest.fixture(scope="module")
def river():
    """A server with one bucket that holds `KEYS`, and others; pages are of ten keys."""
    made = S3Server()
    made.most_keys = 10
    client = made.client()
    client.create_bucket(Bucket="river")
    for key in [*KEYS, "in-other/x", "in/_tmp/y", "in/day=01/.z", "one.json"]:
        client.put_object(Bucket="river", Key=key, Body=b"x")
    client.put_object(Bucket="river", Key="drawn/", Body=b"")
    yield made
    made.close()


@pytest.fixture
def server(river, monkeypatch):
    """Storage options."""
    monkeypatch.setattr(bucket_storage, "_PAGE", 10)
    return river.options


class Requests:
    """What the server was asked since the last look, as kind, prefix or key, and start."""

    def __init__(self, river):
        self._river = river
        self.clear()

    def clear(self):
        self._start = len(self._river.names)

    def __call__(self):
        found = []
        for name in self._river.names[self._start :]:
            kind, _, rest = name.partition(" ")
            path, _, text = rest.partition("?")
            query = {key: values[0] for key, values in parse_qs(text).items()}
            prefix = query.get("prefix", path.removeprefix("/river/"))
            found.append((kind, prefix, query.get("start-after", "")))
        return found


@pytest.fixture
def requests(river):
    return Requests(river)


def keys(paths):
    return [path.removeprefix("s3://river/") for path in paths]


def test_a_long_listing_is_shared_out_and_each_key_comes_once(server, requests):
    discovery, ledger = make_discovery("s3a://river/in", server), Ledger()
    assert keys(ledger.take(discovery)) == KEYS
    assert discovery.skipped.counts == {"ignoredPathSegmentRegex": 2}
    asked = requests()
    assert {kind for kind, *_ in asked} == {"LIST"}
    # Eleven full pages alone; a last one for each part, and one to find the parts.
    assert 12 <= len(asked) <= 12 + remote_tree._WORKERS + 1
    assert len({after for _, _, after in asked}) > 4
    requests.clear()
    assert ledger.take(discovery) == []
    assert {kind for kind, *_ in requests()} == {"LIST"}


def test_a_short_listing_takes_one_request_and_nothing_is_asked_for_a_file(server, requests):
    discovery, ledger = make_discovery("s3://river/in/day=03", server), Ledger()
    assert keys(ledger.take(discovery)) == KEYS[18:27]
    # Whether that was all is asked where a listing ends for the first time.
    assert requests() == [("LIST", "in/day=03/", ""), ("LIST", "in/day=03/", KEYS[26])]
    requests.clear()
    assert ledger.take(discovery) == []
    assert requests() == [("LIST", "in/day=03/", "")]


def test_wildcards_ask_only_for_what_they_can_match(server, requests):
    discovery = make_discovery("s3://river/in/day=0[12]*/[3-4].json", server)
    assert keys(Ledger().take(discovery)) == [
        f"in/day=0{d}/{n}.json" for d in (1, 2) for n in (3, 4)
    ]
    prefixes = {prefix for _, prefix, _ in requests()}
    assert prefixes == {"in/", "in/day=01/", "in/day=02/"}
    requests.clear()
    taken = Ledger().take(make_discovery("s3://river/in/day=1*", server))
    assert keys(taken) == KEYS[81:]
    # Three pages, behind the last name that does not begin so.
    assert requests()[0] == ("LIST", "in/", "in/day=0~")
    assert len(requests()) <= 4


def test_an_incremental_pass_begins_behind_the_greatest_key(server, requests):
    discovery, ledger = make_discovery("s3://river/in", server, incremental=True), Ledger()
    assert len(ledger.take(discovery)) == len(KEYS)
    requests.clear()
    assert ledger.take(discovery) == []
    assert requests() == [("LIST", "in/", "in/day=12/8.json")]


def test_objects_that_were_overwritten_and_are_not_read_again_are_counted(river, server):
    discovery, ledger = make_discovery("s3://river/in", server), FileLedger(LedgerPolicy())
    assert enter_new(discovery, ledger) == len(KEYS)
    overwritten = KEYS[::2]
    for key in overwritten:
        river.put("river", key, b"longer")
    for _ in range(2):
        assert enter_new(discovery, ledger) == 0
        # A known version is kept in eight bits, so one in some hundred changes is not noticed.
        counts = dict(discovery.skipped.counts)
        assert len(overwritten) - 8 <= counts.pop("onOverwrite") <= len(overwritten)
        assert counts == {"ignoredPathSegmentRegex": 2}
    named = {one.path for one in discovery.skipped.sample if one.reason == "onOverwrite"}
    assert named
    assert set(keys(named)) <= set(overwritten)


def test_a_prefix_that_sparks_file_sink_writes_to_is_refused(river, server):
    for key in ("a", "_spark_metadata/0"):
        river.client().put_object(Bucket="river", Key=f"sink/{key}", Body=b"x")
    with pytest.raises(OptionError, match=r"river/sink; found _spark_metadata"):
        Ledger().take(make_discovery("s3://river/sink", server))


def test_markers_are_looked_for_on_the_page_before_they_are_asked_for(river, server, requests):
    for key in ("a/1", "a/1.done", "a/2", "b/_SUCCESS", "b/a", "c/a"):
        river.client().put_object(Bucket="river", Key=f"marked/{key}", Body=b"x")
    beside = make_discovery("s3://river/marked/a", server, ready_marker="<name>.done")
    assert keys(Ledger().take(beside)) == ["marked/a/1"]
    assert beside.skipped.counts == {"isMarker": 1, "readyMarker": 1}
    requests.clear()
    whole = make_discovery("s3://river/marked", server, ready_marker="_SUCCESS")
    assert keys(Ledger().take(whole)) == ["marked/b/a"]
    # That of a/ would have been on the page.
    assert [asked for asked in requests() if asked[0] != "LIST"] == [
        ("HEAD", "marked/c/_SUCCESS", "")
    ]


def test_one_object_an_empty_directory_and_nothing_at_all_are_distinguished(server):
    assert keys(Ledger().take(make_discovery("s3://river/one.json", server))) == ["one.json"]
    assert Ledger().take(make_discovery("s3://river/drawn", server)) == []
    with pytest.raises(Exception, match="s3://river/one; found nothing"):
        Ledger().take(make_discovery("s3://river/one", server))
    with pytest.raises(Exception, match=r"s3://river/none/\*; found nothing"):
        Ledger().take(make_discovery("s3://river/none/*", server))


def test_of_names_between_bounds_only_those_pages_are_asked_for(server, requests):
    options = {"path": "s3a://river/in", "startAt": "path:day=06", "endAt": "path:day=08"}
    discovery = make_listing(
        parse_options({**options, "storageOptions": as_json(server)}, streaming=False)
    )
    found = keys(Ledger().take(discovery))
    assert found == [key for key in KEYS if "day=06" <= key[3:] < "day=08"]
    # 18 keys in pages of ten, and the page on which the end is.
    assert requests() == [("LIST", "in/", "in/day=05~")] * 2


def test_a_path_of_which_everything_is_out_of_bounds_is_there(server):
    def listed(path):
        options = {"path": path, "startAt": "path:x", "storageOptions": as_json(server)}
        return Ledger().take(make_listing(parse_options(options, streaming=False)))

    assert listed("s3://river/in") == []
    with pytest.raises(MissingPathError):
        listed("s3://river/nothing")


def test_the_greatest_of_each_path_is_its_own(server, requests):
    text = "s3://river/in/day=0{1,2},s3://river/in/day=12"
    discovery, ledger = make_discovery(text, server, incremental=True), Ledger()
    assert len(ledger.take(discovery)) == 27
    requests.clear()
    assert ledger.take(discovery) == []
    begun = sorted(after for _, _, after in requests())
    assert begun[0] == "in/day=02/8.json"
    assert "in/day=12/8.json" in begun

"""Two streams that are aligned, asked in turn as Spark asks the sources of one query."""

import pytest

from pyspark_sluice.connector.source import file_source
from pyspark_sluice.tests.connector.stream import Stream
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


def hour(number):
    return f"date=2026-01-02/hour={number:02}/a.json"


ALIGNED = {"alignmentGroup": "shop", "maxEventTimeSkew": "1h"}


class Query:
    """Clicks and orders, a file an hour."""

    def __init__(self, root):
        self.root = root
        self.streams = {}

    def begin(self, **options):
        for name in ("clicks", "orders"):
            (self.root / name).mkdir()
            given = {"stateLocation": str(self.root / "state"), "sourceName": name, **options}
            given |= {"fileOrder": "eventTime", **ALIGNED}
            self.streams[name] = Stream(self.root / name, given)
        return self.streams.values()

    def ask(self):
        """One trigger: the rows of each source."""
        return {name: stream.batch() for name, stream in self.streams.items()}

    def report(self, name):
        return (self.streams[name].reader.reportLatestOffset() or {})["alignment"]


@pytest.fixture
def query(tmp_path):
    begun = Query(tmp_path)
    yield begun
    for stream in begun.streams.values():
        stream.reader.stop()


def clicks_until(query, count):
    clicks = []

    def are_there():
        clicks.extend(query.ask()["clicks"])
        return len(clicks) >= count

    wait_until(are_there)
    return clicks


@pytest.mark.effect_of("alignmentGroup")
def test_a_source_waits_for_another_until_that_is_idle_and_says_so(query, monkeypatch):
    monkeypatch.setattr(file_source, "_ALIGNMENT_PATIENCE", 5.0)
    clicks, orders = query.begin(maxFilesPerTrigger="1")
    clicks.land(*map(hour, range(1, 7)))
    orders.land(hour(1))
    assert clicks_until(query, 2) == [0, 1]
    # The orders of hour 1 are read, so the clicks of hour 2 are not ahead; those of hour 3 are.
    assert query.ask()["clicks"] == []
    wait_until(lambda: query.report("clicks").get("alignedBehind") == "orders")
    assert query.report("clicks") == {
        "group": "shop",
        "sources": {"orders": "2026-01-02T01:00:00Z"},
        "position": "2026-01-02T03:00:00Z",
        "alignedBehind": "orders",
    }
    assert query.ask()["clicks"] == []
    assert clicks_until(query, 4) == [2, 3, 4, 5]
    # Orders that come at last are read; clicks wait for them again.
    orders.land(hour(3))
    clicks.land(hour(9))
    assert orders.until(1) == [1]


def test_a_source_that_is_alone_in_its_group_reads_after_one_empty_batch(query, tmp_path):
    clicks, _ = query.begin()
    clicks.land(*map(hour, range(1, 4)))
    before = clicks.at
    assert clicks.batch() == []
    assert clicks.at != before
    assert clicks.until(3) == [0, 1, 2]
    # Only the newest two messages stay.
    wait_until(lambda: len(list((tmp_path / "state/_alignment/shop").iterdir())) <= 2)


def test_everything_in_one_batch_is_not_aligned(query):
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="new in Spark 4.2")
    clicks, _ = query.begin()
    clicks.land(*map(hour, range(1, 7)))
    end = clicks.reader.latestOffset(clicks.at, limits.ReadAllAvailable())
    partitions = clicks.reader.partitions(clicks.at, end)
    read = [batch for partition in partitions for batch in clicks.reader.read(partition)]
    assert sum(batch.num_rows for batch in read) == 6

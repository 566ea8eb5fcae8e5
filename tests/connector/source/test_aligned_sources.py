"""Two streams that are aligned, asked in turn as Spark asks the sources of one query."""

from __future__ import annotations

import pytest

from pyspark_sluice.tests.connector.stream import Stream
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


def hour(number):
    return f"date=2026-01-02/hour={number:02}/a.json"


class Query:
    """Clicks and orders, a file an hour."""

    def __init__(self, root, options, *, bounded=False):
        self.streams = {}
        for name in ("clicks", "orders"):
            (root / name).mkdir(exist_ok=True)
            given = {"stateLocation": str(root / "state"), "sourceName": name, **options}
            self.streams[name] = Stream(root / name, {"fileOrder": "eventTime", **given})
            if bounded:
                self.streams[name].reader.prepareForTriggerAvailableNow()

    def ask(self):
        """One trigger: the rows of each source, and whether there was a batch at all."""
        before = [stream.at for stream in self.streams.values()]
        rows = {name: stream.batch() for name, stream in self.streams.items()}
        return rows, before != [stream.at for stream in self.streams.values()]

    def report(self, name):
        return (self.streams[name].reader.reportLatestOffset() or {})["alignment"]

    def stop(self):
        for stream in self.streams.values():
            stream.reader.stop()


@pytest.fixture
def query(tmp_path):
    begun = []

    def made(*, bounded=False, **options):
        begun.append(Query(tmp_path, options, bounded=bounded))
        return begun[-1]

    yield made
    for one in begun:
        one.stop()


ALIGNED = {"alignmentGroup": "shop", "maxEventTimeSkew": "1h"}


def clicks_until(query, count, questions=200):
    """The clicks of so many triggers at most."""
    found = []
    for _ in range(questions):
        rows, _ = query.ask()
        found += rows["clicks"]
        if len(found) >= count:
            break
    return found


@pytest.mark.effect_of("alignmentGroup", "alignmentIdleTimeout")
def test_a_source_waits_for_another_until_that_is_idle_and_says_so(query):
    found = query(**ALIGNED, alignmentIdleTimeout="5s", maxFilesPerTrigger="1")
    found.streams["clicks"].land(*map(hour, range(1, 7)))
    found.streams["orders"].land(hour(1))
    assert clicks_until(found, 2) == [0, 1]
    # The orders of hour 1 are read, so the clicks of hour 2 are not ahead; those of hour 3 are.
    assert found.ask()[0]["clicks"] == []
    wait_until(lambda: found.report("clicks").get("alignedBehind") == "orders")
    assert found.report("clicks") == {
        "group": "shop",
        "sources": {"orders": "2026-01-02T01:00:00Z"},
        "position": "2026-01-02T03:00:00Z",
        "alignedBehind": "orders",
    }
    assert found.ask()[0]["clicks"] == []
    # More questions than five seconds have.
    assert clicks_until(found, 4, questions=10_000) == [2, 3, 4, 5]
    # Orders that come at last are read; clicks wait for them again.
    found.streams["orders"].land(hour(3))
    found.streams["clicks"].land(hour(9))
    assert found.streams["orders"].until(1) == [1]


def test_without_a_group_no_source_waits(query):
    found = query(maxEventTimeSkew="1h", maxFilesPerTrigger="1")
    found.streams["clicks"].land(*map(hour, range(1, 7)))
    found.streams["orders"].land(hour(1))
    assert clicks_until(found, 6, questions=6) == list(range(6))
    assert "alignment" not in found.streams["clicks"].reader.reportLatestOffset()


@pytest.mark.parametrize("orders", [[], [1], [20, 21], [3, 9, 15]])
def test_a_run_that_ends_ends_when_all_is_read(query, orders):
    found = query(**ALIGNED, bounded=True)
    found.streams["clicks"].land(*map(hour, range(1, 7)))
    found.streams["orders"].land(*map(hour, orders))
    found_rows = {"clicks": [], "orders": []}
    while True:
        rows, is_batch = found.ask()
        if not is_batch:
            break
        for name, of in rows.items():
            found_rows[name] += of
    assert found_rows == {"clicks": list(range(6)), "orders": list(range(len(orders)))}
    assert found.report("clicks")["position"] == "end"


def test_a_source_that_is_alone_in_its_group_reads_after_one_empty_batch(query, tmp_path):
    found = query(**ALIGNED)
    clicks = found.streams["clicks"]
    clicks.land(*map(hour, range(1, 4)))
    before = clicks.at
    assert clicks.batch() == []
    assert clicks.at != before
    assert clicks.until(3) == [0, 1, 2]
    # Only the newest two messages stay.
    wait_until(lambda: len(list((tmp_path / "state/_alignment/shop").iterdir())) <= 2)


def test_everything_in_one_batch_is_not_aligned(query):
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="new in Spark 4.2")
    found = query(**ALIGNED)
    clicks = found.streams["clicks"]
    clicks.land(*map(hour, range(1, 7)))
    end = clicks.reader.latestOffset(clicks.at, limits.ReadAllAvailable())
    partitions = clicks.reader.partitions(clicks.at, end)
    read = [batch for partition in partitions for batch in clicks.reader.read(partition)]
    assert sum(batch.num_rows for batch in read) == 6

"""What the listener shows between Spark's events, and after the last one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_sluice.connector.session.prometheus import KEEP_SECONDS
from pyspark_sluice.connector.session.query_figures import error_name
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.tests.connector.session.monitored_query import TICK, MonitoredQuery

OLDEST = 'sluice_backlog_oldest_seconds{query="orders",source="0"}'
UP = 'sluice_up{query="orders"}'


@pytest.fixture
def monitored(tmp_path: Path):
    made = MonitoredQuery(tmp_path, [], {"limits": BatchLimits(files=1)})
    yield made
    made.query.coordinator.close()


def shown(query: MonitoredQuery) -> dict[str, float]:
    lines = [line for line in query.scraped().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_age_of_the_oldest_file_grows_while_no_event_comes_and_is_0_without_one(monitored):
    # Three files: one is in the batch, one may be in the next one already.
    monitored.land(3, age=100)
    monitored.batch()
    at_once = shown(monitored)[OLDEST]
    assert at_once == 100
    monitored.wait(10 * TICK)
    assert shown(monitored)[OLDEST] == at_once + 10 * TICK
    for _ in range(2):
        monitored.batch()
    monitored.wait(10 * TICK)
    assert shown(monitored)[OLDEST] == 0


def test_series_stay_for_a_while_after_the_end_and_then_go(monitored):
    assert shown(monitored)[UP] == 1
    monitored.land()
    monitored.batch()
    monitored.end()
    monitored.wait(KEEP_SECONDS)
    assert shown(monitored)[UP] == 0
    assert 'sluice_files_seen{query="orders",source="0"}' in shown(monitored)
    monitored.wait(TICK)
    assert shown(monitored) == {}


def test_a_query_that_is_started_again_keeps_its_counters_and_figures(monitored):
    monitored.land()
    monitored.batch()
    files = 'sluice_files_seen{query="orders",source="0"}'
    before = shown(monitored)[files]
    monitored.end(ValueError("no"))
    monitored.begin()
    found = shown(monitored)
    assert found[UP] == 1
    assert found['sluice_failures_total{query="orders"}'] == 1
    assert found['sluice_batches_total{query="orders"}'] == 1
    assert 'sluice_last_error_timestamp_seconds{error="other",query="orders"}' in found
    # A batch that is repeated has no report.
    monitored.progress(None, {"checkpoint": 1, "epoch": 1, "state": "k3x9", "version": 1})
    found = shown(monitored)
    assert (found[UP], found[files]) == (1, before)
    assert found['sluice_batches_total{query="orders"}'] == 2


def test_a_query_without_a_source_of_sluice_goes_with_its_first_batch(monitored):
    assert UP in shown(monitored)
    monitored.progress(None, {"t": {"0": 3}})
    assert shown(monitored) == {}
    monitored.progress({"t": {"0": 4}})
    monitored.idle(TICK)
    monitored.end()
    assert shown(monitored) == {}


def test_an_error_is_named_by_its_class():
    told = "[STREAM_FAILED] ... SluiceError pyspark_sluice.errors.SplitReadError: a file: x"
    assert error_name(told) == "SplitReadError"
    assert error_name("java.lang.OutOfMemoryError: Java heap space") == "other"

"""The shipped alert rules, evaluated over what is scraped from real queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files import backlog
from pyspark_sluice.errors import SluiceError, SourceUnavailable
from pyspark_sluice.tests.connector.session.monitored_query import TICK, MonitoredQuery
from pyspark_sluice.tests.connector.session.prometheus_rules import RULES, alerts_of, metrics_in
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

DASHBOARD = ROOT / "examples" / "monitoring" / "dashboard.json"
HOUR = 3600.0


@contextmanager
def _monitored(
    place: Path, settings: Mapping[str, Any], **options: str
) -> Iterator[MonitoredQuery]:
    """A query that has read one file."""
    made = MonitoredQuery(place, alerts_of(RULES), settings, **options)
    try:
        made.land()
        made.batch()
        yield made
    finally:
        made.query.coordinator.close()


def a_healthy_day(query: MonitoredQuery) -> None:
    # Hours in which nothing else happens show no more than one of them.
    for hour in (0, 1, 3, 4, 8, 9, 12, 13, 20, 21):
        for _ in range(2):
            query.land()
            query.batch()
            query.idle(HOUR / 2 - TICK)
        if hour == 3:
            # The nightly reorganisation: a large batch.
            query.land(20)
            query.batch(15 * 60)
        if hour == 8:
            # Copied with its time of modification.
            query.land(age=10 * HOUR)
            query.batch()
        if hour == 12:
            query.end()
            query.wait(2 * 60)
            query.query.restart()
            query.begin()
        if hour == 20:
            # Stopped, and started again much later than its series are kept.
            query.end()
            query.wait(2 * HOUR)
            query.query.restart()
            query.begin()


def a_batch_that_never_ends(query: MonitoredQuery) -> None:
    query.land()
    query.plan()
    query.wait(HOUR)


def a_query_that_dies(query: MonitoredQuery) -> None:
    query.land(text='{"id": "not a number"}\n')
    ref, _ = query.plan()
    with pytest.raises(SluiceError) as died:
        query.query.read(ref)
    query.wait(TICK)
    query.end(died.value)
    query.wait(HOUR / 2)


def a_driver_that_is_killed(query: MonitoredQuery) -> None:
    query.idle(10 * 60)
    query.is_reachable = False
    query.wait(15 * 60)


def a_query_that_falls_behind(query: MonitoredQuery) -> None:
    for _ in range(30):
        query.land(2)
        query.batch(5 * 60)


def a_listing_that_fails_while_batches_run(query: MonitoredQuery) -> None:
    query.land(20)
    query.batch()
    data = query.query.data
    data.rename(data.with_name("away"))
    wait_until(lambda: query.report()["failedListings"] >= 5)
    # What a batch wants to read is reachable again, before the listing is.
    data.with_name("away").rename(data)
    for _ in range(6):
        query.batch(60)


def a_listing_that_fails_while_idle(query: MonitoredQuery) -> None:
    query.query.data.rename(query.query.data.with_name("away"))
    with pytest.raises(SourceUnavailable) as died:
        query.query.plan()
    query.wait(TICK)
    query.end(died.value)
    query.wait(10 * 60)


def splits_that_cannot_be_read(query: MonitoredQuery) -> None:
    query.land(text='{"id": "not a number"}\n')
    query.batch()
    query.land()
    query.batch()
    query.land()
    query.batch()


class Story(NamedTuple):
    happens: Callable[[MonitoredQuery], None]
    fires: set[str]
    options: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}


STORIES = {
    "healthy": Story(a_healthy_day, set()),
    "hangs": Story(a_batch_that_never_ends, {"SluiceQueryHangs"}),
    "dies": Story(a_query_that_dies, {"SluiceQueryFailed"}, {"mode": "FAILFAST"}),
    "killed": Story(a_driver_that_is_killed, {"SluiceQueryGone"}),
    "behind": Story(
        a_query_that_falls_behind, {"SluiceQueryBehind"}, settings={"limits": BatchLimits(files=1)}
    ),
    "listing fails while busy": Story(
        a_listing_that_fails_while_batches_run,
        {"SluiceListingFails"},
        {"discoveryAttempts": "1000"},
        {"limits": BatchLimits(files=2)},
    ),
    "listing fails while idle": Story(
        a_listing_that_fails_while_idle, {"SluiceListingFails"}, {"discoveryAttempts": "3"}
    ),
    "quarantine": Story(
        splits_that_cannot_be_read,
        {"SluiceSplitsQuarantined"},
        {"mode": "FAILFAST", "onSplitError": "return"},
        {"max_split_attempts": 1},
    ),
}


@pytest.mark.sample("hangs", "dies", "killed", "behind", "quarantine", why="a day with 60 batches")
@pytest.mark.parametrize("name", STORIES)
def test_each_trouble_fires_its_alert_and_a_healthy_day_none(name, tmp_path, monkeypatch):
    story = STORIES[name]
    monkeypatch.setattr(backlog, "_FIRST_DELAY", 0.05)
    monkeypatch.setattr(backlog, "_BACK_OFF_LIMIT", 0.05)
    with _monitored(tmp_path, story.settings, **story.options) as query:
        story.happens(query)
    assert {alert for alert, _ in query.fired} == story.fires
    for alert, labels in query.fired:
        assert ("query", "orders") in labels, alert


def test_rules_and_dashboard_use_only_metrics_that_a_query_has(tmp_path):
    with _monitored(tmp_path, {}) as query:
        query.query.data.rename(query.query.data.with_name("away"))
        query.end()
        query.end(SourceUnavailable("gone", "", "", "", ""))
        query.wait(TICK)
    scraped = {dict(labels)["__name__"] for labels in query.scrapes.taken[-1][1]}
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    shown = [
        target["expr"].replace("$__rate_interval", "5m")
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert len(shown) >= 10
    assert metrics_in(shown) | metrics_in(rule["expr"] for rule in rules) <= scraped

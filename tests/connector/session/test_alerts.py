"""The shipped alert rules, evaluated over what is scraped from real queries."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files import backlog
from pyspark_sluice.errors import SluiceError, SourceUnavailable
from pyspark_sluice.tests.connector.session.monitored_query import BEGIN, TICK, MonitoredQuery
from pyspark_sluice.tests.connector.session.prometheus_rules import (
    Labels,
    alerts_of,
    metrics_in,
)
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

RULES = ROOT / "examples" / "monitoring" / "alerts.yml"
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
        made.close()


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
    deadline = time.monotonic() + PATIENCE
    while query.report()["failedListings"] < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
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


@pytest.fixture(scope="module", params=STORIES)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A query that has lived through it, and the alerts that were to fire."""
    told, place = STORIES[request.param], tmp_path_factory.mktemp("query")
    with (
        pytest.MonkeyPatch.context() as patch,
        _monitored(place, told.settings, **told.options) as query,
    ):
        patch.setattr(backlog, "_BACK_OFF_LIMIT", 0.05)
        told.happens(query)
        yield query, told.fires


def test_each_trouble_fires_its_alert_and_a_healthy_day_none(story):
    query, expected = story
    assert query.names() == expected
    for name, labels in query.fired:
        assert ("query", "orders") in labels, name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_itself_says_the_same(story, tmp_path):
    query, _ = story
    series: dict[str, list[str]] = {}
    for number, (_, vector) in enumerate(query.scrapes.taken, start=1):
        for labels, value in vector.items():
            name = dict(labels)["__name__"]
            # promtool's time begins at 0.
            shown = value - BEGIN if name.endswith("_timestamp_seconds") else value
            values = series.setdefault(_written(labels), ["_"] * number)
            _fill(values, number)
            values.append(repr(shown))
    ends = len(query.scrapes.taken)
    for values in series.values():
        _fill(values, ends + 1)
    expected = [
        {
            "labels": _written(
                labels
                | frozenset(rule.labels.items())
                | {("alertname", name), ("alertstate", "firing")}
            ),
            "value": 1,
        }
        for name, labels in query.fired
        for rule in query.alerts
        if rule.name == name
    ]
    fired = {
        "expr": 'max_over_time(ALERTS{alertstate="firing"}[2d])',
        "eval_time": f"{ends * TICK:.0f}s",
        "exp_samples": expected,
    }
    written = [{"series": name, "values": " ".join(values)} for name, values in series.items()]
    test = {"interval": "30s", "input_series": written, "promql_expr_test": [fired]}
    file = tmp_path / "test.yml"
    rules = {"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": [test]}
    file.write_text(yaml.safe_dump(rules))
    done = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _fill(values: list[str], count: int) -> None:
    """A series that a scrape lacks is stale."""
    if len(values) < count:
        values += ["stale", *("_" for _ in range(count - len(values) - 1))]


def _written(labels: Labels) -> str:
    pairs = dict(labels)
    name = pairs.pop("__name__", "")
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(pairs.items())) + "}"


def test_rules_and_dashboard_use_only_metrics_that_a_query_has(tmp_path):
    with _monitored(tmp_path, {}) as query:
        query.query.data.rename(query.query.data.with_name("away"))
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


def test_panels_of_the_dashboard_do_not_overlap_and_name_its_data_source():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identities)) == len(identities)
    assert {one["name"] for one in dashboard["templating"]["list"]} == {"datasource", "query"}

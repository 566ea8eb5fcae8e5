"""What `sluice watch` shows of a state that is not there yet, of a dead query, and over time."""

from __future__ import annotations

import io
import json
import os

import pytest
from rich.console import Console

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.commands import watch
from pyspark_sluice.connector.cli.commands.status import status_lines, status_of
from pyspark_sluice.connector.query.owner import owner_of
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.errors import StateMissingError
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.patience import wait_until


def shown(query, backlog=None, at=0.0, width=150):
    """As a terminal with colours gets it."""
    store = query.store
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=width)
    backlog = backlog or watch.Backlog()
    looked = watch._shown(at, status_of(store), str(owner_of(store)), backlog)
    console.print(looked)
    return console.file.getvalue()


@pytest.fixture
def behind(query):
    """Two files wait, and the process of the query has ended."""
    query.settings["limits"] = BatchLimits(files=1)
    query.restart()
    query.land("a.json", "b.json", "c.json")
    for name in ("a.json", "b.json", "c.json"):
        os.utime(query.data / name, (1e9, 1e9))
    query.plan()
    query.coordinator.close()
    return query


def test_a_state_that_does_not_exist_yet_is_waited_for(tmp_path, capsys, monkeypatch):
    made = []

    def begin(_: float) -> None:
        if not made:
            query = Query(tmp_path)
            made.append(query)
            query.land("a.json")
            query.batch()

    monkeypatch.setattr(watch.time, "sleep", begin)
    place = str(tmp_path / "ck")
    # The query waits for its batch with the same `sleep`, which does nothing then.
    assert main(["watch", place, "--count", "2", "--interval", "0.1", "--json"]) == 0
    made[0].coordinator.close()
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert "no state of a sluice source found" in first["waiting"]
    assert second["files_seen"] == 1
    assert main(["watch", str(tmp_path / "never"), "--count", "1"]) == 0
    assert "waiting for a state" in capsys.readouterr().out


def test_a_state_that_disappears_is_an_error(query):
    looks = watch.looks(lambda: query.store, 0.0, 2, {})
    query.land("a.json")
    query.batch()
    next(looks)
    query.coordinator.close()
    for path in sorted((query.location / "sluice").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(StateMissingError):
        next(looks)


def test_no_end_is_estimated_of_a_query_that_does_not_run_and_problems_are_coloured(behind):
    text = shown(behind)
    assert "left, and no query runs" in text
    assert "backlog read in" not in dict(status_lines(status_of(behind.store), ""))
    lines, red, yellow = text.splitlines(), "\x1b[31m", "\x1b[33m"
    assert red in next(line for line in lines if "it has ended" in line)
    assert yellow in next(line for line in lines if "oldest" in line)
    assert red not in next(line for line in lines if "quarantined" in line)
    # A narrow terminal breaks a long path, and cuts nothing.
    assert "…" not in shown(behind, width=40)


def test_no_end_is_estimated_of_a_backlog_that_grows(tmp_path):
    query = Query(tmp_path, settings={"limits": BatchLimits(files=1)})
    query.land("a.json", "b.json", "c.json")
    query.batch()
    backlog = watch.Backlog()
    first = shown(query, backlog)
    assert "backlog read in" in first
    assert "left, " in first
    query.land(*(f"d-{at}.json" for at in range(20)), rows=1000)
    # The files of the first listing end before those of the next.
    wait_until(lambda: query.batch() and status_of(query.store)["files_seen"] > 3, "more files")
    text = shown(query, backlog, at=10.0)
    query.coordinator.close()
    assert "↑ grows by" in text
    assert "left, growing" in text
    assert "backlog read in" not in text


def test_what_the_first_listing_finds_is_no_growth(tmp_path):
    query = Query(tmp_path, settings={"limits": BatchLimits(files=1)})
    query.coordinator.latest(query.done)
    backlog = watch.Backlog()
    shown(query, backlog)
    query.land("a.json", "b.json", "c.json")
    query.batch()
    text = shown(query, backlog, at=10.0)
    query.coordinator.close()
    assert "grows" not in text
    assert "backlog read in" in text


def test_progress_is_of_the_largest_backlog_and_the_trend_says_whether_it_grows():
    seen = watch.Backlog()
    assert [seen.done(left) for left in (100, 75, 0, 200, 50)] == [0.0, 0.25, 1.0, 0.0, 0.75]

    def said(*sizes):
        backlog = watch.Backlog()
        return [backlog.trend(float(10 * at), size) for at, size in enumerate(sizes)][-1].plain

    assert said(100) == ""
    assert said(0, 10240) == "↑ grows by 1.0 KiB a second over 10 s"
    assert said(10240, 5120, 0) == "↓ shrinks by 512 B a second over 20 s"
    assert said(7, 7) == "unchanged over 10 s"
    # Only the last minute counts.
    assert said(*[9999] * 40, *[50] * 31) == "unchanged over 5 min 0 s"

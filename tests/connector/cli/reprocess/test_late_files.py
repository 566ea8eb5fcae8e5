"""Files that come too late for their event time, through a whole query."""

import json

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.views.files_as_of import quarantine
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.tests.connector.cli.command_line import drained, run

pytestmark = pytest.mark.slow


def land(query, **ids):
    """Files of one row, each in the partition of an hour: h07=1."""
    for name, number in ids.items():
        path = query.data / "date=2026-01-02" / f"hour={name[1:3]}" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(json.dumps({"id": number}) + "\n")
        hidden.rename(path)


@pytest.fixture
def ordered(query):
    """A query that has taken hour 10."""
    query.options |= {"fileOrder": "eventTime", "maxEventTimeSkew": "1h"}
    query.restart()
    land(query, h10=10)
    assert drained(query) == [10]
    return query


def test_a_late_file_is_read_and_named_in_the_status_and_in_the_report(ordered, capsys):
    land(ordered, h08=8, h09=9)
    assert drained(ordered) == [8, 9]
    status = run(capsys, "status", ordered.state)
    assert (status["event_time"]["reached"], status["event_time"]["lateFiles"]) == (
        "2026-01-02T10:00:00Z",
        1,
    )
    assert status["event_time"]["newestLateFiles"][0].endswith("/hour=08/h08.json")
    assert main(["status", ordered.state]) == 0
    assert "h08.json" in capsys.readouterr().out
    ordered.restart()
    land(ordered, h12=12)
    assert drained(ordered) == [12]
    assert ordered.coordinator.report()["eventTime"]["lateFiles"] == 1


@pytest.mark.effect_of("onLateFile")
def test_a_late_file_in_quarantine_survives_a_restart_and_is_read_when_a_person_orders_it(
    ordered, capsys
):
    ordered.options["onLateFile"] = "quarantine"
    ordered.restart()
    land(ordered, h08=8, h11=11)
    assert drained(ordered) == [11]
    ordered.restart()
    land(ordered, h12=12)
    assert drained(ordered) == [12]
    (row,) = quarantine(StateView(ordered.store)).to_pylist()
    assert row["path"].endswith("h08.json")
    assert "came after files of 2026-01-02T10:00:00Z" in row["reason"]
    assert run(capsys, "status", ordered.state, code=1)["quarantined"] == 1
    run(capsys, "requeue", ordered.state, "--quarantined", "--yes")
    assert drained(ordered) == [8]
    assert run(capsys, "status", ordered.state)["quarantined"] == 0


def test_a_late_file_alone_is_durable_in_quarantine_though_no_batch_has_rows(ordered, capsys):
    ordered.options["onLateFile"] = "quarantine"
    ordered.restart()
    land(ordered, h08=8)
    assert ordered.batch() == []
    assert run(capsys, "status", ordered.state, code=1)["quarantined"] == 1


def test_a_week_is_read_and_then_the_rest_with_other_bounds(query):
    query.options |= {"startAt": "2026-01-02T03:00:00", "endAt": "2026-01-02T05:00:00"}
    query.restart()
    land(query, h02=2, h03=3, h04=4, h05=5)
    assert drained(query) == [3, 4]
    assert query.coordinator.report()["filesSkipped"] == {"startAt": 1, "endAt": 1}
    query.options |= {"startAt": "path:date=2026-01-02/hour=02", "endAt": ""}
    query.restart()
    assert drained(query) == [2, 5]


def test_a_range_of_event_times_is_read_again_and_all_of_its_files_are_listed(query, capsys):
    hours = range(8, 23)
    land(query, **{f"h{hour:02}": hour for hour in hours})
    assert drained(query) == [*hours]
    chosen = ["requeue", query.state, "--event-time", "2026-01-02T09..2026-01-02T20"]
    shown = run(capsys, *chosen)
    assert [row["path"][-8:-5] for row in shown["first"]] == [
        f"h{hour:02}" for hour in range(9, 20)
    ]
    assert main(chosen) == 0
    text = capsys.readouterr().out
    assert [hour for hour in hours if f"h{hour:02}.json" in text] == [*range(9, 20)]
    run(capsys, *chosen, "--yes")
    assert drained(query) == [*range(9, 20)]
    (record,) = run(capsys, "orders", query.state)
    assert record["matching"] == "event time 2026-01-02T09..2026-01-02T20"
    by_pattern = ["--event-time-pattern", "hour={HH}", "--yes"]
    assert main([*chosen, *by_pattern]) != 0
    assert "does not name a time" in capsys.readouterr().err
    by_pattern = ["--event-time-pattern", "date={yyyy}-{MM}-{dd}/hour={HH}", "--matching", "*/h1*"]
    assert run(capsys, *chosen, *by_pattern)["files"] == 10
    for text in ("2026-01-02", "..", "x..y"):
        assert main(["requeue", query.state, "--event-time", text]) != 0
        assert "--event-time" in capsys.readouterr().err

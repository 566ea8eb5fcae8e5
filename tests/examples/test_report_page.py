"""What a report says first, and its axes: equal distances are equal times."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pyspark_sluice.connector.query.owner import Owner
from pyspark_sluice.examples.demo.report.charts import TimeAxis, charts_of
from pyspark_sluice.examples.demo.report.figures import Batch, Figures
from pyspark_sluice.examples.demo.report.html_page import page_of, verdict_of

BEGIN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)


def figures(starts, owner=None, **more):
    batches = [
        Batch(number, BEGIN + timedelta(seconds=start), 0.5, 100, 1000, 0, 0, 0.2, 0.1)
        for number, start in enumerate(starts, 1)
    ]
    given = {"files": {}, "quarantine": [], "in_flight": [], **more}
    return Figures("/state", batches, owner=owner or Owner(1, "here", 7, "running"), **given)


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (1, ["03:00:00.0", "03:00:00.2", "03:00:00.4", "03:00:00.6", "03:00:00.8", "03:00:01.0"]),
        (20, ["03:00:00", "03:00:05", "03:00:10", "03:00:15", "03:00:20"]),
        (150, ["03:00:00", "03:00:30", "03:01:00", "03:01:30", "03:02:00", "03:02:30"]),
        (4 * 3600, ["03:00", "04:00", "05:00", "06:00", "07:00"]),
        (30 * 3600, ["01-02 06:00", "01-02 12:00", "01-02 18:00", "01-03 00:00", "01-03 06:00"]),
        (5 * 86_400, ["2026-01-03", "2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07"]),
    ],
)
def test_labels_are_few_and_at_round_times(seconds, labels):
    axis = TimeAxis.of(BEGIN.timestamp(), BEGIN.timestamp() + seconds)
    assert [axis.formatted(tick) for tick in axis.ticks] == labels


def dots(svg):
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]


def test_equal_distances_are_equal_times_and_a_line_is_interrupted_where_a_query_was_idle():
    drawn = charts_of(figures([0, 3, 6, 126, 129]))
    for title, svg in drawn.items():
        series = 2 if title.startswith("Skew") else 1
        at = dots(svg)[: len(dots(svg)) // series]
        first, second, third, fourth, _ = at
        assert (fourth - third) / (second - first) == pytest.approx(40, rel=0.01), title
        assert third - second == pytest.approx(second - first, rel=0.01)
    # Plots below each other have the same time at the same place.
    places = {tuple(dict.fromkeys(dots(svg))) for svg in drawn.values()}
    origins = {
        match for svg in drawn.values() for match in re.findall(r'(<g [^>]*class="plot">)', svg)
    }
    assert len(places) == len(origins) == 1
    svg = drawn["Throughput: rows per second"]
    assert len(re.findall(r'<path d="M[^"]+ L[^"]+" class="line', svg)) == 2


GONE = Owner(1, "here", 7, "gone")
WAITING = [{"checkpoint": 3, "readers": [{"committed": False}]}]


def backlog(of, *files):
    batches = [
        replace(batch, backlog_files=count, backlog_bytes=count * 1024)
        for batch, count in zip(of.batches, files, strict=True)
    ]
    return replace(of, batches=batches)


def test_a_backlog_that_grows_is_to_be_watched_and_one_that_shrinks_is_not():
    found = verdict_of(figures([0, 3]))
    assert (found.level, found.sentences) == ("good", ("The query runs.", "There is no backlog."))
    grows, shrinks = (verdict_of(backlog(figures([0, 3]), *of)) for of in ((1, 5), (5, 1)))
    assert grows.level == "watch"
    assert grows.sentences[1] == (
        "The backlog is 5 files, 5.0 KiB, and has grown over the last 2 batches."
    )
    assert shrinks.level == "good"
    assert "1 file, 1.0 KiB, and has not grown" in shrinks.sentences[1]


def test_quarantine_and_a_batch_that_nobody_finishes_are_bad():
    quarantined = verdict_of(figures([0], quarantine=[{"path": "/a"}]))
    assert (quarantined.level, quarantined.sentences[-1]) == ("bad", "1 split in quarantine.")
    stopped = verdict_of(figures([0], owner=GONE, in_flight=WAITING))
    assert (stopped.level, stopped.sentences[0]) == (
        "bad",
        "No query runs, and a batch is not finished.",
    )
    ended = verdict_of(figures([0], owner=GONE))
    assert (ended.level, ended.sentences[0]) == ("watch", "No query runs.")
    assert verdict_of(figures([0], files={"skipped": (2, 10)})).sentences[-1] == "2 files skipped."


def test_bad_records_are_watched_and_a_batch_of_nothing_else_is_bad():
    some = figures([0, 3])
    some = replace(some, batches=[some.batches[0], replace(some.batches[1], bad_records=50)])
    verdict = verdict_of(some)
    assert (verdict.level, verdict.sentences[-1]) == (
        "watch",
        "50 bad records, 20.0% of all, not read.",
    )
    assert "No split was given up on. 50 bad records not read." in page_of(some, {})
    whole = replace(
        some, batches=[some.batches[0], replace(some.batches[1], rows=0, bad_records=100)]
    )
    verdict = verdict_of(whole)
    assert (verdict.level, verdict.sentences[-1]) == (
        "bad",
        "100 bad records, 50.0% of all, not read; 1 of 2 batches had no other.",
    )

"""What a report says first."""

from __future__ import annotations

from dataclasses import replace

from pyspark_sluice.connector.report.html_page import page_of, verdict_of
from pyspark_sluice.connector.views.owner import Owner
from pyspark_sluice.tests.connector.report.made_figures import figures

GONE = Owner(1, "here", 7, "gone")
WAITING = [{"checkpoint": 3, "readers": [{"committed": False}]}]


def backlog(of, *files):
    batches = [
        replace(batch, backlog_files=count, backlog_bytes=count * 1024)
        for batch, count in zip(of.batches, files, strict=True)
    ]
    return replace(of, batches=batches)


def test_a_query_that_runs_and_keeps_up_is_good():
    found = verdict_of(figures([0, 3]))
    assert (found.level, found.sentences) == ("good", ("The query runs.", "There is no backlog."))


def test_a_backlog_that_grows_is_to_be_watched_and_one_that_shrinks_is_not():
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


def test_files_that_were_skipped_are_said():
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

"""The axis of a report: equal distances are equal times."""

from __future__ import annotations

import re

import pytest

from pyspark_sluice.connector.report.charts import TimeAxis, charts_of
from pyspark_sluice.tests.connector.report.made_figures import BEGIN, figures


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


def test_a_gap_of_two_minutes_is_forty_times_as_wide_as_one_of_three_seconds():
    drawn = charts_of(figures([0, 3, 6, 126, 129]))
    for title, svg in drawn.items():
        series = 2 if title.startswith("Skew") else 1
        at = dots(svg)[: len(dots(svg)) // series]
        first, second, third, fourth, _ = at
        assert (fourth - third) / (second - first) == pytest.approx(40, rel=0.01), title
        assert third - second == pytest.approx(second - first, rel=0.01)


def test_plots_below_each_other_have_the_same_time_at_the_same_place():
    drawn = charts_of(figures([0, 3, 6, 126, 129]))
    places = {tuple(dict.fromkeys(dots(svg))) for svg in drawn.values()}
    origins = {
        match for svg in drawn.values() for match in re.findall(r'(<g [^>]*class="plot">)', svg)
    }
    assert len(places) == len(origins) == 1


def test_a_query_that_was_idle_interrupts_the_line():
    svg = charts_of(figures([0, 3, 6, 126, 129]))["Throughput: rows per second"]
    assert len(re.findall(r'<path d="M[^"]+ L[^"]+" class="line', svg)) == 2

"""Options of event time that do not fit are reported with their names."""

from __future__ import annotations

import re

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxEventTimeSkew": "2h"}, "maxEventTimeSkew: found with fileOrder=mtime"),
        ({"onLateFile": "fail"}, "onLateFile: found with fileOrder=mtime"),
        ({"eventTimeColumn": "at"}, "eventTimeColumn: found with fileOrder=mtime"),
        ({"onMissingEventTime": "mtime"}, "onMissingEventTime: found with fileOrder=mtime"),
        ({"eventTimeUnit": "s"}, "eventTimeUnit: found s without eventTimeColumn"),
        (
            {"fileOrder": "eventTime", "eventTimeColumn": "at", "fileFormat": "json"},
            "eventTimeColumn: found with fileFormat=json",
        ),
        (
            {"fileOrder": "eventTime", "eventTimeColumn": "at", "eventTimePattern": "{yyyy}"},
            "eventTimePattern: found, but no option uses times in paths",
        ),
        ({"alignmentGroup": "shop"}, "alignmentGroup: found with fileOrder=mtime"),
        ({"alignmentIdleTimeout": "2m"}, "alignmentIdleTimeout: found with fileOrder=mtime"),
        (
            {"alignmentIdleTimeout": "2m", "fileOrder": "eventTime"},
            "alignmentIdleTimeout: found without alignmentGroup",
        ),
        (
            {"eventTimePattern": "{yyyy}"},
            "eventTimePattern: found, but no option uses times in paths",
        ),
        ({"fileOrder": "eventTime", "eventTimePattern": "{MM}"}, "does not name a time"),
        ({"fileOrder": "eventTime", "freshShare": "0.5"}, "no file comes before an earlier one"),
        ({"startAt": "yesterday"}, "startAt: found 'yesterday'; expected a time such as"),
        ({"startAt": "yesterday"}, "or a name after path:"),
        ({"startAt": "2026-01-02", "endAt": "2026-01-02"}, "which is not after it"),
        ({"startAt": "path:b", "endAt": "path:a"}, "which is not after it"),
    ],
)
def test_each_problem_is_reported_with_its_option(options, problem):
    with pytest.raises(OptionError, match=re.escape(problem)):
        parse_options({"path": "/in", **options}, streaming=False)


@pytest.mark.parametrize(
    "options",
    [
        {"fileOrder": "eventTime", "eventTimePattern": "{yyyy}/{MM}", "maxEventTimeSkew": "0"},
        {"startAt": "2026-01-02", "eventTimePattern": "{yyyy}/{MM}/{dd}"},
        {"fileOrder": "eventTime", "eventTimeColumn": "at", "fileFormat": "orc"},
        {
            "fileOrder": "eventTime",
            "fileFormat": "parquet",
            "eventTimeColumn": "at",
            "eventTimeUnit": "ms",
            "startAt": "2026-01-02",
            "eventTimePattern": "{yyyy}/{MM}/{dd}",
        },
        {"startAt": "2026-01-02T00:00:00+02:00", "endAt": "2026-01-02T00:00:00Z"},
        {"startAt": "path:2026/01/02/", "endAt": "path:2026/01/09"},
    ],
)
def test_options_that_fit_together_are_accepted(options):
    parse_options({"path": "/in", **options}, streaming=False)


def test_times_in_paths_are_in_the_zone_of_the_option_and_so_are_bounds():
    from pyspark_sluice.connector.source.event_time import event_times, place_bounds

    path = "/in/date=2026-07-01/hour=10/a"
    given = {"path": "/in", "startAt": "2026-07-01T10:00"}
    utc = parse_options(given, streaming=False)
    berlin = parse_options({**given, "timeZone": "Europe/Berlin"}, streaming=False)
    assert event_times(utc).of(path) - event_times(berlin).of(path) == 2 * 3_600_000_000
    for options in (utc, berlin):
        bounds = place_bounds(options)
        assert bounds is not None
        assert bounds.start == event_times(options).of(path)

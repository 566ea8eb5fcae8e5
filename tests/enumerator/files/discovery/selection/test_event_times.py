"""Where a path names the time of its file, and which files lie between two bounds."""

import uuid
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.enumerator.files.discovery.selection.criteria import PlaceBounds
from pyspark_sluice.enumerator.files.discovery.selection.event_times import pattern_expression
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import HOUR, moment, times
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger, land, make_discovery


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("", "date=2026-01-02/a", "2026-01-02T00:00:00"),
        ("", "region=eu/dt=20260102/hour=3/a", "2026-01-02T03:00:00"),
        ("", "Day=2026-01-02/hr=03/minute=30/a", "2026-01-02T03:30:00"),
        ("", "ds=2026-01-02 03%3A15%3A07/a", "2026-01-02T03:15:07"),
        ("", "year=2026/month=1/day=2/hour=23/a", "2026-01-02T23:00:00"),
        ("", "year=2026/month=2/a", "2026-02-01T00:00:00"),
        ("", "year=2026/a", "2026-01-01T00:00:00"),
        ("{yyyy}/{MM}/{dd}/{HH}", "2026/01/02/03/a", "2026-01-02T03:00:00"),
        ("{yyyy}/{MM}/{dd}", "deep/in/2026/01/02/03/a", "2026-01-02T00:00:00"),
        (
            "events-{yyyy}{MM}{dd}T{HH}{mm}{ss}",
            "x/events-20260102T030405.json",
            "2026-01-02T03:04:05",
        ),
        ("d={dd}.{MM}.{yyyy}", "d=02.01.2026/a", "2026-01-02T00:00:00"),
        ("{yyyy}-{MM}-{dd}/*-{HH}.json", "2026-01-02/host-7-04.json", "2026-01-02T04:00:00"),
        ("{yyyy}{MM}{dd}", "99202601023/20260102/a", "2026-01-02T00:00:00"),
        ("{yyyy}.{MM}.{dd}", "2025x12x31/2026.01.02/a", "2026-01-02T00:00:00"),
    ],
)
def test_a_path_names_the_time_of_its_file(pattern, path, expected):
    assert times(pattern, "/in").of(f"/in/{path}") == moment(expected)
    assert times(pattern, "s3://bucket/in").of(f"s3://bucket/in/{path}") == moment(expected)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("", "a"),
        ("", "date=yesterday/a"),
        ("", "date=2026-02-30/a"),
        ("", "hour=03/a"),
        ("", "load=2026-01-02/a"),
        ("", "date=2026-01-02"),
        ("", "year=2026/month=one/a"),
        ("{yyyy}/{MM}/{dd}", "2026/13/02/a"),
        ("{yyyy}/{MM}/{dd}", "2026-01-02/a"),
        ("{yyyy}/{MM}/{dd}", "12026/01/02/a"),
    ],
)
def test_a_path_without_a_time_is_an_error_that_names_it(pattern, path):
    with pytest.raises(SourceUnavailable, match="names no event time") as failed:
        times(pattern, "/in").of(f"/in/{path}")
    assert failed.value.where == f"/in/{path}"


def test_only_what_is_below_the_outermost_loaded_path_counts():
    path = "/lake/2025/01/01/in/2026/01/02/a"
    pattern = "{yyyy}/{MM}/{dd}"
    assert times(pattern, "/lake/2025/01/01/in").of(path) == moment("2026-01-02T00:00:00")
    both = times(pattern, "/lake/2025/01/01/in", "/lake")
    assert both.of(path) == moment("2025-01-01T00:00:00")


@pytest.mark.parametrize(
    "pattern", ["", "{MM}/{dd}", "{yyyy}/{dd}", "{yyyy}/{yyyy}", "{yyyy}/{week}", "date", "{yyyy"]
)
def test_a_pattern_that_names_no_time_is_refused(pattern):
    with pytest.raises(ValueError, match="expected"):
        pattern_expression(pattern)


# Bounds ---------------------------------------------------------------------------------------


def taken(root, start, end):
    discovery = make_discovery(root, place=PlaceBounds(start, end, times("", str(root))))
    found = [path.rpartition("date=2026-01-")[2] for path in Ledger().take(discovery)]
    return found, dict(discovery.skipped.counts)


PARTS = st.sampled_from(
    ["a", "b", "ab", "b!", "date=2026-01-01", "date=2026-01-02", "date=2026-01-02T23", "hour=5",
     "dt=2026-01-09", "year=2025", "date=2026-01-03%2010"]
)  # fmt: skip
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
INSTANTS = st.integers(0, 4 * 24).map(
    lambda hours: moment("2026-01-01T00:00:00") - 24 * HOUR + hours * HOUR
)
BOUNDS = st.one_of(st.none(), NAMES, NAMES.map(lambda name: name[:-1]), INSTANTS)


@pytest.mark.parametrize("where", ["local", "remote"])
@given(names=st.sets(NAMES, min_size=1, max_size=12), start=BOUNDS, end=BOUNDS)
def test_directories_are_passed_by_without_missing_a_file(
    tmp_path_factory, where, names, start, end
):
    leaf = "date=2026-01-02/f" if int in (type(start), type(end)) else "f"
    files = {f"{name}/{leaf}" for name in names}
    root = str(tmp_path_factory.mktemp("tree"))
    memory = fsspec.filesystem("memory")
    if where == "remote":
        root = f"memory://{uuid.uuid4().hex}"
    for name in files:
        if where == "remote":
            memory.pipe_file(f"{root}/{name}", b"x")
        else:
            land(Path(root), name)
    base = root.replace("memory://", "memory:///")
    bounds = PlaceBounds(start, end, times("", base, root))
    found = Ledger().take(make_discovery(root, place=bounds))
    assert found == sorted(f"{base}/{name}" for name in files if bounds.takes(f"{base}/{name}"))


@pytest.mark.parametrize(
    ("start", "end", "scanned"),
    [
        ("date=2026-01-10", "date=2026-01-12", 2),
        (moment("2026-01-10T05:00:00"), moment("2026-01-12T00:00:00"), 2),
        (moment("2026-01-10T05:00:00"), None, 22),
    ],
)
def test_directories_out_of_bounds_are_not_read(tmp_path, calls, start, end, scanned):
    for day in range(1, 32):
        land(tmp_path, f"date=2026-01-{day:02}/hour=05/a")
    discovery = make_discovery(tmp_path, place=PlaceBounds(start, end, times("", str(tmp_path))))
    found = Ledger().take(discovery)
    assert len(found) == scanned
    # The root, and two of each day.
    assert calls["scandir"] == 1 + 2 * scanned
    assert sum(discovery.skipped.counts.values()) == 31 - scanned

"""A week of three feeds under a timer: exit codes and metrics tell each fault apart.

Each day brings files of three writers: events as gzip JSON, orders as CSV, readings as Parquet in a
bucket. A run starts, the next one while it is at work, and what happens to people happens.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.slow

DONE, PERSON, AGAIN = 0, 1, 75

FEEDS = ("events", "orders", "readings")


class Week:
    """The feeds, what was delivered, and the process that a timer starts."""

    def __init__(self, root: Path, server, bucket: str) -> None:
        self.root, self.server, self.bucket = root, server, bucket
        self.delivered: dict[str, set[int]] = {name: set() for name in FEEDS}
        self.metrics = root / "feeds.prom"
        self.options = ""
        for name in ("events", "orders"):
            (root / "in" / name).mkdir(parents=True)
        self.write()

    def write(self) -> None:
        """The configuration; `options` are those of the orders."""
        storage = json.dumps({**self.server.options, "retry_config": {"max_retries": 0}})
        (self.root / "sluice.toml").write_text(
            f"""
[defaults]
metrics-file = "{self.metrics}"
[feed.events]
path = "in/events"
format = "json"
to = "delta:table/events"
checkpoint = "checkpoint/events"
[feed.orders]
path = "in/orders"
format = "csv"
to = "delta:table/orders"
checkpoint = "checkpoint/orders"
schema = "id long, amount double"
[feed.orders.options]
header = true
{self.options}
[feed.readings]
path = "s3://{self.bucket}/readings"
format = "parquet"
to = "delta:table/readings"
checkpoint = "checkpoint/readings"
[feed.readings.options]
storageOptions = '{storage}'
"""
        )

    def deliver(self, day: int, rows: int = 2000) -> None:
        """The files of a day; from the third on, events have a column more."""
        ids = {
            name: range((day * 10 + n) * 10_000, (day * 10 + n) * 10_000 + rows)
            for n, name in enumerate(FEEDS)
        }
        more = {"plan": "free"} if day >= 3 else {}
        events = "".join(json.dumps({"id": i, "tags": ["a"], **more}) + "\n" for i in ids["events"])
        self.place("events", f"{day}.json.gz", gzip.compress(events.encode()))
        orders = "".join(f"{i},{i / 4}\n" for i in ids["orders"])
        self.place("orders", f"{day}.csv", f"id,amount\n{orders}".encode())
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": list(ids["readings"])}), sink)
        self.server.put(self.bucket, f"readings/{day}.parquet", sink.getvalue().to_pybytes())
        for name, new in ids.items():
            self.delivered[name] |= set(new)

    def place(self, feed: str, name: str, data: bytes) -> None:
        """A file appears as a whole."""
        temporary = self.root / f".{name}"
        temporary.write_bytes(data)
        temporary.rename(self.root / "in" / feed / name)

    def start(self) -> subprocess.Popen[str]:
        """What the timer starts."""
        return subprocess.Popen(
            [sys.executable, "-m", "pyspark_sluice", "run", "--config", "sluice.toml"],
            cwd=self.root,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self) -> tuple[int, str]:
        """A run to its end: its exit code, and what it says on standard error."""
        process = self.start()
        _, errors = process.communicate(timeout=300)
        return process.returncode, errors

    def errors(self) -> dict[str, str]:
        """Feed -> the class of its last error, by the metrics."""
        return {
            sample.labels["feed"]: sample.labels["error"]
            for family in text_string_to_metric_families(self.metrics.read_text())
            for sample in family.samples
            if sample.name == "sluice_last_error_timestamp_seconds"
        }

    def check_rows(self, *feeds: str) -> None:
        """Each row that was delivered is in its table once."""
        for name in feeds or FEEDS:
            table = DeltaTable(str(self.root / "table" / name))
            ids = table.to_pyarrow_table(columns=["id"])["id"].to_pylist()
            assert sorted(ids) == sorted(self.delivered[name]), name


@pytest.fixture
def week(tmp_path, server, bucket):
    return Week(tmp_path, server, bucket)


def the_timer_overlaps(week: Week) -> None:
    """The second start does not disturb the first, and says which feeds it left alone."""
    first, second = week.start(), week.start()
    outcomes = [(p.communicate(timeout=300)[1], p.returncode) for p in (first, second)]
    codes = sorted(code for _, code in outcomes)
    assert set(codes) <= {DONE, AGAIN}, outcomes
    for errors, code in outcomes:
        assert errors.count(": QueryRunningError: ") == errors.count("\n")
        assert (code == AGAIN) == bool(errors)
    # What both left alone is read by the next one.
    assert week.run()[0] == DONE


def runs_are_killed(week: Week) -> None:
    chance = random.Random(7)
    for _ in range(3):
        process = week.start()
        time.sleep(chance.uniform(0.5, 3.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert week.run() == (DONE, "")


def a_column_is_new(week: Week) -> None:
    assert week.run() == (DONE, "")
    assert "plan" in DeltaTable(str(week.root / "table/events")).schema().to_arrow().names


def the_disk_is_full(week: Week) -> None:
    with _no_room(week.root / "table/orders"):
        code, errors = week.run()
    assert (code, errors.count("\n")) == (PERSON, 1), errors
    assert errors.startswith("orders: ")
    assert "No space left" in errors
    assert list(week.errors()) == ["orders"]
    week.check_rows("events", "readings")
    assert week.run() == (DONE, "")
    assert week.errors() == {}


@contextmanager
def _no_room(table: Path) -> Iterator[None]:
    """Put the table on a file system without room, where this user may."""
    aside = table.with_name("aside")
    table.rename(aside)
    table.mkdir()
    size = sum(path.stat().st_size for path in aside.rglob("*") if path.is_file()) + 200_000
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(table)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        table.rmdir()
        aside.rename(table)
        pytest.skip("a file system without room needs the right to mount")
    try:
        subprocess.run(["cp", "-a", f"{aside}/.", str(table)], check=True)
        filler = table / "filler"
        with filler.open("wb", 0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield
    finally:
        subprocess.run(["umount", str(table)], check=True)
        table.rmdir()
        aside.rename(table)


def a_key_expires(week: Week) -> None:
    def expired(_, respond):
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>"]

    week.server.fault = expired
    code, errors = week.run()
    assert (code, errors.count("\n")) == (PERSON, 1), errors
    assert "readings: SourceUnavailable: " in errors
    assert "ExpiredToken" in errors
    assert week.errors() == {"readings": "SourceUnavailable"}
    week.check_rows("events", "orders")

    def away(_, respond):
        respond("503 Service Unavailable", [])
        return [b""]

    week.server.fault = away
    began = time.monotonic()
    code, errors = week.run()
    # Before it are lines of the log about listings that are tried again.
    assert (code, errors.splitlines()[-1][:10]) == (AGAIN, "readings: "), errors
    assert time.monotonic() - began < 100
    week.server.fault = None
    assert week.run() == (DONE, "")


def a_file_is_bad(week: Week) -> None:
    week.place("orders", "bad.csv", b"id,amount\n1,2.5\nno number,3\n")
    code, errors = week.run()
    assert (code, errors.count("\n")) == (PERSON, 1), errors
    assert "orders: MalformedDataError: " in errors
    assert "bad.csv" in errors
    assert week.errors() == {"orders": "MalformedDataError"}
    week.check_rows("events", "readings")
    # What the error names: leave the record out.
    week.options = 'mode = "DROPMALFORMED"'
    week.write()
    week.delivered["orders"].add(1)
    assert week.run() == (DONE, "")


def a_run_is_stopped(week: Week) -> None:
    process = week.start()
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) in (DONE, -signal.SIGTERM)  # Before it listens, it has done nothing.
    process.communicate()
    assert week.run() == (DONE, "")


DAYS = (
    *(the_timer_overlaps, runs_are_killed, a_column_is_new, the_disk_is_full, a_key_expires),
    *(a_file_is_bad, a_run_is_stopped),
)


def test_two_days_bring_a_new_column_and_a_bad_file(week):
    for day, happens in ((2, the_timer_overlaps), (3, a_column_is_new), (4, a_file_is_bad)):
        week.deliver(day, rows=200)
        happens(week)
        week.check_rows()


@pytest.mark.thorough("starts some thirty processes, for minutes; `make test` has two of the days")
def test_a_week_tells_each_misfortune_apart_and_has_every_row_once(week):
    for day, happens in enumerate(DAYS, start=1):
        week.deliver(day)
        happens(week)
        week.check_rows()

"""Rows into the sinks of Spark's connectors, killed at any time, and the way to a direct write."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.errors import TableError
from pyspark_sluice.tests.interop import stream
from pyspark_sluice.tests.interop.conftest import newest_state, row, rows
from pyspark_sluice.tests.patience import PATIENCE, wait_until

pytestmark = [
    pytest.mark.drivers,
    pytest.mark.thorough("needs Maven, and a Spark that both connectors know: `make interop`"),
]

FILES, KILLS = 40, 3


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_a_killed_stream_into_spark_s_sink_goes_on_as_a_direct_write(
    lake, catalog, home, jars, feed, sink
):
    if sink == "delta":
        table = str(feed.root / "table")
    else:
        table = "lake.db.streamed"
        lake.sql(f"CREATE TABLE {table} (id bigint, name string, day date) USING iceberg")
    for number in range(FILES):
        feed.land(row(number))
    rows_read = str(feed.root / "checkpoint-rows")
    of_query = (sink, str(feed.landing), rows_read, table)
    chance = random.Random(4)
    call = [sys.executable, "-m", stream.__name__, jars, str(home), *of_query]
    done = Path(rows_read, "commits")
    for _ in range(KILLS):
        before = batches(done)
        process = subprocess.Popen(call, start_new_session=True)
        wait_until(partial(has_more, done, before), "a batch")
        time.sleep(chance.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert batches(done) < FILES, "nothing was left to be read after the kills"
    query = stream.start(lake, *of_query, processingTime="0 seconds")
    read = lake.read.format(sink)
    wait_until(lambda: read.load(table).count() >= FILES, "every file in the table")
    query.stop()
    assert ids(read.load(table)) == [*range(FILES)]

    feed.land(row(FILES))
    state = {"startingState": newest_state(rows_read)}
    if sink == "delta":
        assert feed.run(f"delta:{table}", **state) == 1
    else:
        assert feed.run_into(catalog.load_table("db.streamed"), **state) == 1
    assert ids(read.load(table)) == [*range(FILES + 1)]


def test_a_stream_writes_an_iceberg_table_of_version_3_which_a_direct_write_refuses(
    lake, catalog, feed
):
    table = "lake.db.version_3"
    of_version = "TBLPROPERTIES ('format-version' = '3')"
    lake.sql(f"CREATE TABLE {table} (id bigint, name string, day date) USING iceberg {of_version}")
    feed.land(row(0), row(1))
    with pytest.raises(TableError, match="found format-version 3"):
        feed.run_into(catalog.load_table("db.version_3"))
    assert not (feed.root / "checkpoint/sluice/source/epochs").exists()
    of_query = ("iceberg", str(feed.landing), str(feed.root / "checkpoint-rows"), table)
    for count in (2, 3):
        query = stream.start(lake, *of_query, processingTime="0 seconds")
        wait_until(partial(has_rows, lake, table, count), "every row in the table")
        query.stop()
        assert ids(lake.table(table)) == [*range(count)]
        feed.land(row(count))


def has_rows(lake: Any, table: str, count: int) -> bool:
    return lake.table(table).count() >= count


def ids(frame: Any) -> list[int]:
    return [row["id"] for row in rows(frame)]


def batches(done: Path) -> int:
    return len([*done.glob("[0-9]*")])


def has_more(done: Path, before: int) -> bool:
    return batches(done) > before

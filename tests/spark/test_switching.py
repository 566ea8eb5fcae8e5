"""From Spark's own file source to this one, with a real query before and after."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from pyspark_sluice import tables
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.examples.delta import delta
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = pytest.mark.spark

NAMES = ["plain.json", "with blank.json", "100%.json", "a%20b.json", "k=v.json"]
LATER = ["ünï #1.json", "z{1}.json"]


def old_query(lake, checkpoint, write):
    """A run to its end with Spark's own file source, two files a batch."""
    frame = lake.spark.readStream.format("json").schema("id long, text string")
    frame = frame.option("maxFilesPerTrigger", 2).load(str(lake.source))
    writer = write(frame.writeStream).option("checkpointLocation", str(checkpoint))
    query = lake.run(writer.trigger(availableNow=True))
    assert query.awaitTermination(PATIENCE)


def into_files(table):
    return lambda writer: writer.format("parquet").option("path", str(table))


def imported(capsys, old, lake, *arguments, code=0):
    places = [str(old), str(lake.source), str(lake.checkpoint)]
    assert main(["import-spark", *places, *arguments, "--yes", "--json"]) == code
    said = capsys.readouterr()
    return said.err if code else json.loads(said.out)


@pytest.fixture
def ended(lake):
    """The checkpoint of a query with Spark's own source that has filled the lake's table."""
    old = lake.source.with_name("old")
    for at, name in enumerate(NAMES):
        lake.land(name, range(at, at + 1))
    old_query(lake, old, into_files(lake.sink))
    assert len(list((old / "commits").glob("[0-9]"))) == 3
    for at, name in enumerate(LATER):
        lake.land(name, range(10 + at, 11 + at))
    return old


@pytest.mark.thorough("test_file_log_import.py reads such logs without Spark")
def test_what_sparks_file_source_has_read_is_not_read_again(spark, lake, capsys):
    for at, name in enumerate(NAMES):
        lake.land(name, range(at, at + 1))
    old = lake.source.with_name("old")
    interval = "spark.sql.streaming.fileSource.log.compactInterval"
    spark.conf.set(interval, "2")
    try:
        old_query(lake, old, into_files(old.with_name("table")))
    finally:
        spark.conf.unset(interval)
    assert (old / "sources" / "0" / "1.compact").exists()
    assert len(list((old / "commits").glob("[0-9]"))) == 3
    counts = imported(capsys, old, lake)["counts"]
    assert (counts["matched"], counts["changed"], counts["not_listed"]) == (5, 0, 0)
    lake.landed.clear()
    for at, name in enumerate(LATER):
        lake.land(name, range(10 + at, 11 + at))
    lake.drain()
    lake.check_exactly_once()
    lake.drain()
    lake.check_exactly_once()


# Into the same table --------------------------------------------------------------------------


@pytest.mark.thorough("continues a table as the Delta one does")
def test_the_table_of_sparks_file_sink_is_continued(lake, ended, capsys):
    told = imported(capsys, ended, lake, "--continue-query")
    assert told["continues"]["batch"] == 2
    lake.drain(maxFilesPerTrigger=1)
    lake.check_exactly_once()
    lake.land("after.json", range(20, 25))
    lake.drain()
    lake.check_exactly_once()
    assert (lake.checkpoint / "metadata").read_bytes() == (ended / "metadata").read_bytes()
    assert sorted(path.name for path in (lake.checkpoint / "commits").glob("[0-9]")) == [
        "2", "3", "4", "5",
    ]  # fmt: skip


@pytest.mark.thorough("a table of Spark's own stream; a checkpoint of it is above")
def test_a_table_that_knows_query_and_batch_is_continued(lake, capsys, monkeypatch):
    old = lake.source.with_name("old")

    def write(checkpoint):
        def append(batch, number):
            delta.append(batch, number, str(lake.sink), tables.query_id(str(checkpoint)))

        return lambda writer: writer.foreachBatch(append)

    for at, name in enumerate(NAMES):
        lake.land(name, range(at, at + 1))
    old_query(lake, old, write(old))
    for at, name in enumerate(LATER):
        lake.land(name, range(10 + at, 11 + at))
    imported(capsys, old, lake, "--continue-query")

    def run():
        frame = lake.frame(maxFilesPerTrigger=1)
        writer = write(lake.checkpoint)(frame.writeStream).trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
        assert query.awaitTermination(PATIENCE)

    with monkeypatch.context() as patch:
        # After the write, before Spark's commit: the batch is repeated, and recognized.
        whole = delta.append

        def written_and_dead(*arguments):
            whole(*arguments)
            raise RuntimeError("killed")

        patch.setattr(delta, "append", written_and_dead)
        with pytest.raises(StreamingQueryException, match="killed"):
            run()
    run()
    rows = DeltaTable(str(lake.sink)).to_pyarrow_table()
    assert Counter(rows["id"].to_pylist()) == lake.landed

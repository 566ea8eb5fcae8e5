"""From Spark's own file source to this one, with a real query before and after."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = pytest.mark.spark

NAMES = ["plain.json", "with blank.json", "100%.json", "a%20b.json", "k=v.json"]
LATER = ["ünï #1.json", "z{1}.json"]


def test_what_sparks_file_source_has_read_is_not_read_again(spark, lake, capsys):
    for at, name in enumerate(NAMES):
        lake.land(name, range(at, at + 1))
    old = lake.source.with_name("old")
    interval = "spark.sql.streaming.fileSource.log.compactInterval"
    spark.conf.set(interval, "2")
    try:
        frame = spark.readStream.format("json").schema("id long, text string")
        frame = frame.option("maxFilesPerTrigger", 2).load(str(lake.source))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(old))
        query = lake.run(writer.trigger(availableNow=True), str(old.with_name("table")))
        assert query.awaitTermination(PATIENCE)
    finally:
        spark.conf.unset(interval)
    assert (old / "sources" / "0" / "1.compact").exists()
    assert len(list((old / "commits").glob("[0-9]"))) == 3
    places = [str(old), str(lake.source), str(lake.checkpoint)]
    assert main(["import-spark", *places, "--yes", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["matched"], counts["changed"], counts["not_listed"]) == (5, 0, 0)
    lake.landed.clear()
    for at, name in enumerate(LATER):
        lake.land(name, range(10 + at, 11 + at))
    lake.drain()
    lake.check_exactly_once()
    lake.drain()
    lake.check_exactly_once()

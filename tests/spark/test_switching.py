"""From Spark's own file source to this one, with a real query before and after."""

import json

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_sluice import tables
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.examples.delta import delta
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = pytest.mark.spark

NAMES = ["plain.json", "with blank.json", "100%.json", "a%20b.json", "k=v.json"]
LATER = ["ünï #1.json", "z{1}.json"]


@pytest.mark.thorough("test_file_log_import.py reads such logs without Spark")
def test_a_table_of_sparks_file_source_is_continued_and_no_file_is_read_again(
    spark, lake, capsys, monkeypatch
):
    old = lake.source.with_name("old")

    def write(checkpoint):
        def append(batch, number):
            delta.append(batch, number, str(lake.sink), tables.query_id(str(checkpoint)))

        return lambda writer: writer.foreachBatch(append)

    for at, name in enumerate(NAMES):
        lake.land(name, range(at, at + 1))
    interval = "spark.sql.streaming.fileSource.log.compactInterval"
    spark.conf.set(interval, "2")
    try:
        # A run to its end with Spark's own file source, two files a batch.
        frame = spark.readStream.format("json").schema("id long, text string")
        frame = frame.option("maxFilesPerTrigger", 2).load(str(lake.source))
        writer = write(old)(frame.writeStream).option("checkpointLocation", str(old))
        assert lake.run(writer.trigger(availableNow=True)).awaitTermination(PATIENCE)
    finally:
        spark.conf.unset(interval)
    assert (old / "sources" / "0" / "1.compact").exists()
    assert len(list((old / "commits").glob("[0-9]"))) == 3
    for at, name in enumerate(LATER):
        lake.land(name, range(10 + at, 11 + at))
    places = [str(old), str(lake.source), str(lake.checkpoint)]
    assert main(["import-spark", *places, "--continue-query", "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    counts = said["counts"]
    assert (counts["matched"], counts["changed"], counts["not_listed"]) == (5, 0, 2)
    assert said["continues"]["batch"] == 2
    assert (lake.checkpoint / "metadata").read_bytes() == (old / "metadata").read_bytes()

    def run():
        frame = lake.frame(maxFilesPerTrigger=1)
        lake.finish(write(lake.checkpoint)(frame.writeStream))

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
    assert lake.in_table() == lake.landed
    commits = (lake.checkpoint / "commits").glob("[0-9]")
    assert sorted(path.name for path in commits) == ["2", "3", "4"]

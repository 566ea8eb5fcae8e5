"""Which state an offset of Spark belongs to: sources that change places, copies, backups."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from pyspark_sluice.tests.patience import PATIENCE


def union(lake, *names):
    """A query of one source for each name, each with a folder of its own."""
    frames = []
    for name in names:
        (lake.source / name).mkdir(exist_ok=True)
        usual = {"fileFormat": "json", "checkpointLocation": str(lake.checkpoint)}
        reader = lake.spark.readStream.format("sluice").schema("id long, text string")
        for key, value in {**usual, "sourceName": name}.items():
            reader = reader.option(key, value)
        frames.append(reader.load(str(lake.source / name)))
    both = frames[0].union(frames[1])
    writer = both.writeStream.format("parquet").trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)), str(lake.sink))
    assert query.awaitTermination(PATIENCE)


def noop(lake):
    """An AvailableNow run that keeps no rows."""
    writer = lake.frame().writeStream.format("noop").trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(PATIENCE)


@pytest.mark.thorough("two sources in one query are in test_protocol_in_spark.py")
def test_sources_that_change_places_are_refused_by_name_and_nothing_is_read(lake):
    lake.land("0.json", range(10), folder="a")
    lake.land("1.json", range(10, 20), folder="b")
    union(lake, "a", "b")
    lake.land("2.json", range(20, 30), folder="a")
    with pytest.raises(Exception, match="it is from another query"):
        union(lake, "b", "a")
    union(lake, "a", "b")
    lake.check_exactly_once()


@pytest.mark.thorough("a copy of a directory shows the check")
def test_a_backup_goes_on_where_it_was_made_and_half_a_backup_is_refused(lake, tmp_path):
    lake.land("0.json", range(10))
    lake.drain()
    backup = tmp_path / "backup"
    shutil.copytree(lake.checkpoint, backup)
    lake.land("1.json", range(10, 20))
    lake.drain()
    # The state alone: Spark's log names a checkpoint that the backup does not have.
    state = lake.state
    state.rename(tmp_path / "newer state")
    shutil.copytree(backup / "sluice" / "source", state)
    with pytest.raises(Exception, match="is not in the state directory"):
        lake.drain()
    # It has gone its own way from there: the same names, other contents.
    shutil.rmtree(state)
    shutil.copytree(backup / "sluice" / "source", state)
    (state / "FORMAT").unlink()
    spark = tmp_path / "spark of the newer"
    lake.checkpoint.rename(spark)
    shutil.copytree(backup, lake.checkpoint)
    noop(lake)
    assert (lake.state / "FORMAT").read_bytes() == b'{"format": 1}\n', "restored from the claims"
    shutil.rmtree(spark / "sluice")
    shutil.copytree(lake.checkpoint / "sluice", spark / "sluice")
    lake.checkpoint = spark
    with pytest.raises(Exception, match="it is from another copy of the state"):
        lake.drain()
    assert lake.ingested() == Counter(range(20))


@pytest.mark.thorough("a copy of a directory shows the check")
def test_a_backup_under_a_table_that_goes_on_fails_before_a_skipped_batch_counts(lake, tmp_path):
    lake.land("0.json", range(10))
    lake.drain()
    backup = tmp_path / "backup"
    shutil.copytree(lake.checkpoint, backup)
    for i in (1, 2):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
        lake.drain()
    shutil.rmtree(lake.checkpoint)
    shutil.copytree(backup, lake.checkpoint)
    # The sink has the next two batch numbers, with other files than these.
    lake.land("3.json", range(30, 40))
    for _ in range(2):
        with pytest.raises(Exception, match="no reader ran in a batch that Spark has completed"):
            lake.drain(maxFilesPerTrigger=1, fileOrder="newestFirst")
    assert lake.ingested() == Counter(range(30))
    # What the error names: another table.
    shutil.rmtree(lake.checkpoint)
    lake.sink = tmp_path / "another table"
    lake.drain()
    lake.check_exactly_once()

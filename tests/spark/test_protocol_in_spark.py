"""The checkpoint protocol as Spark really drives it."""

from __future__ import annotations

import shutil

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import HAS_READ_LIMITS


def test_two_sources_with_names_of_their_own_each_read_everything(lake):
    lake.land("0.json", range(10))
    both = lake.frame(sourceName="left").union(lake.frame(sourceName="right"))
    writer = both.writeStream.format("parquet").trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)), str(lake.sink))
    assert query.awaitTermination(PATIENCE)
    assert set(lake.ingested().values()) == {2}


def into_table(lake, frame, checkpoint):
    """A run into the lake's table, with Spark's checkpoint where it is said."""
    writer = frame.writeStream.format("parquet").option("path", str(lake.sink))
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    assert lake.run(writer).awaitTermination(PATIENCE)


@pytest.mark.thorough("that of another query is found in the test below")
def test_a_wrong_checkpoint_location_is_found_before_any_row_is_read(lake, tmp_path):
    lake.land("0.json", range(10))
    wrong = tmp_path / "elsewhere"
    with pytest.raises(Exception, match="Spark's checkpoint is missing") as caught:
        into_table(lake, lake.frame(checkpointLocation=str(wrong)), lake.checkpoint)
    assert str(wrong / "metadata") in str(caught.value)
    assert "start again: no row was read" in str(caught.value)
    assert not wrong.exists()
    assert not lake.ingested()
    # What the error says: nothing else has to be done.
    lake.drain()
    lake.check_exactly_once()


def test_the_checkpoint_of_another_query_is_found_before_any_row_is_read(lake, tmp_path):
    lake.land("0.json", range(10))
    own = tmp_path / "own"
    lake.drain(sourceName="first")
    lake.sink.rename(tmp_path / "table of the first")
    with pytest.raises(Exception, match="belongs to another query") as caught:
        into_table(lake, lake.frame(sourceName="second"), own)
    assert "delete the checkpoint of writeStream" in str(caught.value)
    assert not lake.ingested()
    shutil.rmtree(own)
    into_table(lake, lake.frame(checkpointLocation=str(own)), own)
    lake.check_exactly_once()


@pytest.mark.thorough("test_options_have_effects.py permits it without Spark")
def test_a_query_may_be_permitted_to_read_nothing(lake):
    lake.land("0.json", range(10))

    def run(**options):
        writer = lake.frame(**options).writeStream
        writer = writer.foreachBatch(lambda frame, number: None).trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
        assert query.awaitTermination(PATIENCE)

    def unnoticed(**options):
        # Spark before 4.2 asks nothing after the run's one batch: the next run notices or permits.
        if not HAS_READ_LIMITS:
            run(**options)

    unnoticed()
    with pytest.raises(Exception, match="no reader ran in a batch that Spark has completed"):
        run()
    lake.land("1.json", range(10, 20))
    unnoticed(allowUnreadBatches=True)
    run(allowUnreadBatches=True)
    lake.land("2.json", range(20, 30))
    unnoticed(allowUnreadBatches=True)
    with pytest.raises(Exception, match="no reader ran in a batch that Spark has completed"):
        run()

"""The checkpoint protocol as Spark really drives it."""

import shutil

import pytest

from pyspark_sluice.tests.patience import PATIENCE


@pytest.mark.thorough("test_recorded.py refuses what is of another source without Spark")
def test_two_sources_each_read_everything_and_are_refused_when_they_change_places(lake):
    def run(*names):
        left, right = (lake.frame(sourceName=name) for name in names)
        lake.finish(left.union(right).writeStream.format("parquet"), str(lake.sink))

    lake.land("0.json", range(10))
    run("left", "right")
    lake.land("1.json", range(10, 20))
    with pytest.raises(Exception, match="it is from another query"):
        run("right", "left")
    run("left", "right")
    assert lake.ingested() == lake.landed + lake.landed


def into_table(lake, frame, checkpoint):
    """A run into the lake's table, with Spark's checkpoint where it is said."""
    writer = frame.writeStream.format("parquet").option("path", str(lake.sink))
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    assert lake.run(writer).awaitTermination(PATIENCE)


def test_a_wrong_checkpoint_is_found_before_any_row_is_read(lake, tmp_path):
    lake.land("0.json", range(10))
    own, nowhere = tmp_path / "own", tmp_path / "nowhere"
    with pytest.raises(Exception, match="Spark's checkpoint is missing") as caught:
        into_table(lake, lake.frame(checkpointLocation=str(nowhere)), own)
    assert str(nowhere / "metadata") in str(caught.value)
    assert not nowhere.exists()
    lake.drain(sourceName="first")
    lake.sink.rename(tmp_path / "table of the first")
    with pytest.raises(Exception, match="belongs to another query") as caught:
        into_table(lake, lake.frame(sourceName="second"), own)
    assert "delete the checkpoint of writeStream" in str(caught.value)
    assert not lake.ingested()
    shutil.rmtree(own)
    into_table(lake, lake.frame(checkpointLocation=str(own)), own)
    lake.check_exactly_once()

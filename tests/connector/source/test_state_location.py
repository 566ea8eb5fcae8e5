"""Queries that begin from a checkpoint of another one."""

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.state_location import query_without_batches, starting_state
from pyspark_sluice.enumerator.settings import StartingState
from pyspark_sluice.tests.connector.queries import Query


@pytest.mark.effect_of("startingState")
def test_what_the_first_batch_after_a_savepoint_with_an_index_found_is_not_found_again(tmp_path):
    old = Query(tmp_path)
    old.settings["deltas_per_base"] = 1
    old.restart()
    old.land("a.json", "b.json")
    old.batch()
    old.await_base()
    old.coordinator.close()
    assert old.store.list("index")
    new = Query(tmp_path, state=str(tmp_path / "ck2" / "sluice" / "source"))
    start = {"startingState": f"{old.state}@{old.done.checkpoint}"}
    given = {**new.options, "checkpointLocation": "unused", **start}
    options = parse_options(given, streaming=True)
    new.settings["starting_state"] = lambda: StartingState(*starting_state(options))
    new.restart()
    new.land("c.json", rows=1)
    assert new.batch() == [0]
    new.restart()
    new.land("d.json", rows=2)
    assert new.batch() == [0, 1]
    new.coordinator.close()


def test_a_query_is_without_batches_until_spark_has_written_one_down(tmp_path):
    options = parse_options({"path": "/in", "checkpointLocation": str(tmp_path)}, streaming=True)
    (tmp_path / "metadata").write_text('{"id": "mine"}')
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.crc").write_text("")
    assert query_without_batches(options) == "mine"
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1")
    # Its offsets were lost: that is no first batch.
    assert query_without_batches(options) == ""
    alone = parse_options({"path": "/in", "stateLocation": str(tmp_path)}, streaming=True)
    assert query_without_batches(alone) == ""

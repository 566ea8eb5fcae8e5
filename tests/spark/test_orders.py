"""waive around a real query: its batch continues without a file that is gone."""

from __future__ import annotations

import json
import time

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.cli.command_line import run
from pyspark_sluice.tests.patience import PATIENCE


def order(capsys, lake, command, *arguments, code=0):
    """As soon as the Python process of the query that has ended is gone."""
    deadline = time.monotonic() + PATIENCE
    said = [command, str(lake.checkpoint), *arguments, "--yes", "--json"]
    while (found := main(said)) == 4 and time.monotonic() < deadline:
        assert "a query is using this state" in capsys.readouterr().err
        time.sleep(0.1)
    assert found == code
    output = capsys.readouterr()
    return json.loads(output.out) if code == 0 else output.err


@pytest.mark.spark
@pytest.mark.thorough("the simulation of orders has the same without Spark")
def test_a_batch_whose_file_is_gone_after_it_was_acknowledged_goes_on_without_it(lake, capsys):
    lake.land("a.json", range(10))
    gone = lake.land("b.json", range(10, 30))
    stored, down = {}, [True]

    def sink(frame, batch_id):
        rows = sorted(row.id for row in frame.collect())
        if down:
            message = "the sink is down"
            raise RuntimeError(message)
        stored[batch_id] = rows

    def drain():
        writer = lake.frame().writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
        return query.awaitTermination(PATIENCE)

    with pytest.raises(Exception, match="the sink is down"):
        drain()
    gone.unlink()
    lake.land("c.json", range(30, 40))
    down.clear()
    with pytest.raises(Exception, match="ReplayError") as error:
        drain()
    assert "sluice waive" in str(error.value)
    assert "ignoreMissingFiles" not in str(error.value)
    shown = run(capsys, "waive", str(lake.checkpoint))
    assert (shown["order"], shown["files"], shown["rows"]) == (None, 1, 20)
    done = order(capsys, lake, "waive", "--reason", "archived by mistake")
    assert (done["order"], done["rows"]) == (1, 20)
    assert drain()
    assert [rows for rows in stored.values() if rows] == [list(range(10)), list(range(30, 40))]
    (said,) = run(capsys, "orders", str(lake.checkpoint))
    assert (said["action"], said["state"], said["rows"]) == ("waive", "done", 20)
    (row,) = run(capsys, "files", str(lake.checkpoint), "--in-state", "waived")
    assert row["path"].endswith("b.json")
    assert row["reason"] == "given up by order 1: archived by mistake"
    assert "no batch is in flight" in order(capsys, lake, "waive", code=2)

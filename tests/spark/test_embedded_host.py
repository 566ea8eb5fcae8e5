"""One query whose host changes between Spark and `pyspark_sluice.run`: nothing lost or doubled."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from pyspark_sluice import run, tables
from pyspark_sluice.connector.host.embedded_query import EmbeddedRun
from pyspark_sluice.connector.host.run import checked_with_target
from pyspark_sluice.errors import FencedError, SluiceError
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.spark.host_sweep import Sweep
from pyspark_sluice.tests.spark.soak_grounds import OneMachine
from pyspark_sluice.tests.spark.versions import SEVERAL_BATCHES

SCHEMA = "id long, text string"


def options_of(lake, **more):
    return {
        "path": str(lake.source),
        "fileFormat": "json",
        "checkpointLocation": str(lake.checkpoint),
        "writeTo": str(lake.sink),
        "writeSchema": SCHEMA,
        **more,
    }


def by_spark(lake, sink=None, **more):
    options = options_of(lake, **more)
    path = options.pop("path")
    reader = lake.spark.readStream.format("sluice").options(**options)
    writer = reader.load(path).writeStream.foreachBatch(sink or tables.delta(str(lake.sink)))
    writer = writer.option("checkpointLocation", str(lake.checkpoint)).trigger(availableNow=True)
    query = lake.run(writer)
    assert query.awaitTermination(PATIENCE)


def embedded(lake, sink=None, **more):
    return run(options_of(lake, **more), to=sink or f"delta:{lake.sink}")


def in_table(lake):
    rows = DeltaTable(str(lake.sink)).to_pyarrow_table(columns=["id"])
    return Counter(rows["id"].to_pylist())


def numbers(lake, log):
    return sorted(int(p.name) for p in (lake.checkpoint / log).iterdir() if p.name.isdecimal())


def fails(batch, _):
    batch.collect()
    message = "the table is away"
    raise RuntimeError(message)


@pytest.mark.thorough("one host finishes the batch of the other in the test below")
@SEVERAL_BATCHES
@pytest.mark.parametrize("hosts", [(by_spark, embedded), (embedded, by_spark)])
def test_hosts_take_turns_on_one_checkpoint(lake, hosts):
    for turn in range(4):
        for number in range(3):
            first = (turn * 3 + number) * 10
            lake.land(f"{turn}-{number}.json", range(first, first + 10))
        hosts[turn % 2](lake, maxFilesPerTrigger=2)
    assert in_table(lake) == lake.landed
    # Two batches a turn, numbered without a gap across hosts; one transaction each.
    assert numbers(lake, "offsets") == numbers(lake, "commits") == list(range(8))
    assert len(DeltaTable(str(lake.sink)).history()) == 8
    # Spark keeps its settings of the query in the offsets, and the embedded host passes them on.
    headers = [
        json.loads((lake.checkpoint / "offsets" / str(n)).read_text().splitlines()[1])
        for n in range(8)
    ]
    assert all(header["conf"] for header in headers[4:])


@pytest.mark.sample("hosts0", why="the same batch, begun by the other host")
@pytest.mark.parametrize("hosts", [(by_spark, embedded), (embedded, by_spark)])
def test_a_batch_that_one_host_began_is_finished_by_the_other_without_reading_again(lake, hosts):
    first, second = hosts
    landed = lake.land("0.json", range(10))
    with pytest.raises(Exception, match="the table is away"):
        first(lake, fails)
    assert (numbers(lake, "offsets"), (lake.checkpoint / "commits" / "0").exists()) == ([0], False)
    # Its rows are in data files already.
    landed.unlink()
    second(lake)
    assert in_table(lake) == lake.landed
    lake.land("1.json", range(10, 20))
    first(lake)
    assert in_table(lake) == lake.landed


@pytest.mark.thorough("two embedded hosts at once are in test_run.py")
def test_of_two_hosts_at_once_the_older_one_stops_and_spark_may_be_either(lake):
    lake.land("0.json", range(10))
    options = options_of(lake)
    reader = lake.spark.readStream.format("sluice").options(**options)
    writer = reader.load().writeStream.foreachBatch(tables.delta(str(lake.sink)))
    spark = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    wait_until((lake.checkpoint / "commits" / "0").exists)
    given, target = checked_with_target(options, f"delta:{lake.sink}")
    batch = None
    while batch is None:
        lake.land(
            f"{lake.landed.total()}.json", range(lake.landed.total(), lake.landed.total() + 5)
        )
        newer = EmbeddedRun(given, target, workers=1, every=0.2).batches()
        # Spark may begin a batch at the same moment, and stop after it.
        with suppress(FencedError):
            batch = next(newer)
    with pytest.raises(StreamingQueryException, match=r"FencedError.*another query"):
        spark.awaitTermination(PATIENCE)
    lake.land("spark.json", range(lake.landed.total(), lake.landed.total() + 5))
    by_spark(lake)
    lake.land("late.json", range(lake.landed.total(), lake.landed.total() + 5))
    with pytest.raises(FencedError, match="another query"):
        list(newer)
    by_spark(lake)
    assert in_table(lake) == lake.landed


def test_a_checkpoint_of_a_query_that_handed_rows_to_spark_is_refused(lake):
    lake.land("0.json", range(10))
    options = options_of(lake)
    path = options.pop("path")
    del options["writeTo"], options["writeSchema"]
    reader = lake.spark.readStream.format("sluice").options(**options).schema(SCHEMA)
    writer = reader.load(path).writeStream.foreachBatch(fails)
    writer = writer.option("checkpointLocation", str(lake.checkpoint)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="the table is away"):
        lake.run(writer).awaitTermination(PATIENCE)
    with pytest.raises(SluiceError, match="first read without writeTo"):
        embedded(lake)


@pytest.mark.thorough("hosts take turns below, and are killed alone in test_run.py")
def test_kills_around_changes_of_the_host_lose_and_double_nothing(tmp_path):
    ground = OneMachine(tmp_path / "root", direct=True)
    sweep = Sweep(ground, 3, 12, random.Random(3))
    sweep.run()
    assert (sweep.lost(), sweep.duplicated()) == (0, 0), sweep.kills
    assert sweep.kills.total() >= 12


@pytest.mark.thorough("a Spark of its own; hosts take turns above")
def test_the_command_runs_the_same_query_under_spark(tmp_path):
    query = Query(tmp_path)
    query.land("0.json", range(10))
    assert query.run()[0] == 0
    query.land("1.json", range(10, 20))
    code, _, errors = query.run("--spark", "local[2]", is_alone=False)
    assert code == 0, errors
    query.land("2.json", range(20, 30))
    assert query.run()[0] == 0
    assert query.in_table() == query.landed
    assert query.logged("commits") == [0, 1, 2]
    code, _, errors = query.run("--spark", "no master", is_alone=False)
    assert code == 1

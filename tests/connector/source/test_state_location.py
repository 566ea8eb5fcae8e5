"""Queries that begin from a checkpoint of another one, and how long Spark's batches took."""

from __future__ import annotations

import os
from functools import partial

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.state_location import SparkBatches, starting_state
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.patience import wait_until


def batches_of(**options):
    return SparkBatches(parse_options({"path": "/in", **options}, streaming=True))


def write(root, log, number, at):
    path = root / log / str(number)
    path.parent.mkdir(exist_ok=True)
    path.write_text("v1\n")
    os.utime(path, (at, at))


def test_a_batch_lasts_from_its_offset_to_its_commit(tmp_path):
    batches = batches_of(checkpointLocation=str(tmp_path))
    assert batches.seconds_of_newest() is None, "nothing is there"
    for number in range(9, 12):
        write(tmp_path, "offsets", number, 1000.0 + 60 * number)
        write(tmp_path, "commits", number, 1000.0 + 60 * number + number)
    (tmp_path / "commits" / ".12.crc").write_text("")
    assert batches.seconds_of_newest() == pytest.approx(11.0)
    assert batches.seconds_of_newest() is None, "nothing is new"
    write(tmp_path, "offsets", 12, 5000.0)
    assert batches.seconds_of_newest() is None, "it has not ended"
    write(tmp_path, "commits", 12, 5003.0)
    assert batches.seconds_of_newest() == pytest.approx(3.0)


def test_without_a_log_nothing_is_known(tmp_path):
    assert batches_of(stateLocation=str(tmp_path)).seconds_of_newest() is None
    unknown = batches_of(checkpointLocation=f"memory://{tmp_path.name}/ck")
    assert unknown.seconds_of_newest() is None


def test_the_log_may_be_in_a_bucket(server, bucket):
    client = server.client()

    def written(key):
        client.put_object(Bucket=bucket, Key=key, Body=b"v1")
        return client.head_object(Bucket=bucket, Key=key)["LastModified"].timestamp()

    began = written("ck/offsets/3")
    # The store tells times in whole seconds.
    wait_until(lambda: written("ck/commits/3") > began, "another second")
    ended = client.head_object(Bucket=bucket, Key="ck/commits/3")["LastModified"].timestamp()
    client.put_object(Bucket=bucket, Key="ck/offsets/4", Body=b"v1")
    options = as_json(server.options)
    batches = batches_of(checkpointLocation=f"s3://{bucket}/ck", storageOptions=options)
    assert batches.seconds_of_newest() == ended - began >= 1.0


def begun_from(query, name="ck2"):
    """A new query over the same files that begins from the newest checkpoint of `query`."""
    made = Query(query.data.parent, state=str(query.data.parent / name / "sluice" / "source"))
    given = {
        **made.options,
        "checkpointLocation": "unused",
        "startingState": f"{query.state}@{query.done.checkpoint}",
    }
    options = parse_options(given, streaming=True)
    made.settings["starting_state"] = partial(starting_state, options)
    made.restart()
    return made


def test_what_the_first_batch_after_a_savepoint_with_an_index_found_is_not_found_again(tmp_path):
    old = Query(tmp_path)
    old.settings["deltas_per_base"] = 1
    old.restart()
    old.land("a.json", "b.json")
    old.batch()
    old.await_base()
    old.coordinator.close()
    assert old.store.list("index")
    new = begun_from(old)
    new.land("c.json", rows=1)
    assert new.batch() == [0]
    new.restart()
    new.land("d.json", rows=2)
    assert new.batch() == [0, 1]
    new.coordinator.close()

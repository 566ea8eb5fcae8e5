"""How long Spark's batches took is read from the times of its own log."""

from __future__ import annotations

import os

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.spark_batches import SparkBatches
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
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

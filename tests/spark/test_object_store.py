"""A real S3 API on loopback: data and state both in a bucket."""

from __future__ import annotations

import json
from collections import Counter

import pytest

fsspec = pytest.importorskip("s3fs") and pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def s3():
    """(file system, storage options as JSON) of a fresh server with one bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "key": "test",
        "secret": "test",
        "client_kwargs": {"endpoint_url": f"http://{host}:{port}"},
    }
    files = fsspec.filesystem("s3", skip_instance_cache=True, **options)
    files.call_s3("create_bucket", Bucket="lake")
    yield files, json.dumps(options)
    server.stop()


def test_a_bucket_is_ingested_once_with_its_state_in_the_bucket(s3, lake):
    files, options = s3

    def put(name, ids):
        lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
        files.pipe_file(f"lake/in/{name}", lines.encode())
        lake.landed.update(ids)

    def drain():
        reader = lake.spark.readStream.format("sluice").schema("id long, text string")
        reader = reader.option("fileFormat", "json").option("maxFilesPerTrigger", "2")
        reader = reader.option("stateLocation", "s3a://lake/state").option(
            "storageOptions", options
        )
        reader = reader.option("checkpointLocation", str(lake.checkpoint))
        writer = reader.load("s3a://lake/in").writeStream.format("parquet")
        writer = writer.trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)), str(lake.sink))
        assert query.awaitTermination(120)

    put("a/0.json", range(10))
    put("a/1.json", range(10, 20))
    put("b/2.json", range(20, 30))
    put("b/_hidden.json", range(0))
    drain()
    lake.check_exactly_once()
    put("b/3.json", range(30, 40))
    drain()
    lake.check_exactly_once()
    names = Counter(path.split("/")[3] for path in files.find("lake/state"))
    assert names["checkpoints"] == 3
    assert names["epochs"] == 2


def test_a_second_publish_of_one_object_loses_loudly(s3):
    from pyspark_sluice.checkpoint_meta.store import open_store

    _, options = s3
    store = open_store("s3://lake/store", json.loads(options))
    store.publish("checkpoints/1", b"first")
    with pytest.raises(FileExistsError):
        store.publish("checkpoints/1", b"second")
    assert store.read("checkpoints/1") == b"first"
    assert store.list("checkpoints") == ["1"]
    store.delete("checkpoints/1")
    assert store.list("checkpoints") == []

"""Where a state is looked for: buckets as well as directories, and Spark's log above it."""

import json

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.query_records import find_seed
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.query.spark_checkpoint import offsets_referred, to_offset
from pyspark_sluice.tests.connector.cli.command_line import run, spark_knows
from pyspark_sluice.tests.connector.queries import Query, in_memory

pytestmark = pytest.mark.slow


@pytest.fixture
def query(tmp_path):
    made = Query(tmp_path)
    made.land("a.json", "b.json")
    made.batch()
    made.coordinator.close()
    return made


def test_a_state_in_a_bucket_is_reported_as_one_in_a_directory(query, server, bucket, capsys):
    url, options = f"s3://{bucket}/ck", json.dumps(server.options)
    store = open_store(f"{url}/sluice/source", server.options)
    for name, data in in_memory(query).objects.items():
        store.publish(name, data)

    spark_knows(query, query.done, committed=True)
    for name in ("offsets/1", "commits/1"):
        open_store(url, server.options).publish(name, (query.location / name).read_bytes())

    local = run(capsys, "checkpoints", str(query.location))
    assert [row["state"] for row in local] == ["complete"]
    for place in (url, f"{url}/", f"{url}/sluice/source", f"{url}/sluice", f"s3a://{bucket}/ck"):
        assert run(capsys, "checkpoints", place, "--storage-options", options) == local
    assert main(["status", f"{url}/sluice/x", "--storage-options", options]) == 3
    assert main(["status", url, "--source-name", "x", "--storage-options", options]) == 3
    assert "one of: source" in capsys.readouterr().err

    new = ("fork", url, f"s3://{bucket}/new", "--yes", "--storage-options", options)
    assert main([*new]) == 0
    seeded = open_store(f"s3://{bucket}/new/sluice/source", server.options)
    assert find_seed(seeded).purpose == "fork"


def write_offsets(query, *batches, version="v1", names=("",)):
    log = query.location / "offsets"
    log.mkdir()
    (query.location / "metadata").write_text('{"id":"a"}')
    for at, offsets in enumerate(batches):
        lines = [f"{names[n % len(names)]}{json.dumps(each)}" for n, each in enumerate(offsets)]
        (log / str(at)).write_text("\n".join([version, '{"batchWatermarkMs":0}', *lines]))


def offset(query, checkpoint, **changes):
    """Of a checkpoint of the query, whether it is there or not."""
    (known, *_) = query.coordinator.history.checkpoints()
    identity = query.coordinator.history.load(known).identity
    return {**to_offset(identity), "checkpoint": checkpoint, **changes}


def test_what_sparks_log_refers_to_is_looked_for(query, capsys):
    write_offsets(query, [offset(query, 1)], [offset(query, 2)])
    found = offsets_referred(str(query.location), query.store, {})
    assert found == [CheckpointRef(1, 1), CheckpointRef(2, 1)]
    (finding,) = run(capsys, "verify", str(query.location), code=1)["findings"]
    assert finding["object"] == f"checkpoints/{CheckpointRef(2, 1).name}.arrow"
    # The state alone does not say that there was another.
    assert main(["verify", query.state]) == 0


def test_verify_notices_that_spark_s_metadata_is_missing(query, capsys):
    write_offsets(query, [offset(query, 1)])
    assert main(["verify", str(query.location)]) == 0
    (query.location / "metadata").unlink()
    capsys.readouterr()
    assert main(["verify", str(query.location)]) == 1
    assert "metadata  Spark's file of the query's id" in capsys.readouterr().out


def test_spark_s_log_says_what_is_missing_where_no_checkpoint_is_left(query, capsys):
    write_offsets(query, [offset(query, 1)])
    for path in (query.location / "sluice" / "source" / "checkpoints").iterdir():
        path.unlink()
    assert offsets_referred(str(query.location), query.store, {}) == [CheckpointRef(1, 1)]
    findings = run(capsys, "verify", str(query.location), code=1)["findings"]
    missing = {finding["object"] for finding in findings}
    assert f"checkpoints/{CheckpointRef(1, 1).name}.arrow" in missing


# Spark 4.2 and newer write names with spark.sql.streaming.offsetLog.formatVersion=2.
@pytest.mark.parametrize(("version", "names"), [("v1", ("",)), ("v2", ("orders:", "events:"))])
def test_of_a_query_with_several_sources_an_offset_says_whose_it_is(query, version, names):
    batch = [offset(query, 7, lineage="ffff"), offset(query, 1)]
    write_offsets(query, batch, version=version, names=names)
    assert offsets_referred(str(query.location), query.store, {}) == [CheckpointRef(1, 1)]
    assert main(["verify", str(query.location)]) == 0

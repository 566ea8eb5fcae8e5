"""Orders together with everything else that a state can go through."""

import json
import re
import shlex
from functools import partial

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.documents.orders import Orders
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.reprocess.known_files import as_present
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.start_position import newest_acknowledged
from pyspark_sluice.errors import StateError, StateVersionError
from pyspark_sluice.tests.connector.cli.command_line import (
    drained,
    land,
    quarantine,
    run,
    spark_knows,
)
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow


def test_orders_do_not_travel_with_a_savepoint(query, tmp_path, capsys):
    land(query, a=1)
    drained(query)
    before = query.done
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert drained(query) == [1]
    query.coordinator.close()
    for ref in (before, query.done):
        other = Query(tmp_path / f"other{ref.checkpoint}", path=str(query.data))
        other.settings["starting_state"] = lambda ref=ref: StartingState(query.store, ref)
        assert 1 not in drained(other)
        land(query, **{f"new{ref.checkpoint}": 7})
        assert drained(other)[-1:] == [7]
        # Its own orders begin at 1, and are done.
        run(capsys, "requeue", other.state, "--matching", "*/a.json", "--yes")
        assert drained(other) == [1]
        header = CheckpointHistory(other.store).load(other.done).header
        assert header.orders == 1
        other.coordinator.close()


def test_a_query_without_spark_s_checkpoint_reads_everything_again_once(query, capsys):
    land(query, a=1, b=2)
    drained(query)
    query.coordinator.close()
    query.done = NO_CHECKPOINT
    with pytest.raises(StateError, match="everything would be ingested again") as refused:
        drained(query)
    (command,) = re.findall("`sluice (requeue .*?)`", str(refused.value))
    run(capsys, *shlex.split(command))
    query.settings["starting_state"] = newest = partial(_newest_read, query)
    assert f"startingState to this directory and @{newest().ref.checkpoint};" in str(refused.value)
    # A driver that dies before its first batch is in Spark's log; the next one begins like it.
    query.start()
    query.coordinator.latest(NO_CHECKPOINT)
    assert drained(query) == [1, 2]
    query.coordinator.close()
    query.done = NO_CHECKPOINT
    assert drained(query) == []


def _newest_read(query):
    ref = newest_acknowledged(query.store)
    assert ref is not None
    return StartingState(open_store(f"{query.state}/"), ref)


def test_old_orders_are_not_carried_out_after_another_state(query, tmp_path, capsys):
    land(query, a=1, b=2)
    other = Query(tmp_path / "other", path=str(query.data))
    drained(other)
    drained(query)
    run(capsys, "requeue", query.state, "--matching", "*/a*", "--yes")
    assert drained(query) == [1]
    again = Orders(query.store).read(1)
    Orders(query.store).publish(again.model_copy(update={"action": "forget", "nonce": "2"}))
    query.done = NO_CHECKPOINT
    query.settings["starting_state"] = lambda: StartingState(other.store, other.done)
    land(query, c=3)
    assert drained(query) == [3]
    assert CheckpointHistory(query.store).load(query.done).header.orders == 2
    run(capsys, "requeue", query.state, "--matching", "*/b*", "--yes")
    assert drained(query) == [2]


def test_an_order_of_a_newer_release_is_refused_by_both_versions(query, capsys):
    land(query, a=1)
    drained(query)
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    name = "orders/0000000001.json"
    order = without_checksum(query.store.read(name))
    query.store.delete(name)
    query.store.publish(name, with_checksum({**order, "format": 2}))
    with pytest.raises(StateVersionError, match=r"format version 2.*at most format version 1"):
        drained(query)


def test_a_state_that_is_made_small_keeps_what_is_ordered(query, capsys):
    for at, name in enumerate("abc"):
        land(query, **{name: at})
        assert drained(query) == [at]
    run(capsys, "requeue", query.state, "--matching", "*/a*", "--yes")
    assert drained(query) == [0]
    run(capsys, "requeue", query.state, "--matching", "*/b*", "--yes")
    run(capsys, "compact", query.state, "--yes")
    assert drained(query) == [1]
    run(capsys, "compact", query.state, "--yes")
    assert drained(query) == []
    assert [row["state"] for row in run(capsys, "orders", query.state)] == ["done", "done"]
    assert run(capsys, "verify", query.state)["findings"] == []


def test_a_fork_begins_with_what_is_ordered_and_carried_out_and_with_orders_of_its_own(
    query, tmp_path, capsys
):
    query.settings["limits"] = BatchLimits(files=1)
    land(query, a=1, b=2)
    assert drained(query) == [1, 2]
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    query.restart()
    query.coordinator.prepare_available_now()
    first = query.batch()
    query.coordinator.close()
    spark_knows(query, query.done, committed=True)
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    run(capsys, "fork", query.state, str(tmp_path / "new" / "ck"), "--yes")
    other = Query(tmp_path / "new", path=str(query.data))
    # The rest of the first order; the second one stays where it is.
    assert drained(other) == sorted({1, 2} - set(first))
    assert other.store.list("orders") == []
    run(capsys, "requeue", other.state, "--matching", "*/b*", "--yes")
    assert drained(other) == [2]
    assert drained(query) == [1, 2]
    other.coordinator.close()


def test_an_order_about_objects_names_the_versions_that_are_there(server, bucket):
    client = server.client()
    client.put_object(Bucket=bucket, Key="in/a.json", Body=b"0123456789")
    found = client.head_object(Bucket=bucket, Key="in/a.json")
    modified = int(found["LastModified"].timestamp() * 1_000_000)
    there = FileVersion(f"s3://{bucket}/in/a.json", 10, modified, found["ETag"])
    replaced, gone = there._replace(size=7, etag="x"), there._replace(path=f"s3://{bucket}/in/b")
    splits = [FileSplit(there, 2, 5), FileSplit(replaced, 0, 7), FileSplit(gone, 0, 10)]
    present, missing = as_present(splits, server.options, skip_missing=True)
    assert missing == [gone.path]
    assert present[0] == splits[0]
    assert (present[1].start, present[1].end) == (0, 10)


def test_a_file_that_grows_is_read_again_as_far_as_it_was_and_goes_on_growing(query, capsys):
    query.options["onOverwrite"] = "appendTail"
    path = query.data / "a.json"

    def append(*ids):
        with path.open("a") as file:
            file.writelines(json.dumps({"id": each}) + "\n" for each in ids)

    append(1, 2)
    assert drained(query) == [1, 2]
    append(3)
    assert drained(query) == [3]
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    append(4)
    assert drained(query) == [1, 2, 3, 4]
    run(capsys, "rewind", query.state, "--to", "1", "--yes")
    append(5)
    # What the order has read again is in the rewound part, too: bytes are read once an order.
    assert set(drained(query)) == {1, 2, 3, 4, 5}
    append(6)
    assert drained(query) == [6]


def test_a_repaired_file_is_read_once_though_it_is_found_as_a_new_version_as_well(query, capsys):
    query.options["onOverwrite"] = "reprocess"
    quarantine(query, bad=1)
    land(query, bad=1)
    run(capsys, "requeue", query.state, "--quarantined", "--yes")
    assert drained(query) == [1]
    assert drained(query) == []
    # And once it was found and read by itself, nothing is left to be read.
    quarantine(query, worse=2)
    land(query, worse=2)
    assert drained(query) == [2]
    done = run(capsys, "requeue", query.state, "--quarantined", "--yes")
    assert (done["files"], done["released"]) == (0, 1)
    assert drained(query) == []
    assert run(capsys, "files", query.state, "--view", "quarantine") == []

"""requeue, rewind, forget: rows are delivered as often as was ordered, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from pyspark_sluice.checkpoint_meta import epochs
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.orders import Orders
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.sealed_json import sealed, unsealed
from pyspark_sluice.checkpoint_meta.splits import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.presence import as_present
from pyspark_sluice.connector.offsets import to_offset
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.room import BatchLimits
from pyspark_sluice.errors import StateVersionError
from pyspark_sluice.tests.connector.queries import Query


@pytest.fixture(scope="module")
def dead_pid():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.fixture
def query(tmp_path, monkeypatch, dead_pid):
    """A query whose driver is a process that has ended."""
    claim = epochs._claim

    def of_the_dead(*arguments):
        return sealed({**unsealed(claim(*arguments)), "pid": dead_pid})

    monkeypatch.setattr(epochs, "_claim", of_the_dead)
    made = Query(tmp_path)
    yield made
    made.coordinator.close()


def run(capsys, *arguments, code=0):
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def states(capsys, query):
    rows = run(capsys, "files", query.state)
    return {row["path"].rpartition("/")[2]: (row["state"], row["reason"]) for row in rows}


def drained(query, batches=20):
    """Everything there is, to the end: ids that were read."""
    query.coordinator.close()
    query.start()
    query.coordinator.prepare_available_now()
    found = []
    for _ in range(batches):
        ref = query.coordinator.latest(query.done)
        if ref == query.done:
            return sorted(found)
        found += query.read(ref)
        query.done = ref
    raise AssertionError


def land(query, **files):
    for name, row in files.items():
        query.land(f"{name}.json", text=json.dumps({"id": row}) + "\n")


def test_a_file_is_read_once_more_and_not_again_after_that(query, capsys):
    land(query, a=1, b=2)
    assert drained(query) == [1, 2]
    shown = run(capsys, "requeue", query.state, "--matching", "*/a.json")
    assert (shown["files"], shown["order"], shown["bytes"]) == (1, None, 10)
    assert query.store.list("orders") == []
    assert drained(query) == []
    written = run(
        capsys, "requeue", query.state, "--matching", "*/a.json", "--yes", "--reason", "x"
    )
    assert written["order"] == 1
    assert run(capsys, "status", query.state)["orders_waiting"] == 1
    assert drained(query) == [1]
    assert run(capsys, "status", query.state)["orders_waiting"] == 0
    assert drained(query) == []
    assert states(capsys, query) == {"a.json": ("read", None), "b.json": ("read", None)}
    (record,) = run(capsys, "orders", query.state)
    assert (record["action"], record["state"], record["reason"]) == ("requeue", "done", "x")
    assert main(["orders", query.state]) == 0
    assert "requeue" in capsys.readouterr().out
    assert run(capsys, "verify", query.state)["findings"] == []


def test_nothing_chosen_is_said_and_nothing_is_written(query, capsys):
    land(query, a=1)
    drained(query)
    for command, *said in (
        ("requeue", "--matching", "*/none*"),
        ("forget", "--matching", "*/none*"),
        ("rewind", "--to", "1"),
    ):
        found = run(capsys, command, query.state, *said, "--yes", code=1)
        assert (found["order"], found["files"]) == (None, 0)
    assert main(["requeue", query.state, "--matching", "none"]) == 1
    assert "nothing was chosen" in capsys.readouterr().out
    assert query.store.list("orders") == []
    for command in ("requeue", "forget", "rewind"):
        assert main([command, query.state]) == 2
        assert "expected" in capsys.readouterr().err


def test_a_query_that_runs_is_not_interfered_with(tmp_path, capsys):
    query = Query(tmp_path)
    land(query, a=1)
    assert query.batch() == [1]
    again = ["requeue", query.state, "--matching", "*"]
    # It may be looked at.
    assert run(capsys, *again)["files"] == 1
    assert main([*again, "--yes", "--force"]) == 4
    assert "FencedError: a query holds this state" in capsys.readouterr().err
    (leaf,) = query.store.list("epochs")
    claim = unsealed(query.store.read(f"epochs/{leaf}"))
    query.store.delete(f"epochs/{leaf}")
    query.store.publish(f"epochs/{leaf}", sealed({**claim, "host": "elsewhere"}))
    assert main([*again, "--yes"]) == 4
    assert "add --force" in capsys.readouterr().err
    assert query.store.list("orders") == []
    # Whoever is wrong about it loses nothing: the order is done at the next start.
    assert run(capsys, *again, "--yes", "--force")["order"] == 1
    land(query, b=2)
    assert query.batch() == [2]
    assert drained(query) == [1]
    query.coordinator.close()


def test_everything_after_a_checkpoint_is_read_again(query, capsys):
    for at, name in enumerate("abc"):
        land(query, **{name: at})
        assert drained(query) == [at]
    first = query.done.checkpoint - 2
    shown = run(capsys, "rewind", query.state, "--to", str(first))
    assert {row["path"][-6:] for row in shown["first"]} == {"b.json", "c.json"}
    assert main(["rewind", query.state, "--to", str(first)]) == 0
    text = capsys.readouterr().out
    assert "delivered once more" in text
    assert "add --yes" in text
    run(capsys, "rewind", query.state, "--to", str(first), "--matching", "*/b*", "--yes")
    assert drained(query) == [1]
    run(capsys, "rewind", query.state, "--to", str(first), "--yes")
    land(query, d=3)
    assert drained(query) == [1, 2, 3]
    assert main(["rewind", query.state, "--to-time", "2020-01-01"]) == 2
    assert "cut by then" in capsys.readouterr().err
    links = CheckpointHistory(query.store).between(NO_CHECKPOINT, query.done)
    moment = datetime.fromtimestamp(links[0].header.created / 1e6 + 1e-3, UTC).isoformat()
    assert run(capsys, "rewind", query.state, "--to-time", moment)["files"] == 3
    assert main(["rewind", query.state, "--to-time", "soon"]) == 2
    assert main(["rewind", query.state, "--to", "99"]) == 2
    assert drained(query) == []


def test_what_was_being_read_after_all_is_not_forgotten(query, capsys):
    land(query, b=2)
    ref = query.plan()
    # Its tasks run, and nobody knows of it yet.
    run(capsys, "forget", query.state, "--matching", "*", "--yes")
    query.restart()
    assert query.read(ref) == [2]
    query.done = ref
    land(query, c=3)
    assert drained(query) == [3]
    assert states(capsys, query)["b.json"] == ("read", None)


def test_nothing_is_planned_before_orders_are_carried_out(query, capsys):
    query.settings["limits"] = BatchLimits(files=1)
    land(query, b=2, c=3)
    query.coordinator.close()
    query.start()
    query.coordinator.prepare_available_now()
    ref = query.plan()
    query.coordinator.close()
    spark_knows(query, ref)
    assert run(capsys, "forget", query.state, "--matching", "*/c*", "--yes")["ranges"] == 1
    query.start()
    query.coordinator.prepare_available_now()
    # Spark replays the batch that was under way; the background has time to plan the next one.
    assert query.read(ref) == [2]
    time.sleep(0.5)
    query.done = ref
    assert query.read(query.plan()) == []


def test_what_is_forgotten_is_never_read_and_says_so(query, capsys):
    query.settings |= {"deltas_per_base": 3, "limits": BatchLimits(files=1)}
    land(query, a=1)
    assert drained(query) == [1]
    land(query, b=2, c=3)
    query.coordinator.close()
    query.start()
    # One listing finds both, or the checkpoint would not know of the other.
    query.coordinator.prepare_available_now()
    ref = query.plan()
    assert query.read(ref) == [2]
    query.done, left = ref, "c"
    await_checkpoint(query, ref.checkpoint + 1)
    # It was cut ahead, and may have begun; but Spark's log says that it has not.
    begun = {"only if its batch has not begun": 1}
    assert run(capsys, "forget", query.state, "--matching", "*/c.json")["left_out"] == begun
    spark_knows(query, ref)
    assert run(capsys, "forget", query.state, "--matching", "*/c.json")["left_out"] == {}
    run(capsys, "forget", query.state, "--matching", "*/[bc].json", "--yes", "--reason", "junk")
    assert drained(query) == []
    assert states(capsys, query)[f"{left}.json"] == ("forgotten", "junk")
    assert run(capsys, "status", query.state)["pending"]["splits"] == 0
    # Spark's log is that of a copy from here on: it is not written any more.
    shutil.rmtree(query.location / "offsets")
    rows = run(capsys, "diff", query.state, str(ref.checkpoint), str(query.done.checkpoint))
    assert [row["change"] for row in rows] == ["forgotten"]
    shown = run(capsys, "inspect", query.state, str(query.done.checkpoint))
    assert (shown["became_pending"], len(shown["forgotten"])) == ([], 1)
    assert shown["forgotten"][0]["end"] == 10
    for number in range(4):
        land(query, **{f"more{number}": 10 + number})
        assert drained(query) == [10 + number]
    assert states(capsys, query)[f"{left}.json"] == ("forgotten", "junk")
    # Second thoughts.
    run(capsys, "requeue", query.state, "--in-state", "forgotten", "--yes")
    assert drained(query) == [3]
    assert states(capsys, query)[f"{left}.json"][0] == "read"


def await_checkpoint(query, number):
    deadline = time.monotonic() + 20
    while not any(leaf.startswith(f"{number:010d}") for leaf in query.store.list("checkpoints")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def spark_knows(query, ref):
    """Spark's offset log ends with this checkpoint."""
    offsets = query.location / "offsets"
    offsets.mkdir(exist_ok=True)
    text = json.dumps(to_offset(ref))
    (offsets / str(ref.checkpoint)).write_text(f"v1\n{{}}\n{text}\n")


def quarantine(query, **files):
    query.options |= {"onSplitError": "return", "mode": "FAILFAST"}
    for name in files:
        query.land(f"{name}.json", text="{ this is no json\n")
    assert drained(query) == []


def test_a_repaired_file_leaves_the_quarantine_and_is_read(query, capsys):
    quarantine(query, bad=1, worse=2)
    # The last return is counted at the next start only, and is known all the same.
    shown = run(capsys, "requeue", query.state, "--quarantined")
    assert (shown["files"], shown["released"]) == (2, 2)
    land(query, c=3)
    assert drained(query) == [3]
    assert len(run(capsys, "files", query.state, "--view", "quarantine")) == 2
    land(query, bad=1)
    done = run(capsys, "requeue", query.state, "--quarantined", "--matching", "*/bad.json", "--yes")
    assert done["released"] == 1
    assert drained(query) == [1]
    (left,) = run(capsys, "files", query.state, "--view", "quarantine")
    assert left["path"].endswith("worse.json")
    run(capsys, "forget", query.state, "--quarantined", "--yes")
    assert drained(query) == []
    assert run(capsys, "files", query.state, "--view", "quarantine") == []
    found = states(capsys, query)
    assert found["worse.json"] == ("forgotten", "order 2")
    # Of the version that was no JSON nothing more is said; the repaired one was read.
    assert [row["state"] for row in run(capsys, "files", query.state, "--matching", "*/bad*")]
    assert drained(query) == []


def test_one_that_is_still_bad_comes_back_to_the_quarantine_after_as_many_attempts(query, capsys):
    quarantine(query, bad=1)
    run(capsys, "requeue", query.state, "--quarantined", "--yes")
    before = query.done.checkpoint
    assert drained(query) == []
    assert query.done.checkpoint - before == 3
    land(query, c=3)
    assert drained(query) == [3]
    (row,) = run(capsys, "files", query.state, "--view", "quarantine")
    assert row["attempts"] == 3
    assert states(capsys, query)["bad.json"][0] == "quarantined"


def test_what_came_back_and_was_read_in_the_next_batch_is_not_taken_for_given_up(query, capsys):
    query.settings["limits"] = BatchLimits(files=1)
    query.options |= {"onSplitError": "return", "mode": "FAILFAST"}
    query.land("bad.json", text="{ this is no json\n")
    query.start()
    ref = query.plan()
    assert query.read(ref) == []
    # The next batch is cut while this one runs, and has counted what came back.
    await_checkpoint(query, ref.checkpoint + 1)
    land(query, bad=1)
    query.done = ref
    assert query.batch() == [1]
    header = CheckpointHistory(query.store).load(query.done).header
    assert list(header.counted) == [ref.name]
    query.coordinator.close()
    run(capsys, "requeue", query.state, "--quarantined", "--yes", code=1)
    assert drained(query) == []


def test_a_file_that_is_gone_is_refused_by_name(query, capsys):
    land(query, a=1, b=2)
    drained(query)
    (query.data / "a.json").unlink()
    assert main(["requeue", query.state, "--matching", "*", "--yes"]) == 5
    error = capsys.readouterr().err
    assert "MissingPathError" in error
    assert str(query.data / "a.json") in error
    assert query.store.list("orders") == []
    done = run(capsys, "requeue", query.state, "--matching", "*", "--skip-missing", "--yes")
    assert (done["files"], done["left_out"]) == (1, {"gone": 1})
    assert drained(query) == [2]


def test_a_part_of_a_file_that_has_changed_is_refused_and_the_whole_is_read_as_it_is(query, capsys):
    query.settings["limits"] = BatchLimits(bytes=1024)
    query.land("a.json", text="".join(json.dumps({"id": at}) + "\n" for at in range(200)))
    assert drained(query) == list(range(200))
    query.land("a.json", text="".join(json.dumps({"id": at}) + "\n" for at in range(150)))
    assert main(["rewind", query.state, "--to", "1"]) == 2
    assert "--matching" in capsys.readouterr().err
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert drained(query) == list(range(150))


def test_what_is_under_way_or_pending_is_not_read_twice(query, capsys):
    land(query, a=1)
    assert drained(query) == [1]
    land(query, b=2, c=3)
    query.coordinator.close()
    query.start()
    query.coordinator.prepare_available_now()
    ref = query.plan()
    # Spark has the batch in its log, and its tasks never ran.
    shown = run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert shown["files"] == 1
    assert sum(shown["left_out"].values()) == 2
    query.restart()
    assert sorted(query.read(ref)) == [2, 3]
    query.done = ref
    assert drained(query) == [1]


def test_a_restore_from_before_an_order_does_it_once_more_and_one_from_after_does_not(
    query, capsys
):
    land(query, a=1)
    drained(query)
    before = query.done
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert drained(query) == [1]
    after = query.done
    header = CheckpointHistory(query.store).load(after).header
    assert (header.orders, header.format) == (1, 4)
    # Spark's log is put back from a copy.
    query.done = before
    assert drained(query) == [1]
    query.done = after
    assert drained(query) == []


def test_orders_do_not_travel_with_a_savepoint(query, tmp_path, capsys):
    land(query, a=1)
    drained(query)
    before = query.done
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert drained(query) == [1]
    query.coordinator.close()
    for ref in (before, query.done):
        other = Query(tmp_path / f"other{ref.checkpoint}")
        other.options["path"] = str(query.data)
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


def test_a_query_that_ingests_everything_again_does_not_do_old_orders(query, capsys):
    land(query, a=1, b=2)
    drained(query)
    run(capsys, "requeue", query.state, "--matching", "*/a*", "--yes")
    assert drained(query) == [1]
    again = Orders(query.store).read(1)
    Orders(query.store).publish(again.model_copy(update={"action": "forget", "nonce": "2"}))
    query.done = NO_CHECKPOINT
    query.settings["ingest_again"] = True
    assert drained(query) == [1, 2]
    assert CheckpointHistory(query.store).load(query.done).header.orders == 2
    run(capsys, "requeue", query.state, "--matching", "*/b*", "--yes")
    assert drained(query) == [2]


def test_an_order_of_a_newer_release_is_refused_by_both_versions(query, capsys):
    land(query, a=1)
    drained(query)
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    name = "orders/0000000001.json"
    order = unsealed(query.store.read(name))
    query.store.delete(name)
    query.store.publish(name, sealed({**order, "format": 2}))
    with pytest.raises(StateVersionError, match=r"format version 2.*at most format version 1"):
        drained(query)


def test_cleaning_up_waits_until_a_file_was_read_once_more(query, capsys):
    query.settings |= {"retained_checkpoints": 2}
    query.settings["limits"] = BatchLimits(files=1)
    cleaning = {"cleanSource": "delete", "cleanSourceRetention": "0s"}
    query.options |= {**cleaning, "fileOrder": "newestFirst"}
    for at in range(6):
        land(query, **{f"more{at}": 10 + at})
        os.utime(query.data / f"more{at}.json", (1000 + at, 1000 + at))
    land(query, a=1)
    query.start()
    assert query.batch() == [1]
    query.coordinator.close()
    run(capsys, "requeue", query.state, "--matching", "*/a*", "--yes")
    # It comes last, and long before that the checkpoint that has read it first is due.
    query.options["fileOrder"] = "mtime"
    query.start()
    for at in range(6):
        assert query.batch() == [10 + at]
        query.coordinator.commit(query.done)
    await_gone(query, "more2.json")
    assert (query.data / "a.json").exists()
    assert query.batch() == [1]
    # A crash, and the mark that was made says nothing of it either.
    query.restart()
    for at in range(3):
        land(query, **{f"last{at}": 20 + at})
        assert query.batch() == [20 + at]
        query.coordinator.commit(query.done)
    await_gone(query, "a.json")
    assert query.coordinator.report()["cleaned"]["gone"] == 0


def await_gone(query, name):
    deadline = time.monotonic() + 20
    while (query.data / name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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
    query.coordinator.close()
    query.start()
    query.coordinator.prepare_available_now()
    first = query.batch()
    query.coordinator.close()
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    run(capsys, "fork", query.state, str(tmp_path / "new" / "ck"), "--yes")
    other = Query(tmp_path / "new")
    other.options["path"] = str(query.data)
    # The rest of the first order; the second one stays where it is.
    assert drained(other) == sorted({1, 2} - set(first))
    assert other.store.list("orders") == []
    run(capsys, "requeue", other.state, "--matching", "*/b*", "--yes")
    assert drained(other) == [2]
    assert drained(query) == [1, 2]
    other.coordinator.close()


def test_a_query_that_lost_sparks_checkpoint_and_begins_in_its_own_state_does_what_is_ordered(
    query, capsys
):
    land(query, a=1, b=2)
    drained(query)
    run(capsys, "requeue", query.state, "--matching", "*/a*", "--yes")
    assert drained(query) == [1]
    run(capsys, "requeue", query.state, "--matching", "*/b*", "--yes")
    stood, query.done = query.done, NO_CHECKPOINT
    same = open_store(f"{query.state}/")
    query.settings["starting_state"] = lambda: StartingState(same, stood)
    # The first order is in that checkpoint, the second one is not.
    assert drained(query) == [2]
    assert drained(query) == []


def test_orders_in_a_bucket_and_about_objects(query, server, bucket, capsys):
    land(query, a=1)
    drained(query)
    url, options = f"s3://{bucket}/ck/sluice/source", json.dumps(server.options)
    root = query.location / "sluice" / "source"
    store = open_store(url, server.options)
    for path in root.rglob("*"):
        if path.is_file():
            store.publish(path.relative_to(root).as_posix(), path.read_bytes())
    where = [f"s3://{bucket}/ck", "--storage-options", options]
    assert run(capsys, "requeue", *where, "--matching", "*", "--yes")["order"] == 1
    assert run(capsys, "rewind", *where, "--to", "1", "--yes", code=1)["order"] is None
    assert [row["state"] for row in run(capsys, "orders", *where)] == ["waiting"]
    assert run(capsys, "verify", *where)["findings"] == []
    client = server.client()
    client.put_object(Bucket=bucket, Key="in/a.json", Body=b"0123456789")
    found = client.head_object(Bucket=bucket, Key="in/a.json")
    modified = int(found["LastModified"].timestamp() * 1_000_000)
    there = FileVersion(f"s3://{bucket}/in/a.json", 10, modified, found["ETag"])
    replaced, gone = there._replace(size=7, etag="x"), there._replace(path=f"s3://{bucket}/in/b")
    splits = [FileSplit(there, 2, 5), FileSplit(replaced, 0, 7), FileSplit(gone, 0, 10)]
    present = as_present(splits, server.options, skip_missing=True)
    assert present.missing == [gone.path]
    assert present.splits[0] == splits[0]
    assert (present.splits[1].start, present.splits[1].end) == (0, 10)


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
    # What the order has read once more is in the rewound part, too: bytes are read once an order.
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

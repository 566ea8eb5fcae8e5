"""Orders about files that are in quarantine, were sent back, are gone, changed or under way."""

from __future__ import annotations

import json

from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.tests.connector.cli.command_line import (
    await_checkpoint,
    drained,
    land,
    quarantine,
    run,
    states,
)


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
    assert query.done.checkpoint - before == 4, "three attempts, and an empty batch that tells it"
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


def test_a_restore_from_before_an_order_repeats_it_and_one_from_after_does_not(query, capsys):
    land(query, a=1)
    drained(query)
    before = query.done
    run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert drained(query) == [1]
    after = query.done
    header = CheckpointHistory(query.store).load(after).header
    assert header.orders == 1
    # Spark's log is put back from a copy.
    query.done = before
    assert drained(query) == [1]
    query.done = after
    assert drained(query) == []

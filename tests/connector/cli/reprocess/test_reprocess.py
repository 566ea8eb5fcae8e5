"""requeue, rewind, forget: rows are delivered as often as was ordered, through failures."""

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.tests.connector.cli.command_line import (
    await_checkpoint,
    drained,
    land,
    quarantine,
    run,
    spark_knows,
    states,
)
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.protocol.opened import opened

pytestmark = pytest.mark.slow


def test_a_file_is_read_again_once(query, capsys):
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


def test_one_of_anything_is_counted_in_the_singular(query, capsys):
    land(query, a=1)
    drained(query)
    land(query, b=2)
    drained(query)
    commands = (
        ("status", query.state),
        ("files", query.state),
        ("inspect", query.state, "1"),
        ("diff", query.state, "1", "2"),
        ("verify", query.state),
        ("compact", query.state),
        ("requeue", query.state, "--matching", "*/a*"),
        ("rewind", query.state, "--to", "1"),
        ("fork", query.state, f"{query.location}-new"),
    )
    printed = ""
    for command in commands:
        assert main([*command]) == 0, command
        printed += capsys.readouterr().out
    assert re.search(r"files +1\nranges +1\nbytes +10 B\n", printed)
    assert re.findall(r"\b1 (?:[a-z]+ )?[a-z]{3,}s\b", printed) == []


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
    assert "nothing was selected" in capsys.readouterr().out
    assert query.store.list("orders") == []
    for command, remedy in (
        ("requeue", "To read all files again, add --matching '*'."),
        ("rewind", "To list the checkpoints, run: sluice checkpoints"),
        ("forget", "To discard all pending files, add --matching '*'."),
    ):
        assert main([command, query.state]) == 2
        assert capsys.readouterr().err.endswith(f"{remedy}\n")


def test_a_query_that_runs_is_not_interfered_with(tmp_path, capsys):
    """The other orders are written by the same function as `requeue`."""
    query = Query(tmp_path)
    land(query, a=1)
    assert query.batch() == [1]
    again = ["requeue", query.state, "--matching", "*"]
    # It may be looked at.
    assert run(capsys, *again)["files"] == 1
    commands = (again, ["compact", query.state], ["take-back-schema", query.state])
    for command in commands:
        assert main([*command, "--yes", "--force"]) == 4
        assert "FencedError: a query is using this state" in capsys.readouterr().err
    (leaf,) = query.store.list("epochs")
    claim = without_checksum(query.store.read(f"epochs/{leaf}"))
    # In one step: the query looks for its claim at any time.
    elsewhere = tmp_path / "claim"
    elsewhere.write_bytes(with_checksum({**claim, "host": "elsewhere"}))
    elsewhere.replace(Path(query.store.location, "epochs", leaf))
    for command in commands:
        assert main([*command, "--yes"]) == 4
        assert "add --force" in capsys.readouterr().err
    assert query.store.list("orders") == query.store.list("bases") == []
    # A wrong answer loses nothing: the order is done at the next start.
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
    assert "delivered again" in text
    assert "add --yes" in text
    run(capsys, "rewind", query.state, "--to", str(first), "--matching", "*/b*", "--yes")
    assert drained(query) == [1]
    run(capsys, "rewind", query.state, "--to", str(first), "--yes")
    land(query, d=3)
    assert drained(query) == [1, 2, 3]
    assert main(["rewind", query.state, "--to-time", "2020-01-01"]) == 2
    assert "no checkpoint cut before 2020-01-01" in capsys.readouterr().err
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
    query.restart()
    query.coordinator.prepare_available_now()
    ref = query.plan()
    query.coordinator.close()
    spark_knows(query, ref)
    assert run(capsys, "forget", query.state, "--matching", "*/c*", "--yes")["ranges"] == 1
    query.start()
    query.coordinator.prepare_available_now()
    # Spark replays the batch that was under way; the background may plan the next one.
    assert query.read(ref) == [2]
    opened(query.coordinator).background()
    query.done = ref
    assert query.read(query.plan()) == []


def second_batch(query):
    """The plan of b, or of b and c where a batch has two files; a has been read."""
    land(query, a=1)
    assert drained(query) == [1]
    land(query, b=2, c=3)
    query.restart()
    # One listing finds both, or the checkpoint would not know of the other.
    query.coordinator.prepare_available_now()
    return query.plan()


def test_what_is_forgotten_is_never_read_and_says_so(query, capsys):
    query.settings |= {"deltas_per_base": 3, "limits": BatchLimits(files=1)}
    ref = second_batch(query)
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
    # The log says that the batch of `b` has not ended, and its query is dead.
    assert run(capsys, "status", query.state, code=1)["pending"]["splits"] == 0
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


def test_a_repaired_file_leaves_the_quarantine_and_is_read(query, capsys):
    quarantine(query, bad=1, worse=2)
    # The last return is counted at the next start only, and is known before that.
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
    ref = second_batch(query)
    # Spark has the batch in its log, and its tasks never ran.
    shown = run(capsys, "requeue", query.state, "--matching", "*", "--yes")
    assert shown["files"] == 1
    assert sum(shown["left_out"].values()) == 2
    query.restart()
    assert sorted(query.read(ref)) == [2, 3]
    query.done = ref
    assert drained(query) == [1]

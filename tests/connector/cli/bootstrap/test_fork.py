"""`sluice fork`: what a new query reads that begins in a state made of another one's checkpoint."""

import shutil

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.query_records import find_seed
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.query.spark_checkpoint import savepoint_at
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.errors import OptionError, SluiceError, StateError
from pyspark_sluice.tests.connector.cli.command_line import run, spark_knows
from pyspark_sluice.tests.connector.queries import Query, drained

pytestmark = pytest.mark.slow


@pytest.fixture
def query(tmp_path):
    """Three batches of a file each, with an index next to its bases; then a file in no batch."""
    made = Query(tmp_path, settings={"deltas_per_base": 2})
    for at, name in enumerate(("a", "b", "c")):
        made.land(f"{name}.json", text=f'{{"id": {at}}}\n')
        made.batch()
        if at == 1:
            made.await_base()
    spark_knows(made, made.done, committed=True)
    made.coordinator.close()
    made.land("d.json", text='{"id": 3}\n')
    return made


def forked(query, capsys, *arguments, name="new"):
    """The record of the command, and a query in the state that it made."""
    new = query.data.parent / name
    report = run(capsys, "fork", str(query.location), str(new), *arguments)
    return report, Query(query.data.parent, state=str(new / "sluice" / "source"))


@pytest.mark.parametrize(("at", "ids"), [("1", [1, 2, 3]), ("3", [3])])
def test_a_fork_reads_what_the_checkpoint_had_not_assigned(query, capsys, at, ids):
    before = sorted(p for p in query.location.rglob("*") if p.is_file())
    told, new = forked(query, capsys, "--at", at, "--yes")
    assert told["written"]
    assert told["known_to_be_complete"]
    assert told["counts"]["files_seen"] == int(at)
    assert sorted(p for p in query.location.rglob("*") if p.is_file()) == before
    # It needs nothing of the other one.
    query.location.rename(query.location.with_name("gone"))
    assert drained(new) == ids
    assert main(["verify", new.state]) == 0
    assert drained(new) == []


@pytest.mark.parametrize("log", ["above", "elsewhere"])
def test_a_batch_that_only_its_readers_have_finished_is_read_by_the_fork(query, capsys, log):
    """The sink failed, or was killed, after the readers."""
    query.start()
    assert query.batch() == [3]
    spark_knows(query, query.done)
    query.coordinator.close()
    if log == "elsewhere":
        for folder in ("offsets", "commits"):
            shutil.rmtree(query.location / folder)
    told, new = forked(query, capsys, "--yes")
    assert (told["checkpoint"], told["known_to_be_complete"]) == (3, True)
    assert drained(new) == [3]
    rows = run(capsys, "checkpoints", query.state)
    assert [row["state"] for row in rows] == ["in flight", *3 * ["complete"]]
    at = ["fork", str(query.location), str(query.data.parent / "other"), "--at", "4"]
    if log == "above":
        assert main(at) == 2
        assert "rows that the sink does not have" in capsys.readouterr().err
        with pytest.raises(OptionError, match="Name checkpoint 3, or start the old query again"):
            savepoint_at(query.store, query.done, CheckpointHistory(query.store))
        spark_knows(query, query.done, committed=True)
        assert run(capsys, *at)["known_to_be_complete"]
    else:
        assert main(at) == 0
        assert "whether the sink has the batch is not known" in capsys.readouterr().out


def test_what_was_assigned_and_never_read_is_left_by_default_and_else_pending_again(query, capsys):
    query.start()
    ref = query.plan()
    query.coordinator.close()
    told, new = forked(query, capsys, "--yes")
    assert (told["checkpoint"], told["counts"]["pending_splits"]) == (3, 0)
    assert drained(new) == [3]
    told, new = forked(query, capsys, "--at", str(ref.checkpoint), "--yes", name="other")
    assert not told["known_to_be_complete"]
    assert told["counts"]["assigned_and_pending_again"] == 1
    assert [row["path"] for row in told["pending"]] == [str(query.data / "d.json")]
    assert drained(new) == [3]


def test_a_time_names_the_newest_checkpoint_that_was_cut_by_then(query, capsys):
    rows = run(capsys, "checkpoints", str(query.location))
    cut = {row["checkpoint"]: row["planned"] for row in rows}
    told, _ = forked(query, capsys, "--at-time", cut[2])
    assert told["checkpoint"] == 2


def test_only_what_matches_is_read_and_the_rest_of_what_is_known_counts_as_seen(query, capsys):
    query.start()
    query.batch()
    query.coordinator.close()
    query.land("e.json", text='{"id": 4}\n')
    told, new = forked(query, capsys, "--at", "1", "--matching", "*/[bd].json", "--yes")
    assert told["counts"]["left_out_files"] == 1
    # c is known and does not match; e is news to everybody.
    assert drained(new) == [1, 3, 4]


def test_pending_ranges_that_do_not_match_count_as_seen(tmp_path, capsys):
    query = Query(tmp_path, settings={"limits": BatchLimits(files=1)})
    query.land("a.json", "b.json", "c.json", rows=1)
    query.batch()
    query.coordinator.close()
    told, new = forked(query, capsys, "--at", "1", "--matching", "*c.json", "--yes")
    assert told["counts"]["pending_splits"] == told["counts"]["left_out_splits"] == 1
    assert drained(new) == [0]


def test_without_yes_nothing_is_written_and_a_place_in_use_is_refused_by_name(query, capsys):
    told, _ = forked(query, capsys)
    assert not told["written"]
    assert not (query.data.parent / "new").exists()
    assert main(["fork", str(query.location), str(query.data.parent / "new")]) == 0
    assert "nothing was written: add --yes" in capsys.readouterr().out
    forked(query, capsys, "--yes")
    for folder in ("offsets", "commits"):
        shutil.rmtree(query.location / folder)
    for new, found in [
        (query.data.parent / "new", "a state that `sluice fork` has prepared"),
        (query.location, "the state of a query"),
        (query.data, "a.json"),
    ]:
        assert main(["fork", str(query.location), str(new), "--yes"]) == 2
        assert found in capsys.readouterr().err


def test_the_record_says_who_made_it_of_what_and_excludes_a_savepoint(query, capsys):
    _, new = forked(query, capsys, "--at", "2", "--matching", "*", "--yes")
    seed = find_seed(new.store)
    assert (seed.purpose, seed.ref) == ("fork", CheckpointRef(1, 1))
    assert seed.origin["state"] == query.state
    assert seed.origin["checkpoint"] == 2
    assert seed.host
    assert main(["status", new.state]) == 0
    said = capsys.readouterr().out
    assert "claimed by the command line, for no query" in said
    assert f"sluice fork of {query.state}" in said
    assert run(capsys, "status", new.state)["seed"] == seed.model_dump(mode="json")
    # A savepoint would be another state to start from.
    new.settings["starting_state"] = lambda: StartingState(query.store, CheckpointRef(1, 1))
    new.restart()
    with pytest.raises(StateError, match="could start from two states"):
        new.coordinator.latest(NO_CHECKPOINT)


def test_while_nothing_is_there_a_seeded_query_stays_where_spark_is(query, capsys):
    for name in "abcd":
        (query.data / f"{name}.json").unlink()
    _, new = forked(query, capsys, "--at", "3", "--yes")
    new.coordinator.prepare_available_now()
    assert new.coordinator.latest(NO_CHECKPOINT) == NO_CHECKPOINT
    new.coordinator.close()


def test_a_damaged_seed_stops_the_query_and_is_found(query, capsys):
    _, new = forked(query, capsys, "--yes")
    seed = query.data.parent / "new" / "sluice" / "source" / "seed.json"
    whole = seed.read_bytes()
    for at in range(0, len(whole), len(whole) // 5):
        seed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert main(["verify", new.state]) == 1
        with pytest.raises(SluiceError):
            new.coordinator.latest(NO_CHECKPOINT)
        new.restart()
    seed.unlink()
    capsys.readouterr()
    assert main(["verify", new.state]) == 1
    assert "seed.json" in capsys.readouterr().out
    with pytest.raises(StateError, match="was not completed"):
        new.coordinator.latest(NO_CHECKPOINT)

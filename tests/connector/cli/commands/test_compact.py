"""`sluice compact`: little is left, and what Spark asks for next is unchanged."""

import socket

import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.files.file_columns import splits_in
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, FaultyStateStore, SimulatedCrash
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.commands import clean_up as compacting
from pyspark_sluice.connector.cli.commands.clean_up import compact_plan
from pyspark_sluice.connector.cli.commands.verify import verified
from pyspark_sluice.connector.views.files_as_of import FilesAsOf
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.coordinator.restore import restore
from pyspark_sluice.enumerator.files.ledger_source import OfflineFileSource
from pyspark_sluice.enumerator.offline.offline_state import Compaction, OfflineClaim
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.connector.queries import Query, carried_out, drained, in_memory

pytestmark = pytest.mark.slow

RETAINED = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Twelve batches and several bases with runs; the last one handed out and not read."""
    settings = {"deltas_per_base": 3, "limits": BatchLimits(files=1)}
    query = Query(tmp_path_factory.mktemp("state"), settings=settings)
    for at in range(12):
        query.land(f"{at:02}.json", text=f'{{"id": {at}}}\n')
        query.batch()
        if at % 3 == 2:
            query.await_base((at + 1) // 3)
        if at == 6:
            query.restart()
    query.land("12.json", "13.json", text='{"id": 12}\n')
    query.running = query.plan()
    query.coordinator.close()
    assert len(query.store.list("bases")) > 1
    return query


def states(store, refs):
    """What a restore of each checkpoint knows: pending ranges, files in their versions."""
    found = {}
    for ref in refs:
        source, read = OfflineFileSource(), Attachments(store, 0)
        restored = restore(CheckpointHistory(store), ref, source, read)
        assert restored.state is not None
        pending = sorted(split for batch in restored.state.changes for split in splits_in(batch))
        seen = {
            (row["path"], row["size"], row["modified"], row["end"])
            for batch in FilesAsOf(store, ref, details=True).seen()
            for row in batch.to_pylist()
        }
        found[ref] = (pending, seen, restored.quarantined)
    return found


def retained(store):
    """Those that Spark may ask for, and those that are promised."""
    return list(CheckpointHistory(store).checkpoints())[-RETAINED - 3 :]


def compacted(store):
    return carried_out(compact_plan(store, RETAINED))


def test_two_bases_and_a_short_index_are_left(made):
    store = in_memory(made)
    kept = retained(store)
    before, states_before = compacting.sizes(store), states(store, kept)
    assert before["objects"] == len(store.objects)
    assert before["bytes"] == sum(map(len, store.objects.values()))
    after = compacted(store)["after"]
    assert after == compacting.sizes(store)
    assert after["checkpoints"] == len(kept) < before["checkpoints"]
    assert (after["bases"], after["index_objects"]) == (2, 4)
    assert before["index_objects"] > 4
    assert after["bytes"] < before["bytes"]
    assert states(store, kept) == states_before
    assert verified(store)["findings"] == []
    written = {name: data for name, data in store.objects.items() if "epochs" not in name}
    compacted(store)
    assert {n: d for n, d in store.objects.items() if "epochs" not in n} == written


@pytest.mark.parametrize(("more", "time"), [(100, "0"), (0, "7d")])
def test_more_may_be_asked_to_stay_than_is_there(made, more, time):
    store = in_memory(made)
    kept = retained(store)
    expected = states(store, kept)
    compacted(store)
    carried_out(compact_plan(store, RETAINED + more, time))
    assert states(store, kept) == expected
    assert verified(store)["findings"] == []


@pytest.mark.parametrize(("verb", "step"), [("publish", 3), ("delete", 12)])
def test_killed_between_changes_it_leaves_what_spark_asks_for(made, verb, step):
    """What is only looked at between two changes makes no difference."""
    kept = retained(in_memory(made))
    expected = states(in_memory(made), kept)
    at, has_finished = 0, False
    while not has_finished:
        inner = in_memory(made)
        store = FaultyStateStore(inner)
        store.fault = Fault("crash half-way", after=at, verb=verb)
        try:
            compacted(store)
            has_finished = True
        except SimulatedCrash:
            assert states(inner, kept) == expected, at
            if at % (3 * step) == 0:
                compacted(inner)
                assert states(inner, kept) == expected, at
                assert compacting.sizes(inner)["bases"] == 2
        at += step
    assert at > step


def test_a_query_goes_on_after_it_as_if_nothing_had_been(made, tmp_path):
    compacted_store = in_memory(made)
    compacted(compacted_store)
    for name, data in compacted_store.objects.items():
        target = tmp_path / "ck" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    query = Query(made.data.parent, state=str(tmp_path / "ck"))
    query.done = made.done
    # Spark had the last offset in its log, and replays it.
    assert query.read(made.running) == [12]
    query.done = made.running
    assert drained(query) == [12]


def test_a_query_that_begins_meanwhile_stops_it(made):
    store = in_memory(made)
    before = states(store, retained(store))
    plan = compact_plan(store, RETAINED)
    epoch = claim_epoch(store, "compact")
    claim_epoch(store)
    newest = CheckpointRef(plan.report["checkpoint"], plan.report["epoch"])
    with pytest.raises(FencedError):
        Compaction(OfflineClaim(store, epoch), OfflineFileSource()).run(newest, 5)
    assert states(store, list(before)) == before


def test_without_yes_or_where_little_is_to_be_done_nothing_is_written(tmp_path, capsys):
    query = Query(tmp_path)
    query.land("a.json")
    assert main(["compact", str(query.location)]) == 3
    query.plan()
    assert main(["compact", str(query.location)]) == 2
    assert "nothing to compact" in capsys.readouterr().err
    query.restart()
    query.batch()
    place = str(query.location)
    assert main(["compact", place]) == 0
    assert "there is nothing to compact" in capsys.readouterr().out
    query.coordinator.close()
    newest = without_checksum(query.store.read("epochs/0000000002.json"))
    claim = {**newest, "host": f"not-{socket.gethostname()}", "epoch": 3}
    query.store.publish("epochs/0000000003.json", with_checksum(claim))
    before = sorted(path.name for path in query.location.rglob("*"))
    assert main(["compact", place, "--yes", "--force", "--retain-for", "7d"]) == 0
    assert "there is nothing to compact" in capsys.readouterr().out
    assert sorted(path.name for path in query.location.rglob("*")) == before
    assert main(["compact", place, "--retain-for", "soon"]) == 2
    query.start()
    query.land("b.json", rows=1)
    assert query.batch() == [0]
    query.coordinator.close()

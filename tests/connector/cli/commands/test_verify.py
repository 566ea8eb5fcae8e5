"""`verify` finds every flipped bit and missing object; no restore makes wrong splits of one."""

import json
from functools import partial
from itertools import count

import pytest

import pyspark_sluice
from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointRef,
    identities_in,
)
from pyspark_sluice.checkpoint_meta.documents.layout import READERS, reader_object
from pyspark_sluice.checkpoint_meta.documents.orders import Order, Orders
from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory
from pyspark_sluice.checkpoint_meta.documents.reader_commit import Abandonment, ReaderCommits, about
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.index.fingerprints import SeenKeys
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.commands.verify import Verification, verified
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.coordinator.restore import restore
from pyspark_sluice.enumerator.files.ledger_source import OfflineFileSource
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.connector.cli.command_line import run
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.connector.queries import Query, in_memory
from pyspark_sluice.tests.protocol.numbers import Harness, after_eight_batches

FLIPS = 4
"""Of each object; each at another bit of its byte."""


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    """Two incarnations; bases, runs of the index, an abandoned reader, schemas."""
    made = Query(tmp_path_factory.mktemp("state"), settings={"deltas_per_base": 2})
    for at in range(5):
        made.land(f"{at}-a.json", f"{at}-b.json")
        if at == 3:
            ref = made.plan()
            made.read(ref, readers=(0,))
            identity = CheckpointHistory(made.store).load(ref).identity
            record = Abandonment(**about(identity), reader=1, attempt=0, reported=0)
            ReaderCommits(made.store).abandon(record)
            made.done = ref
        else:
            made.batch()
        if at == 2:
            # The second one begins with a batch, and not while this one is written.
            made.await_base()
            made.restart()
    made.await_base(2)
    for version in range(3):
        SchemaHistory(made.store).grow(partial(_grown, version))
    made.coordinator.close()
    for number in range(2):
        order = Order(
            action="forget",
            enumerator="files",
            split_version=1,
            splits={"path": ["/in/a"], "start": [0], "end": [number + 1]},
            released=["x"],
            reason="because",
        )
        Orders(made.store).publish(order)
    return made


@pytest.fixture(scope="module")
def whole(query):
    return in_memory(query).objects


def _grown(version, _before):
    return {"type": "struct", "fields": [version]}, "inferred"


def store_of(objects):
    store = MemoryStateStore()
    store.objects = dict(objects)
    return store


def restored(store, ref):
    """Everything that a query would go on with."""
    history, attachments = CheckpointHistory(store), Attachments(store, 0)
    state = restore(history, ref, OfflineFileSource(), attachments).state
    assert state is not None
    pending = sorted(map(str, (row for b in state.changes for row in b.to_pylist())))
    seen = SeenKeys.merge([part.keys.bare() for part in (*state.runs, *state.tails)])
    assigned = history.load(ref).assigned
    given = [(reader, str(batch.to_pylist())) for reader, batch in assigned]
    commits = [
        commit.model_dump() for commit in ReaderCommits(store).of(history.load(ref).identity)
    ]
    return pending, given, seen.names.low.tolist(), commits


def outcomes(objects, refs):
    store, found = store_of(objects), {}
    for ref in refs:
        try:
            found[ref] = restored(store, ref)
        except (SluiceError, FileNotFoundError):
            found[ref] = None
    return found


@pytest.fixture(scope="module")
def right(whole):
    report = verified(store_of(whole))
    assert report["findings"] == []
    assert report["lost"] == []
    refs = [CheckpointRef.from_name(name) for name in report["restorable"]]
    assert len(refs) == 5
    found = outcomes(whole, refs)
    assert None not in found.values()
    return found


def test_there_is_one_of_every_kind_of_object(whole):
    kinds = {name.partition("/")[0] for name in whole}
    assert kinds == {
        "FORMAT",
        "abandoned",
        "bases",
        "checkpoints",
        "epochs",
        "heartbeats",
        "index",
        "orders",
        "readers",
        "schemas",
    }


def referred_objects(whole):
    """All but runs that no base refers to any more, which retention has not come by."""
    text = b"".join(data for name, data in whole.items() if name.startswith("bases/"))
    return [
        name
        for name in whole
        if not name.startswith("index/") or name.partition("/")[2].encode() in text
    ]


@pytest.mark.slow
@pytest.mark.thorough("every bit; damage of each kind is found above")
def test_every_flipped_bit_is_found_and_none_makes_wrong_splits(whole, right):
    bit = count()
    unseen, wrong = [], []
    for name in referred_objects(whole):
        data = whole[name]
        step = max(1, len(data) // FLIPS)
        for position in range(0, len(data), step):
            flipped = bytearray(data)
            flipped[position] ^= 1 << (next(bit) % 8)
            damaged = {**whole, name: bytes(flipped)}
            walk = Verification(store_of(damaged)).run()
            if not any(finding.object == name for finding in walk.findings):
                unseen.append((name, position))
            # What rests on the whole chain; the others are looked at for objects that are gone.
            newest = max(right)
            if outcomes(damaged, [newest])[newest] not in (None, right[newest]):
                wrong.append((name, position))
    assert (unseen, wrong) == ([], [])


def needs_nobody(name, whole):
    """As `connector/cli/commands/verify.py` says: gone without a trace, and not needed."""
    schema = max(other for other in whole if other.startswith("schemas/"))
    newest = max(other for other in whole if other.startswith("checkpoints/"))
    # A base is redundant where the checkpoints below it are all there; the last commits may not
    # have been written yet, but for what Spark's log says.
    last = f"readers/{newest[12:33]}"
    # Nor is the newest order, as long as no checkpoint contains it.
    order = max(other for other in whole if other.startswith("orders/"))
    # A record that an attempt was closed half-way only spares the driver a wait; of a heartbeat
    # nothing remains when another one takes its place.
    return name.startswith(("bases/", "abandoned/", "heartbeats/", last)) or name in (schema, order)


def test_every_missing_object_is_found_and_none_makes_wrong_splits(whole, right):
    unseen, wrong, unlike = [], [], []
    for name in referred_objects(whole):
        left = {other: data for other, data in whole.items() if other != name}
        walk = Verification(store_of(left)).run()
        is_found = any(f.object == name and f.problem == "missing" for f in walk.findings)
        if not is_found and not needs_nobody(name, whole):
            unseen.append(name)
        can = dict(walk.restorable())
        for ref, found in outcomes(left, right).items():
            # A commit that is gone means rows that are read again or given up, never other splits.
            if found is not None and found[:3] != right[ref][:3]:
                wrong.append((name, ref))
            if can.get(ref, False) != (found is not None):
                unlike.append((name, ref))
    assert (unseen, wrong, unlike) == ([], [], [])


def test_what_is_said_to_be_left_can_be_restored_and_nothing_else(whole, right):
    names = [n for n in whole if n.partition("/")[0] in ("bases", "checkpoints", "index")]
    for name in names:
        damaged = {**whole, name: whole[name][:-3]}
        can = dict(Verification(store_of(damaged)).run().restorable())
        found = outcomes(damaged, right)
        if name.endswith("files.arrows"):
            # Restores do without the names; the count does not need them either.
            assert all(can.values())
        assert can == {ref: state is not None for ref, state in found.items()}, name


def test_a_document_without_its_checksum_is_damaged(whole):
    documents = [name for name in whole if name.endswith(".json")]
    assert len({name.split("/")[0] for name in documents}) >= 4
    for name in documents:
        document = json.loads(whole[name])
        del document["checksum"]
        data = (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()
        findings = Verification(store_of({**whole, name: data})).run().findings
        assert (name, "damaged") in [(finding.object, finding.problem) for finding in findings]


def test_the_command_says_what_is_damaged_and_what_is_left(query, whole, right, capsys):
    assert main(["verify", str(query.location)]) == 0
    assert "nothing is damaged" in capsys.readouterr().out
    victim = query.location / "sluice" / "source" / "checkpoints" / f"{max(right).name}.arrow"
    try:
        victim.write_bytes(b"\0" + victim.read_bytes()[1:])
        report = run(capsys, "verify", query.state, code=1)
        (finding,) = report["findings"]
        assert finding["object"] == f"checkpoints/{max(right).name}.arrow"
        assert report["lost"] == [max(right).name]
        assert main(["verify", query.state]) == 1
        text = capsys.readouterr().out
        assert "damaged" in text
        assert f"startingState={query.state}@{sorted(right)[-2].checkpoint}" in text
    finally:
        victim.write_bytes(whole[f"checkpoints/{max(right).name}.arrow"])


def test_a_commit_that_a_later_checkpoint_has_counted_is_missed_before_any_later_commit():
    harness = Harness(numbers=[1, 2])
    first = harness.coordinator.latest(NO_CHECKPOINT)
    harness.coordinator.assignments(NO_CHECKPOINT, first)
    harness.acknowledge_all(first)
    harness.enumerator.pending.append(3)
    harness.coordinator.latest(first)
    assert verified(harness.state)["findings"] == []
    name = reader_object(harness.coordinator.history.load(first).identity, 0)
    harness.state.delete(name)
    assert [found["object"] for found in verified(harness.state)["findings"]] == [name]


def test_a_state_that_was_resumed_is_whole_though_the_chain_that_was_left_is_pruned():
    query, ref = after_eight_batches()
    query.restart(starting_state=lambda: StartingState(query.state, ref))
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0)
    second = query.coordinator.latest(first)
    query.acknowledge(second, 0)
    whole = verified(query.state)
    assert whole["findings"] == []
    # By age: the chain that was left has greater ids.
    assert whole["restorable"][-2:] == [first.name, second.name]
    query.state.delete(f"checkpoints/{second.name}.arrow")
    (finding,) = verified(query.state)["findings"]
    assert finding["object"] == f"checkpoints/{second.name}.arrow"


def test_a_state_whose_parts_go_on_with_splits_that_were_not_begun_is_whole(tmp_path):
    """The rest of a part may be several splits, or none: its length follows from a commit."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        lines = "".join(f'{{"id": {number}}}\n' for number in range(40))
        (tmp_path / "in" / name).write_text(lines)
    options = {
        "path": str(tmp_path / "in"),
        "fileFormat": "json",
        "checkpointLocation": str(tmp_path / "checkpoint"),
        "writeSchema": "id long",
        "maxRowsPerTrigger": 15,
        "parallelism": 1,
    }
    report = pyspark_sluice.run(**keywords(options), to=f"parquet:{tmp_path / 'table'}", workers=0)
    assert report.rows == 120
    store = open_store(str(tmp_path / "checkpoint" / "sluice" / "source"))
    history = CheckpointHistory(store)
    assert any(history.load(ref).header.origins for ref in history.checkpoints())
    assert any(
        commit.unfinished and commit.not_begun.indexes
        for checkpoint in identities_in(store.list(READERS))
        for commit in ReaderCommits(store).of(checkpoint)
    )
    assert Verification(store).run().findings == []

"""State that a release has written can be read by every later one (I8).

Files below golden/ are never changed. A new one is written once, by the release that it represents.
"""

from pathlib import Path

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, CustomEvent
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.epochs import (
    check_not_fenced,
    open_format,
    purpose_of,
)
from pyspark_sluice.checkpoint_meta.documents.orders import Orders
from pyspark_sluice.checkpoint_meta.documents.query_records import find_seed
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer, splits_in
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.connector.views.files_as_of import FilesAsOf
from pyspark_sluice.enumerator import CoordinatorSettings
from pyspark_sluice.enumerator.coordinator.start_position import start_position

GOLDEN = Path(__file__).parent / "golden" / "v1"


def test_every_file_that_a_release_has_written_can_be_read():
    found = sorted(GOLDEN.rglob("*.arrow"))
    assert found
    for path in [path for path in found if path.parent.name != "index"]:
        checkpoint = Checkpoint.from_bytes(path.read_bytes(), str(path))
        assert checkpoint.ref.name == path.stem


def test_version_1_reads_as_it_was_written():
    store = StorageStateStore(str(GOLDEN / "basic"))
    open_format(store)
    check_not_fenced(store, 2)
    ref = CheckpointRef(2, 2)
    checkpoint = Checkpoint.from_bytes(store.read(f"checkpoints/{ref.name}.arrow"), "golden")
    header = checkpoint.header
    assert (header.kind, header.enumerator, header.parent) == (
        "delta",
        "files",
        CheckpointRef(1, 1),
    )
    assert header.attempts == {"/data/b.json@9-6-:0-9": 1}
    assert header.sent == {"0": [CustomEvent(event={"limit": 5}), 1]}
    assert header.waiting == {"1": ["later"]}
    assert [split.split_id for split in header.quarantined] == ["/data/z.json@1-1-:0-1"]
    serializer = FileSplitSerializer()
    ((reader, batch),) = checkpoint.assigned
    (state,) = checkpoint.state
    file = FileVersion("/data/a.json", 100, 5, "etag")
    assert (reader, serializer.read(1, batch)) == (0, [FileSplit(file, 0, 50)])
    assert serializer.read(1, state) == [FileSplit(file, 50, 100)]


def test_a_reader_commit_of_version_1_reads_as_it_was_written():
    store = StorageStateStore(str(GOLDEN / "basic"))
    checkpoint = CheckpointHistory(store).load(CheckpointRef(2, 2)).identity
    (commit,) = ReaderCommits(store).of(checkpoint)
    assert (commit.reader, commit.attempt, commit.query_id) == (0, 1, "b7c9")
    assert list(commit.rows) == [4]
    (part,) = commit.unfinished
    assert part.remainder["start"] == [40]
    assert [(kind, value["rows"]) for kind, value in commit.events] == [("figures", 4)]
    assert commit.dropped_records == {0: 1}


def test_a_checkpoint_says_which_commits_in_flight_it_counts_and_what_goes_on():
    ref = CheckpointRef(3, 2)
    path = GOLDEN / "in_flight" / "checkpoints" / f"{ref.name}.arrow"
    header = Checkpoint.from_bytes(path.read_bytes(), "golden").header
    assert (header.ref, header.parent) == (ref, CheckpointRef(2, 2))
    assert header.counted == {CheckpointRef(2, 2).name: [0, 3]}
    continuation, event = header.sent["3"]
    assert event == CustomEvent(event="after it")
    assert (continuation.origin, continuation.index) == (CheckpointRef(2, 2), 0)
    bounds = (continuation.bytes, continuation.rows, continuation.stop)
    assert bounds == (4096, None, {"end": 90})


def test_an_index_restores_as_it_was_written():
    store = StorageStateStore(str(GOLDEN / "index"))
    open_format(store)
    known = FilesAsOf(store, CheckpointRef(2, 3))
    b = FileVersion("/data/b.json", 9, 6)
    c = FileVersion("/data/c.json", 7, 7)
    assert [s for batch in known.pending() for s in splits_in(batch)] == [
        FileSplit(b, 0, 9),
        FileSplit(c, 0, 7),
    ]
    seen = [row for batch in known.seen() for row in batch.to_pylist()]
    assert [(row["path"], row["end"], row["checkpoint"]) for row in seen] == [
        ("/data/a.json", 100, 1),
        ("/data/b.json", 9, 1),
        ("/data/c.json", 7, 2),
    ]
    history = CheckpointHistory(store)
    assert [
        (ref.checkpoint, reader, splits_in(ranges)[0].start)
        for ref in history.checkpoints()
        for reader, ranges in history.load(ref).assigned
    ] == [(1, 0, 0), (2, 0, 50)]


def test_a_checkpoint_says_which_orders_it_contains_and_what_they_did():
    store = StorageStateStore(str(GOLDEN / "orders"))
    open_format(store)
    ref = CheckpointRef(2, 1)
    header = Checkpoint.from_bytes(store.read(f"checkpoints/{ref.name}.arrow"), "golden").header
    assert header.orders == 2
    known = FilesAsOf(store, ref)
    a, z = FileVersion("/data/a.json", 100, 5, "etag"), FileVersion("/data/z.json", 1, 1)
    pending = sorted(s for batch in known.pending() for s in splits_in(batch))
    assert pending == [FileSplit(a, 50, 100), FileSplit(z, 0, 1)]
    assert known.quarantined() == []
    (given_up,) = FilesAsOf(store, CheckpointRef(1, 1)).quarantined()
    assert header.released == [given_up.split_id]
    again, forgotten = Orders(store).after(0)
    assert (again.action, again.reads_again, again.splits["start"]) == ("requeue", True, [50, 0])
    assert (forgotten.action, forgotten.reason, forgotten.who) == ("forget", "junk", "ann")
    assert (forgotten.checkpoint, forgotten.epoch) == (1, 1)


def test_a_seed_names_the_checkpoint_that_a_query_begins_after():
    store = StorageStateStore(str(GOLDEN / "seeded"))
    open_format(store)
    seed = find_seed(store)
    assert seed is not None
    assert (seed.purpose, seed.ref, seed.user) == ("fork", CheckpointRef(1, 1), "ann")
    assert seed.origin["checkpoint"] == 2
    assert purpose_of(store, 1) == "fork"
    known = FilesAsOf(store, seed.ref)
    assert len(known.keys()) == seed.counts["files_seen"] == 3
    pending = [split for batch in known.pending() for split in splits_in(batch)]
    assert sum(split.length for split in pending) == seed.counts["pending_bytes"] == 66
    assert start_position(store, NO_CHECKPOINT, CoordinatorSettings()).newest == seed.ref

"""State that a release has written can be read by every later one (I8).

Files below golden/ are never changed. A new one is written once, by the release it stands for.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark_sluice.checkpoint_meta.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.epochs import check_not_fenced, open_format
from pyspark_sluice.checkpoint_meta.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.reference import CheckpointRef
from pyspark_sluice.checkpoint_meta.serializer import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.splits import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.store import LocalStateStore

GOLDEN = Path(__file__).parent / "golden"


def test_every_file_that_a_release_has_written_can_be_read():
    found = sorted(GOLDEN.rglob("*.arrow"))
    assert found
    for path in found:
        checkpoint = Checkpoint.from_bytes(path.read_bytes(), str(path))
        assert checkpoint.ref.name == path.stem


def test_version_1_reads_as_it_was_written():
    store = LocalStateStore(str(GOLDEN / "v1"))
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
    assert header.events == {"0": [{"limit": 5}]}
    assert header.waiting == {"1": ["later"]}
    assert [split.split_id for split in header.quarantined] == ["/data/z.json@1-1-:0-1"]
    serializer = FileSplitSerializer()
    ((reader, batch),) = checkpoint.assigned
    (state,) = checkpoint.state
    file = FileVersion("/data/a.json", 100, 5, "etag")
    assert (reader, serializer.read(1, batch)) == (0, [FileSplit(file, 0, 50)])
    assert serializer.read(1, state) == [FileSplit(file, 50, 100)]


def test_a_reader_commit_of_version_1_reads_as_it_was_written():
    store = LocalStateStore(str(GOLDEN / "v1"))
    (commit,) = ReaderCommits(store).of(CheckpointRef(2, 2))
    assert (commit.reader, commit.attempt, commit.query_id) == (0, 1, "b7c9")
    assert list(commit.rows) == [4]
    (part,) = commit.unfinished
    assert part.remainder["start"] == [40]
    assert [(kind, value["rows"]) for kind, value in commit.events] == [("figures", 4)]
    assert commit.dropped_records == {0: 1}


def test_version_2_says_which_commits_of_a_checkpoint_in_flight_it_counts():
    ref = CheckpointRef(3, 2)
    path = GOLDEN / "v2" / "checkpoints" / f"{ref.name}.arrow"
    header = Checkpoint.from_bytes(path.read_bytes(), "golden").header
    assert (header.format, header.ref, header.parent) == (2, ref, CheckpointRef(2, 2))
    assert header.counted == {CheckpointRef(2, 2).name: [0, 3]}


def test_golden_json_is_canonical():
    for path in GOLDEN.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False) + "\n"

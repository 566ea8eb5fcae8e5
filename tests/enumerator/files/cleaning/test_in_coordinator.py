"""A coordinator cleans up behind itself, and keeps the state that it still needs for that."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.cleanup_marks import CleanupMarks
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.state_location import check_not_cleaned
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.patience import wait_until


def test_files_go_as_checkpoints_leave_the_retained_ones_and_state_waits_for_them(tmp_path):
    landing = tmp_path / "in"
    landing.mkdir()
    for number in range(8):
        (landing / f"{number}.json").write_text("{}\n")
    options = parse_options(
        {"path": str(landing), "cleansource": "delete", "fileorder": "name"}, streaming=False
    )
    source = FileSource(options, pa.schema([("id", pa.int64())]))
    store, settings = (
        MemoryStateStore(),
        CoordinatorSettings(
            BatchLimits(files=1),
            retained_checkpoints=3,
            deltas_per_base=1,
            background_interval=0.05,
            commit_patience=0.0,
        ),
    )
    coordinator = Coordinator(source, store, settings)
    ref = NO_CHECKPOINT
    for _ in range(8):
        ref = coordinator.latest(ref)
        ReaderCommits(store).publish(
            ReaderCommit(
                checkpoint=ref.checkpoint, epoch=ref.epoch, reader=0, attempt=0,
                rows=[1], input_bytes=[3], microseconds=[1],
            )
        )  # fmt: skip
        coordinator.commit(ref)
    # A mark follows whenever nothing more is due.
    wait_until(lambda: [m.checkpoint for m in CleanupMarks(store, 0).found()][:1] == [5])
    assert sorted(path.name for path in landing.iterdir()) == ["5.json", "6.json", "7.json"]
    cleaned = coordinator.report()["cleaned"]
    assert (cleaned["files"], cleaned["checkpointsToClean"]) == (5, 3)
    coordinator.close()
    # A query cannot start where its files are gone: from 6 on it reads 7 and 8, which are there.
    from pyspark_sluice.checkpoint_meta.history import CheckpointHistory

    history = CheckpointHistory(store)
    refs = {ref.checkpoint: ref for ref in history.checkpoints()}
    assert {5, 6, 7, 8} <= set(refs)
    check_not_cleaned(store, history.header(refs[5]), "")
    early = history.header(refs[5].__class__(4, 1))
    with pytest.raises(OptionError, match="have been cleaned up"):
        check_not_cleaned(store, early, "")

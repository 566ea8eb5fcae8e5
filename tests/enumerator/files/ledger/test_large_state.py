"""More text than one column holds goes through a coordinator and a restart."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of, splits_of
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.coordinator.restore import restore
from pyspark_sluice.enumerator.files.ledger.seen_files import SeenFiles

pytestmark = pytest.mark.slow


class NarrowSource(FileSource):
    """A file source whose columns hold a thousand bytes, not two billion."""

    @property
    def split_serializer(self):
        return FileSplitSerializer(1000)


@pytest.fixture
def source(tmp_path):
    for i in range(100):
        (tmp_path / f"{i:03}.json").write_text("{}")
    return NarrowSource(
        parse_options({"path": str(tmp_path)}, streaming=False), pa.schema([("id", pa.int64())])
    )


def test_every_file_is_assigned_once_before_and_after_a_restart(source):
    store = MemoryStateStore()
    settings = CoordinatorSettings(BatchLimits(files=70), parallelism=2)

    def run(start):
        coordinator = Coordinator(source, store, settings)
        coordinator.prepare_available_now()
        end = coordinator.latest(start)
        (checkpoint,) = coordinator.assignments(start, end)
        coordinator.close()
        return end, checkpoint

    first, one = run(NO_CHECKPOINT)
    assert len(one.assigned) > 2
    second, two = run(first)
    first_splits, second_splits = (
        [s for r in readers_of(c) for s in splits_of(c, r, source.split_serializer)]
        for c in (one, two)
    )
    assert (len(first_splits), len(second_splits)) == (70, 30)
    splits = first_splits + second_splits
    assert len({split.file.path for split in splits}) == 100
    history, attachments = CheckpointHistory(store), Attachments(store, 9)
    whole = restore(history, second, source, attachments).state
    assert whole is not None
    assert [list(whole), len(SeenFiles(whole.runs, whole.tails))] == [[], 100]

"""Files that are there at the first start and are not read, and more text than a column holds."""

import json
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.views.files_as_of import FilesAsOf
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.protocol.opened import opened
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

OLD = 24
NEW = 6
FLUSH_AT = 8


class Source(FileSource):
    """Hands files over five at a time, and seals and merges all the time."""

    def policy(self):
        merging = MergePolicy(flush_at=FLUSH_AT, fan_in=2, longest=20)
        return replace(super().policy(), portion=5, ledger=LedgerPolicy(merging=merging))


def land(directory, kind, number):
    rows = [{"id": each} for each in range(number)]
    for row in rows:
        (directory / f"{kind}-{row['id']:02}").write_text(json.dumps(row))
    return rows


def begun(directory, fault=None):
    """A query that is to read the new files only, over a directory that has old ones."""
    for path in directory.iterdir():
        path.unlink()
    land(directory, "old", OLD)
    options = {"path": str(directory), "includeExistingFiles": "false"}
    parsed, schema = parse_options(options, streaming=False), pa.schema([("id", pa.int64())])
    more = {"parallelism": 1, "retained_checkpoints": 2, "idle_patience": 0.0, "fault": fault}
    return Trial(lambda: Source(parsed, schema), limits=BatchLimits(files=4), **more)


def test_the_first_checkpoint_names_the_runs_that_the_files_are_in(tmp_path):
    trial = begun(tmp_path)
    assert trial.step()
    (first,) = trial.checkpoints()
    assert first.header.attachments
    assert (first.header.state_rows, first.header.assigned_splits) == (0, 0)
    seen = [path for batch in FilesAsOf(trial.objects, first.ref).seen() for path in batch["path"]]
    assert len(seen) == OLD
    # What the next start writes follows what is new.
    before = set(trial.objects.objects)
    landed = land(tmp_path, "new", NEW)
    trial.restart()
    trial.run_to_end()
    trial.check(landed)
    written = set(trial.objects.objects) - before
    assert sum(name.startswith("checkpoints/") for name in written) == 2
    assert opened(trial.coordinator).enumerator.backlog()["filesSeen"] == OLD + NEW


def test_a_first_checkpoint_that_is_taken_back_gives_its_runs_to_the_next(tmp_path):
    trial = begun(tmp_path)
    trial.coordinator._open(NO_CHECKPOINT)
    while not opened(trial.coordinator).enumerator.has_discovered:
        trial._background()
    trial.kill_at(Fault("error before", times=100, verb="publish"))
    with pytest.raises(StateError):
        trial.step()
    trial.kill_at(None)
    landed = land(tmp_path, "new", NEW)
    trial.run_to_end()
    assert trial.checkpoints()[0].header.attachments
    trial.restart()
    trial.run_to_end()
    trial.check(landed)


EACH = "dies at each third operation, not at each eleventh"


@pytest.mark.parametrize("step", sampled([11, 3], lambda step: step > 3, reason=EACH))
@pytest.mark.parametrize("kind", ["crash before", "crash half-way"])
def test_a_crash_at_any_operation_reads_no_old_file_and_every_new_one(tmp_path, kind, step):
    for after in count(0, step):
        trial = begun(tmp_path, Fault(kind, after))
        trial.run_to_end()
        landed = land(tmp_path, "new", NEW)
        trial.run_to_end()
        trial.check(landed, f"killed at operation {after}")
        if not trial.kills:
            break
    assert after > 30


ROWS = [{"id": number} for number in range(60)]


class NarrowSource(FileSource):
    """A file source whose columns hold a thousand bytes, not two billion."""

    @property
    def split_serializer(self):
        return FileSplitSerializer(1000)


def test_every_file_is_assigned_once_before_and_after_a_restart(tmp_path):
    for row in ROWS:
        (tmp_path / f"{row['id']:03}.json").write_text(json.dumps(row))
    options = parse_options({"path": str(tmp_path)}, streaming=False)
    schema, limits = pa.schema([("id", pa.int64())]), BatchLimits(files=40)
    trial = Trial(lambda: NarrowSource(options, schema), limits=limits, parallelism=2)
    assert trial.step()
    trial.restart()
    trial.run_to_end()
    trial.check(ROWS)
    assert len(trial.checkpoints()[0].assigned) > 2
    trial.restart()
    assert not trial.step()
    assert len(opened(trial.coordinator).enumerator.ledger.seen) == len(ROWS)

"""A local file that is replaced by one of equal size and modification time while it is read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pyspark_sluice.connector.cli.reprocess.file_check import unreadable
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.errors import FileChangedError
from pyspark_sluice.tests.connector.source.file_trials import trial_of

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
LONG_AGO = 1_600_000_000
OLD, NEW = range(1000, 4000), range(5000, 8000)


def _lines(ids):
    return "".join(json.dumps({"id": each}) + "\n" for each in ids).encode()


def _write(path: Path, ids) -> Path:
    """A file whose size says nothing of its content."""
    if path.suffix == ".parquet":
        table = pa.table({"id": pa.array(ids, pa.int64())}, SCHEMA)
        parquet.write_table(
            table, path, row_group_size=500, compression="none", use_dictionary=False
        )
    else:
        data = _lines(ids)
        path.write_bytes(gzip.compress(data, 0) if path.suffix == ".gz" else data)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def copied(new: Path, path: Path) -> None:
    subprocess.run(["cp", "-p", new, path], check=True)


def renamed(new: Path, path: Path) -> None:
    # As rsync -t does.
    hidden = path.with_name(f".{path.name}.x")
    shutil.copyfile(new, hidden)
    os.utime(hidden, (LONG_AGO, LONG_AGO))
    hidden.rename(path)


def chmod(new: Path, path: Path) -> None:
    path.chmod(0o640)


def linked(new: Path, path: Path) -> None:
    os.link(path, new.with_name("link"))


def restored(new: Path, path: Path) -> None:
    copied(path, new)
    path.unlink()
    copied(new, path)


NAMES = [("a.json", "bytes"), ("a.parquet", "bytes")]
NAMES += [("a.json", "rows"), ("a.json.gz", "rows"), ("a.parquet", "rows")]
LIMITS = {"bytes": BatchLimits(bytes=8192), "rows": BatchLimits(rows=700)}


def _trial(path: Path, limits: BatchLimits, **options: str) -> Trial:
    kind = {"fileFormat": "parquet" if path.suffix == ".parquet" else "json"}
    given = {**kind, "maxSplitBytes": "8k", **options}
    return trial_of(path.parent, SCHEMA, given, limits=limits)


@pytest.fixture
def begun(tmp_path, request) -> tuple[Trial, Path, Path]:
    """A query of which one batch is read, its file, and another file of equal size."""
    name, limit, *options = request.param
    (tmp_path / "in").mkdir()
    path, new = _write(tmp_path / "in" / name, OLD), _write(tmp_path / name, NEW)
    assert path.stat().st_size == new.stat().st_size
    copied(path, tmp_path / "backup")
    trial = _trial(path, LIMITS[limit], **dict(options))
    assert trial.step()
    assert 0 < len(trial.rows) < len(OLD)
    return trial, path, new


def _check(trial: Trial) -> None:
    trial.run_to_end()
    trial.check([{"id": each} for each in OLD])


@pytest.mark.parametrize(
    "begun", [(*each, ("onSplitError", "fail")) for each in NAMES], indirect=True
)
@pytest.mark.parametrize("replace", [copied, renamed])
def test_another_content_ends_the_query_until_the_old_one_is_back(begun, tmp_path, replace):
    trial, path, new = begun
    replace(new, path)
    with pytest.raises(FileChangedError, match="other content of equal size and modification time"):
        trial.run_to_end()
    copied(tmp_path / "backup", path)
    trial.restart()
    _check(trial)


@pytest.mark.parametrize("begun", NAMES, indirect=True)
@pytest.mark.parametrize("touch", [chmod, linked, restored])
def test_a_file_whose_content_stays_is_read_to_its_end(begun, touch):
    trial, path, new = begun
    touch(new, path)
    _check(trial)


@pytest.mark.parametrize("begun", [("a.json", "rows")], indirect=True)
def test_readers_that_send_splits_back_mix_nothing_either(begun, tmp_path):
    trial, path, new = begun
    copied(new, path)
    for _ in range(3):
        trial.step()
    trial.restart()
    trial.step()
    assert {row["id"] for row in trial.rows} <= set(OLD)
    copied(tmp_path / "backup", path)
    _check(trial)


def test_parts_of_one_batch_come_from_one_content_and_may_be_waived_together(tmp_path):
    (tmp_path / "in").mkdir()
    path, new = _write(tmp_path / "in" / "a.json", OLD), _write(tmp_path / "new.json", NEW)
    trial = _trial(path, BatchLimits(), onSplitError="fail")
    attempt = trial._attempt

    def replaced_after(partition):
        rows = attempt(partition)
        copied(new, path)
        return rows

    # As one task would read all of its parts after the other.
    trial._attempt = replaced_after  # type: ignore[method-assign]
    with pytest.raises(FileChangedError, match="other content"):
        trial.run_to_end()
    (checkpoint,) = trial.checkpoints()
    serializer = trial.source.split_serializer
    splits = [s for _, batch in checkpoint.assigned for s in serializer.read(1, batch)]
    assert unreadable(splits, {}) == splits
    copied(_write(tmp_path / "old.json", OLD), path)
    assert unreadable(splits, {}) == []

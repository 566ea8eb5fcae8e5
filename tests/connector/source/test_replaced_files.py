"""A local file that is replaced before it was read, or while it is read by one of equal times."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.connector.cli.reprocess.known_files import unreadable
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.testing.trial import LOST
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.errors import FileChangedError
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.source.file_trials import FilesTrial, trial_of

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
LONG_AGO = 1_600_000_000


def lines_of(ids: Iterable[int]) -> bytes:
    return "".join(json.dumps({"id": each}) + "\n" for each in ids).encode()


# Before it was read, with onOverwrite=reprocess: the new version, once -------------------------


def begin(path: Path | str, files: int | None = None, **options: str) -> FilesTrial:
    usual = {"fileFormat": "json", "onOverwrite": "reprocess", "fullListingInterval": "1ms"}
    return trial_of(path, SCHEMA, {**usual, **options}, limits=BatchLimits(files=files))


def land(path: Path, ids: Iterable[int], later: int = 0) -> None:
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(lines_of(ids))
    os.utime(hidden, (LONG_AGO + later, LONG_AGO + later))
    hidden.rename(path)


def ids_of(rows: Iterable[Any]) -> list[int]:
    return [row["id"] for row in rows]


def once(trial: FilesTrial, happens: Any) -> None:
    """Let it happen between the planning of the first batch and its reading."""

    def before_reading() -> None:
        trial.before_reading = lambda: None
        happens()

    trial.before_reading = before_reading


@pytest.mark.parametrize("most", ["1g", "16"])
def test_a_file_that_is_replaced_while_it_waits_is_read_once(tmp_path: Path, most: str) -> None:
    land(tmp_path / "a.json", [0])
    land(tmp_path / "b.json", [1], 1)
    land(tmp_path / "c.json", range(10, 20), 2)
    trial = begin(tmp_path, files=1, maxSplitBytes=most)
    # One file is this batch's, one the next one's, and the third waits.
    once(trial, lambda: land(tmp_path / "c.json", range(30, 45), 3))
    assert trial.step()
    assert ids_of(trial.rows) == [0]
    trial.run_to_end()
    assert sorted(ids_of(trial.rows)) == [0, 1, *range(30, 45)]


@pytest.mark.parametrize("found_first", [True, False])
def test_a_file_that_is_replaced_after_it_was_given_to_a_reader_is_read_once(
    tmp_path: Path, found_first: bool
) -> None:
    land(tmp_path / "a.json", [0])
    trial = begin(tmp_path, fullListingInterval="1ms" if found_first else "1h")

    def replaced() -> None:
        land(tmp_path / "a.json", [1, 2], 1)
        for _ in range(2 * found_first):
            trial.calls.run_calls()

    once(trial, replaced)
    assert trial.step()
    assert trial.rows == [], "it is another file's content"
    # Without a listing, too, as the reader has met it.
    trial.run_to_end()
    assert ids_of(trial.rows) == [1, 2]


def test_what_replaced_a_file_is_not_forgotten_by_a_restart(tmp_path: Path) -> None:
    land(tmp_path / "a.json", [0])
    trial = begin(tmp_path, fullListingInterval="1h")
    once(trial, lambda: land(tmp_path / "a.json", [1, 2], 1))

    def crash() -> None:
        raise SimulatedCrash

    # The driver dies with the executor, which has acknowledged; the batch is read again.
    trial.script, trial.meanwhile = [LOST], crash
    trial.run_to_end()
    assert trial.kills == 1
    assert ids_of(trial.rows) == [1, 2]


def test_what_is_put_in_place_of_a_file_is_read_as_it_is_where_versions_do_not_matter(
    tmp_path: Path,
) -> None:
    land(tmp_path / "a.json", [0])
    trial = begin(tmp_path, onOverwrite="ignore")
    once(trial, lambda: land(tmp_path / "a.json", [1, 2], 1))
    trial.run_to_end()
    assert ids_of(trial.rows) == [1, 2]


@pytest.mark.sample("s3-False", why="the same with a checksum")
@pytest.mark.parametrize("found_first", [True, False])
def test_an_object_that_is_replaced_between_its_listing_and_its_reading_is_read_once(
    any_server: FaultyServer, any_bucket: str, found_first: bool
) -> None:
    any_server.put(any_bucket, "in/a.json", lines_of([0]))
    storage = as_json(any_server.options)
    trial = begin(f"{any_server.scheme}://{any_bucket}/in", storageOptions=storage)

    def replaced() -> None:
        any_server.put(any_bucket, "in/a.json", lines_of([7, 8]))
        for _ in range(2 * found_first):
            trial.calls.run_calls()

    once(trial, replaced)
    trial.run_to_end()
    assert sorted(ids_of(trial.rows)) == [7, 8]


# While it is read, by one of equal size and modification time ------------------------------------

OLD, NEW = range(1000, 4000), range(5000, 8000)


def _write(path: Path, ids) -> Path:
    """A file whose size says nothing of its content."""
    if path.suffix == ".parquet":
        table = pa.table({"id": pa.array(ids, pa.int64())}, SCHEMA)
        parquet.write_table(
            table, path, row_group_size=500, compression="none", use_dictionary=False
        )
    else:
        data = lines_of(ids)
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

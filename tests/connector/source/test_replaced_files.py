"""A file that is replaced before it was read, with onOverwrite=reprocess: the new version, once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.connector.testing.trial import LOST
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.source.file_trials import FilesTrial, trial_of

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
LONG_AGO = 1_600_000_000


def begin(path: Path | str, files: int | None = None, **options: str) -> FilesTrial:
    usual = {"fileFormat": "json", "onOverwrite": "reprocess", "fullListingInterval": "1ms"}
    return trial_of(path, SCHEMA, {**usual, **options}, limits=BatchLimits(files=files))


def lines_of(ids: Iterable[int]) -> bytes:
    return "".join(json.dumps({"id": each}) + "\n" for each in ids).encode()


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

"""Limits of batches hold in every format, and batches are nearly full."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.tests.connector.source.archived import LINES, Logs
from pyspark_sluice.tests.connector.source.file_trials import trial_of
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS
from pyspark_sluice.tests.reader.files.formats.table_files import avro_file

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def _rows(first, count):
    chance = random.Random(first)
    return [{"id": first + i, "text": f"{chance.getrandbits(300):x}"} for i in range(count)]


def _json(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _table(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def _written(write, rows):
    sink = pa.BufferOutputStream()
    write(_table(rows), sink)
    return sink.getvalue().to_pybytes()


def _xml(rows):
    texts = (f"<r><id>{row['id']}</id><text>{row['text']}</text></r>" for row in rows)
    return f"<rs>{''.join(texts)}</rs>".encode()


def _csv(rows):
    return "".join(f"{row['id']},{row['text']}\n" for row in rows).encode()


# Name: options, and what writes rows.
KINDS: dict[str, tuple[dict[str, str], Callable[[list[Any]], bytes]]] = {
    "json": ({"fileFormat": "json"}, _json),
    "document.json": (
        {"fileFormat": "json", "multiLine": "true"},
        lambda rows: json.dumps(rows).encode(),
    ),
    "csv": ({"fileFormat": "csv"}, _csv),
    "xml": ({"fileFormat": "xml", "rowTag": "r"}, _xml),
    "parquet": ({"fileFormat": "parquet"}, partial(_written, pq.write_table)),
    "orc": ({"fileFormat": "orc"}, partial(_written, orc.write_table)),
    "avro": ({"fileFormat": "avro"}, lambda rows: avro_file(_table(rows))),
    "json.gz": ({"fileFormat": "json"}, lambda rows: gzip.compress(_json(rows))),
}


def _trial(folder: Path, options: dict[str, str], limits: BatchLimits, **settings: Any) -> Trial:
    return trial_of(folder, SCHEMA, options, limits=limits, **settings)


def _land(folder: Path, kind: str, sizes: Iterable[int]) -> list[Any]:
    """Files of so many rows. Returns all rows."""
    landed: list[Any] = []
    for number, size in enumerate(sizes):
        rows = _rows(len(landed), size)
        (folder / f"{number:03}.{kind}").write_bytes(KINDS[kind][1](rows))
        landed += rows
    return landed


@pytest.mark.parametrize(
    ("kind", "sizes", "limit", "parallelism"),
    [
        *((kind, [340] * 7, 280, 2) for kind in KINDS),
        pytest.param("json", [1] * 600, 60, 2, id="hundreds of files of one row"),
        pytest.param("csv", [5] * 4, 1, 3, id="a limit smaller than the number of readers"),
    ],
)
@pytest.mark.sample(
    "json", "parquet", "hundreds of files of one row",
    "a limit smaller than the number of readers", why="rows of other formats are cut alike",
)  # fmt: skip
def test_batches_are_nearly_as_large_as_the_limit_and_never_larger(
    tmp_path, kind, sizes, limit, parallelism
):
    landed = _land(tmp_path, kind, sizes)
    limits = BatchLimits(rows=limit)
    trial = _trial(tmp_path, KINDS[kind][0], limits, bounded=True, parallelism=parallelism)
    trial.run_to_end()
    trial.check(landed)
    sizes = [len(batch) for batch in trial.sink]
    assert max(sizes) <= limit, sizes
    # The last two may find too little to read.
    assert all(size >= 0.9 * limit for size in sizes[1:-2]), sizes
    assert all(sizes), sizes


@pytest.mark.parametrize(
    ("kind", "limits", "ahead", "bounded"),
    [
        ("json", BatchLimits(files=2, rows=17), 1, False),
        ("json", BatchLimits(files=6, rows=50), 2, True),
        ("json.gz", BatchLimits(files=2, bytes=2000), 2, True),
    ],
)
def test_a_limit_on_files_counts_those_that_a_batch_continues(
    tmp_path, kind, limits, ahead, bounded
):
    sizes = [3 if number % 5 else 150 for number in range(15)]
    landed = _land(tmp_path, kind, sizes)
    file_of = [number for number, size in enumerate(sizes) for _ in range(size)]
    trial = _trial(tmp_path, KINDS[kind][0], limits, bounded=bounded, checkpoints_ahead=ahead)
    trial.run_to_end()
    trial.check(landed)
    counts = [len({file_of[row["id"]] for row in batch}) for batch in trial.sink]
    assert max(counts) <= limits.files, counts
    assert all(counts), "no batch is empty"


@pytest.mark.parametrize(("suffix", "ahead"), [(".tar.gz", 0), (".zip", 1)])
def test_a_limit_on_files_counts_the_members_of_archives(tmp_path, suffix, ahead):
    contents = {f"{n}.json": b'{"id":%d}\n' % n for n in range(300)}
    (tmp_path / f"a{suffix}").write_bytes(PACKERS[suffix](contents))
    for n in range(300, 315):
        (tmp_path / f"{n}.json").write_bytes(b'{"id":%d}\n' % n)
    options = {"fileFormat": "json", "maxSplitBytes": "1k"}
    trial = _trial(tmp_path, options, BatchLimits(files=30), checkpoints_ahead=ahead)
    trial.run_to_end()
    assert sorted(row["id"] for row in trial.rows) == list(range(315))
    sizes = [len(batch) for batch in trial.sink]
    assert max(sizes) <= 30
    if suffix != ".zip":
        # One reader has the archive. What the other one does not need of the limit, it gets.
        assert min(sizes[:9]) >= 27, sizes
    # Ahead, what readers leave is an estimate, and the last ones have less to read.
    assert len(sizes) <= 20, sizes


def test_a_limit_on_files_holds_for_a_part_that_only_continues_an_archive(tmp_path):
    contents = {f"{n}.json": b'{"id":%d}\n' % n * 10 for n in range(200)}
    (tmp_path / "a.zip").write_bytes(PACKERS[".zip"](contents))
    for n in range(200, 220):
        (tmp_path / f"{n}.json").write_bytes(b'{"id":%d}\n' % n)
    # Nothing new comes in a bounded run, so it cuts batches in which readers only continue.
    limits = BatchLimits(files=20)
    trial = _trial(tmp_path, {"fileFormat": "json"}, limits, bounded=True, checkpoints_ahead=2)
    trial.run_to_end()
    assert len(trial.rows) == 2020
    assert max(len({row["id"] for row in batch}) for batch in trial.sink) <= 20


def test_one_row_group_is_larger_than_the_limit(tmp_path):
    landed = _rows(0, 4_000)
    pq.write_table(_table(landed), tmp_path / "a.parquet", row_group_size=4_000)
    trial = _trial(tmp_path, {"fileFormat": "parquet"}, BatchLimits(rows=600), bounded=True)
    trial.run_to_end()
    assert [len(batch) for batch in trial.sink] == [600] * 6 + [400]
    trial.check(landed)


def test_the_driver_opens_no_file_to_plan_under_a_limit_on_rows(tmp_path, monkeypatch):
    _land(tmp_path, "parquet", [3] * 100)

    def opening(self: SourceFile, file: FileVersion, storage: object) -> None:
        raise AssertionError(f"{file.path} is opened")

    monkeypatch.setattr(SourceFile, "__init__", opening)
    trial = _trial(tmp_path, {"fileFormat": "parquet"}, BatchLimits(rows=50), bounded=True)
    ref = trial._patiently(lambda: trial.coordinator.latest(NO_CHECKPOINT))
    (checkpoint,) = trial.coordinator.assignments(NO_CHECKPOINT, ref)
    assert checkpoint.header.assigned_splits


# The example log ------------------------------------------------------------------------------

LOG_BYTES = 40


def sizes(trial):
    return [sum(len(row["line"]) + 1 for row in batch) for batch in trial.sink]


@pytest.mark.parametrize(
    ("ahead", "parallelism", "bounded"), [(0, 2, False), (1, 1, False), (3, 2, False), (1, 2, True)]
)
def test_no_batch_of_a_log_exceeds_the_limit_on_bytes(tmp_path, ahead, parallelism, bounded):
    logs = Logs(tmp_path)
    options = logs.options(sourceOptions='{"slice": 100}', maxBytesPerTrigger=str(LOG_BYTES))
    landed = [row for part in range(3) for row in logs.land(part, 5, archived=0)]
    trial = Trial(
        lambda: LogSource(options, LINES),
        limits=BatchLimits(bytes=LOG_BYTES),
        parallelism=parallelism,
        checkpoints_ahead=ahead,
        bounded=bounded,
    )
    continued = 0
    for round_ in range(5):
        trial.step()
        if not bounded:
            landed += logs.land(round_ % 3, 2, archived=0)
        headers = [trial.coordinator.history.load(ref).header for ref in trial.offsets]
        continued = sum(len(h.origins) for h in headers)
    trial.restart()
    trial.run_to_end()
    trial.check(landed)
    assert max(sizes(trial)) <= LOG_BYTES
    assert len(trial.sink) > 5
    assert continued > 0 or ahead == 0


def test_a_line_that_is_longer_than_the_limit_is_a_batch_of_its_own(tmp_path):
    logs = Logs(tmp_path)
    options = logs.options(maxBytesPerTrigger="10")
    (tmp_path / "p0.log").write_text("a\nb\n" + "long" * 10 + "\nc\n")
    trial = Trial(lambda: LogSource(options, LINES), limits=BatchLimits(bytes=10))
    trial.run_to_end()
    lines = [[row["line"] for row in batch] for batch in trial.sink]
    assert [batch for batch in lines if batch] == [["a", "b"], ["long" * 10], ["c"]]

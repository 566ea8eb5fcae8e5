"""maxRowsPerTrigger holds in every format and codec, and batches are nearly full."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import random
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.testing.trial import KILLED, LOST, RETURNED
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def _rows(first, count):
    chance = random.Random(first)
    return [{"id": first + i, "text": f"{chance.getrandbits(300):x}"} for i in range(count)]


def _json(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _compressed(codec, rows):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(_json(rows))
    return sink.getvalue().to_pybytes()


def _table(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def _written(write, rows):
    sink = pa.BufferOutputStream()
    write(_table(rows), sink)
    return sink.getvalue().to_pybytes()


def _arrow(table, sink):
    with ipc.new_file(sink, table.schema) as out:
        out.write_table(table)


def _avro(table, sink):
    import io

    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    made = io.BytesIO()
    fastavro.writer(made, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())
    sink.write(made.getvalue())


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
    "lines.csv": ({"fileFormat": "csv", "multiLine": "true"}, _csv),
    "xml": ({"fileFormat": "xml", "rowTag": "r"}, _xml),
    "parquet": ({"fileFormat": "parquet"}, partial(_written, pq.write_table)),
    "orc": ({"fileFormat": "orc"}, partial(_written, orc.write_table)),
    "arrow": ({"fileFormat": "arrow"}, partial(_written, _arrow)),
    "avro": ({"fileFormat": "avro"}, partial(_written, _avro)),
    "json.gz": ({"fileFormat": "json"}, lambda rows: gzip.compress(_json(rows))),
    "json.deflate": ({"fileFormat": "json"}, lambda rows: zlib.compress(_json(rows))),
    "json.bz2": ({"fileFormat": "json"}, lambda rows: bz2.compress(_json(rows))),
    "json.xz": ({"fileFormat": "json"}, lambda rows: lzma.compress(_json(rows))),
    "json.zst": ({"fileFormat": "json"}, partial(_compressed, "zstd")),
    "json.lz4": ({"fileFormat": "json"}, partial(_compressed, "lz4")),
}


def _trial(folder: Path, options: dict[str, str], limits: BatchLimits, **settings: Any) -> Trial:
    given = {**options, "path": str(folder), "stateLocation": "unused", "onSplitError": "return"}
    made = parse_options(given, streaming=True)
    return Trial(lambda: FileSource(made, SCHEMA), limits=limits, **settings)


def _check(trial: Trial, landed: list[Any], limit: int) -> None:
    trial.check(landed)
    sizes = [len(batch) for batch in trial.sink]
    assert max(sizes) <= limit, sizes
    # The last two may find too little to read.
    assert all(size >= 0.9 * limit for size in sizes[1:-2]), sizes
    assert all(sizes), sizes


@pytest.mark.parametrize(
    ("kind", "files"),
    sampled(
        itertools.product(KINDS, [1, 7]),
        [
            ("json.gz", 1),
            *((kind, 7) for kind in ("csv", "json", "orc", "parquet", "avro")),
        ].__contains__,
        reason="more codecs and counts of files; the limit depends on neither",
    ),
)
def test_batches_are_nearly_as_large_as_the_limit_and_never_larger(tmp_path, kind, files):
    options, write = KINDS[kind]
    landed = []
    for number in range(files):
        rows = _rows(len(landed), 6000 // files)
        (tmp_path / f"{number}.{kind}").write_bytes(write(rows))
        landed += rows
    trial = _trial(tmp_path, options, BatchLimits(rows=700), bounded=True)
    trial.run_to_end()
    _check(trial, landed, 700)


@pytest.mark.parametrize(
    "ahead", sampled([0, 1, 3], [1].__contains__, reason="as many in flight as by default is one")
)
def test_thousands_of_files_of_one_row(tmp_path, ahead):
    landed = _rows(0, 3000)
    for row in landed:
        (tmp_path / f"{row['id']:05}.json").write_bytes(_json([row]))
    limits = BatchLimits(rows=300)
    trial = _trial(tmp_path, {"fileFormat": "json"}, limits, bounded=True, checkpoints_ahead=ahead)
    trial.run_to_end()
    _check(trial, landed, 300)


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("json", BatchLimits(files=2, rows=17)),
        ("json", BatchLimits(files=6, rows=50)),
        ("json.gz", BatchLimits(files=2, bytes=2000)),
    ],
)
@pytest.mark.parametrize(("ahead", "bounded"), [(1, False), (2, True)])
def test_a_limit_on_files_counts_those_that_a_batch_continues(
    tmp_path, kind, limits, ahead, bounded
):
    options, write = KINDS[kind]
    landed, file_of = [], {}
    for number in range(15):
        rows = _rows(len(landed), 3 if number % 5 else 150)
        (tmp_path / f"{number:02}.{kind}").write_bytes(write(rows))
        landed += rows
        file_of |= {row["id"]: number for row in rows}
    trial = _trial(tmp_path, options, limits, bounded=bounded, checkpoints_ahead=ahead)
    trial.run_to_end()
    trial.check(landed)
    counts = [len({file_of[row["id"]] for row in batch}) for batch in trial.sink]
    assert max(counts) <= limits.files, counts
    assert all(counts), "no batch is empty"


def test_one_row_group_is_larger_than_the_limit(tmp_path):
    landed = _rows(0, 20_000)
    pq.write_table(_table(landed), tmp_path / "a.parquet", row_group_size=20_000)
    trial = _trial(tmp_path, {"fileFormat": "parquet"}, BatchLimits(rows=3_000), bounded=True)
    trial.run_to_end()
    assert [len(batch) for batch in trial.sink] == [3_000] * 6 + [2_000]
    trial.check(landed)


def test_a_limit_smaller_than_the_number_of_readers(tmp_path):
    landed = []
    for number in range(4):
        rows = _rows(len(landed), 5)
        (tmp_path / f"{number}.csv").write_bytes(_csv(rows))
        landed += rows
    trial = _trial(
        tmp_path, {"fileFormat": "csv"}, BatchLimits(rows=1), bounded=True, parallelism=3
    )
    trial.run_to_end()
    _check(trial, landed, 1)


@pytest.mark.parametrize("seed", sampled(range(12), [1].__contains__, reason="more seeds"))
def test_nothing_is_lost_or_doubled_when_tasks_and_drivers_die(tmp_path, seed):
    """Under limits of rows, bytes and files, with one large file and with many small ones."""
    chance = random.Random(seed)
    kind = chance.choice(["json", "json.deflate", "parquet", "csv"])
    options, write = KINDS[kind]
    rows, size = chance.choice([None, 50, 333]), chance.choice([None, 20_000])
    rows = rows or (None if size else 100)
    limits = BatchLimits(files=chance.choice([None, 3]), rows=rows, bytes=size)
    trial = _trial(tmp_path, options, limits, checkpoints_ahead=chance.choice([0, 1, 2]))
    landed: list[Any] = []
    for number in range(6):
        for _ in range(chance.choice([1, 8])):
            new = _rows(len(landed), chance.choice([1, 20, 700]))
            (tmp_path / f"{len(landed):06}.{kind}").write_bytes(write(new))
            landed += new
        trial.script = chance.choices(["", "", KILLED, LOST, RETURNED], k=4)
        for _ in range(3):
            trial.step()
        if number % 2:
            trial.restart(chance.choice([1, 2, 3]))
    trial.run_to_end()
    trial.check(landed, f"{kind} {limits}")
    if rows:
        assert max(len(batch) for batch in trial.sink) <= rows


def test_the_driver_opens_no_file_to_plan_under_a_limit_on_rows(tmp_path, monkeypatch):
    landed = []
    for number in range(1000):
        rows = _rows(len(landed), 3)
        pq.write_table(_table(rows), tmp_path / f"{number:04}.parquet")
        landed += rows

    def opening(self: SourceFile, file: FileVersion, storage: object) -> None:
        raise AssertionError(f"{file.path} is opened")

    monkeypatch.setattr(SourceFile, "__init__", opening)
    given = {"fileFormat": "parquet", "path": str(tmp_path), "stateLocation": "unused"}
    source = FileSource(parse_options(given, streaming=True), SCHEMA)
    trial = Trial(lambda: source, limits=BatchLimits(rows=500), bounded=True)
    ref = trial._patiently(lambda: trial.coordinator.latest(NO_CHECKPOINT))
    (checkpoint,) = trial.coordinator.assignments(NO_CHECKPOINT, ref)
    assert checkpoint.header.assigned_splits

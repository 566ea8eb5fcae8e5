"""Batches of data files for the tests of sinks, without Spark: what readers have written."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pyspark_sluice.checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, BatchOrigin
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit, about
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName, WrittenFile
from pyspark_sluice.reader.direct_write.field_ids import from_text
from pyspark_sluice.reader.direct_write.file_writer import DataFileWriter
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.written_batch import WrittenBatch

LINEAGE = "0123456789abcdef"


def batch_of(
    url: str | Path, checkpoint: int, table: pa.Table, *, storage: Any = None, **options: Any
) -> WrittenBatch:
    """One batch of one reader whose rows are `table`; `columns` as an Iceberg sink passes them."""
    identity = options.pop("identity", None) or identity_of(checkpoint, **options)
    options = {name: value for name, value in options.items() if name not in ("lineage", "epoch")}
    token = options.pop("token", f"{checkpoint:012x}")
    previous = options.pop("previous", None)
    if previous is None:
        previous = BatchMark.of(identity_of(checkpoint - 1)) if checkpoint > 1 else NO_BATCH
    name = FileName(identity, options.pop("reader", 0), token)
    text = options.pop("columns", None)
    chosen = WriteOptions.model_validate({f"write_{k}": v for k, v in options.items()})
    columns = from_text(text) if text else None
    place = Place(str(url), storage or {})
    writer = DataFileWriter(place, name, table.schema, chosen, None, columns)
    for batch in table.to_batches():
        writer.write(batch)
    return written_batch(writer.finish(), previous, storage)


def identity_of(
    checkpoint: int, *, lineage: str = LINEAGE, epoch: int = 1, **_: Any
) -> CheckpointIdentity:
    """The identity of a checkpoint whose digits say its number."""
    return CheckpointIdentity(CheckpointRef(checkpoint, epoch), lineage, f"{checkpoint:015x}0")


def written_batch(
    files: Sequence[WrittenFile], previous: BatchMark = NO_BATCH, storage: Any = None
) -> WrittenBatch:
    """The batch of files that readers have named."""
    names = [FileName.parse(file.path) for file in files]
    marks = [BatchMark.of(name.checkpoint) for name in names if name is not None]
    (lineage,) = {name.checkpoint.lineage for name in names if name is not None}
    pairs = list(zip(files, marks, strict=True))
    return WrittenBatch.of_files(pairs, lineage, BatchOrigin(previous), storage or {})


def commit_of(batch: WrittenBatch) -> ReaderCommit:
    """By which the files of a batch count."""
    name = FileName.parse(batch.files[0].path)
    assert name is not None
    return ReaderCommit(
        **about(name.checkpoint),
        reader=0,
        attempt=0,
        rows=[3],
        input_bytes=[1],
        microseconds=[1],
        written_files=batch.files,
    )


def in_place(path: Path, rows: pa.Table, lineage: str = LINEAGE) -> WrittenBatch:
    """A batch of one file that was not written by Sluice."""
    pq.write_table(rows, path)
    statistics = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    file = WrittenFile(
        path=str(path), rows=len(rows), bytes=path.stat().st_size, statistics=json.dumps(statistics)
    )
    mark = BatchMark.of(identity_of(1))
    return WrittenBatch.of_files([(file, mark)], lineage, BatchOrigin(), {})


def files_of(table: str | Path) -> set[str]:
    """The names of all data files below a directory."""
    return {path.name for path in Path(table).rglob("*.parquet")}


def compact_until(table: str, new_files: int, *, has_committed: bool) -> None:
    """Compact a Delta table; killed when it has so many new files, or the commit as well."""
    known, version = files_of(table), DeltaTable(table).version()
    log = Path(table, "_delta_log", f"{version + 1:020}.json")

    def watch() -> None:
        while len(files_of(table) - known) < new_files or (has_committed and not log.exists()):
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    watcher = Thread(target=watch)
    watcher.start()
    DeltaSink(table, {}).compact(1024 * 1024)
    watcher.join()


def processes() -> ForkServerContext:
    """Makes processes that need not import again what the tests of sinks import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pyspark_sluice.tests.tables.one_batch"])
    return context


def ids(first: int, count: int = 3, **more: Any) -> pa.Table:
    """Rows with ids from `first` on."""
    columns = {name: pa.array([value] * count) for name, value in more.items()}
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), **columns})

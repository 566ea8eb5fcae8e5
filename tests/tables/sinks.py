"""Batches of data files for the tests of sinks, without Spark: what readers have written."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.reader.direct_write.field_ids import from_text
from pyspark_sluice.reader.direct_write.file_writer import DataFileWriter
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.iceberg_table import IcebergSink
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tables.written_batch import WrittenBatch
from pyspark_sluice.tests.patience import PATIENCE

LINEAGE = "0123456789abcdef"


def batch_of(
    url: str | Path, checkpoint: int, table: pa.Table, *, storage: Any = None, **options: Any
) -> WrittenBatch:
    """One batch of one reader whose rows are `table`; `columns` as an Iceberg sink passes them."""
    lineage = options.pop("lineage", LINEAGE)
    token = options.pop("token", f"{checkpoint:012x}")
    reader = options.pop("reader", 0)
    ref = CheckpointRef(checkpoint, options.pop("epoch", 1))
    name = FileName(lineage, ref, reader, token)
    text = options.pop("columns", None)
    chosen = WriteOptions.model_validate({f"write_{k}": v for k, v in options.items()})
    columns = from_text(text) if text else None
    place = Place(str(url), storage or {})
    writer = DataFileWriter(place, name, table.schema, chosen, None, columns)
    for batch in table.to_batches():
        writer.write(batch)
    return WrittenBatch.of_files(writer.finish(), storage or {})


def commit_of(batch: WrittenBatch, reader: int = 0, epoch: int = 1) -> ReaderCommit:
    """By which the files of a batch count."""
    return ReaderCommit(
        checkpoint=batch.checkpoint,
        epoch=epoch,
        reader=reader,
        attempt=0,
        rows=[3],
        input_bytes=[1],
        microseconds=[1],
        written_files=batch.files,
    )


def add_to_delta(table: str, batch: WrittenBatch, gate: Barrier) -> None:
    """In a process of its own: once the other one is there, too."""
    gate.wait(PATIENCE)
    DeltaSink(table, {}).add(batch)


def add_to_manifests(directory: str, batch: WrittenBatch, gate: Barrier) -> None:
    """As `add_to_delta`."""
    gate.wait(PATIENCE)
    Manifests(directory, {}).add(batch)


def add_to_iceberg(catalog: dict[str, str], table: str, batch: WrittenBatch, gate: Barrier) -> None:
    """As `add_to_delta`; both have looked at the table before one of them commits."""
    sink: Any = IcebergSink(SqlCatalog("x", **catalog).load_table(table))
    commit, tries = sink._commit, iter([gate])

    def at_once(opened: Any, batch: WrittenBatch) -> bool:
        for first in tries:
            first.wait(PATIENCE)
        return commit(opened, batch)

    sink._commit = at_once
    sink.add(batch)


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


def finished(drivers: Sequence[ForkServerProcess]) -> None:
    """Run them all at once, to their end."""
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(PATIENCE)
    assert [driver.exitcode for driver in drivers] == [0] * len(drivers)


def ids(first: int, count: int = 3, **more: Any) -> pa.Table:
    """Rows with ids from `first` on."""
    columns = {name: pa.array([value] * count) for name, value in more.items()}
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), **columns})

"""Reads real files the way a task does, for the tests of the reader's room."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.splits import FileSplit, FileVersion
from pyspark_sluice.reader.api import ReaderContext, Report
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader

CONTEXT = ReaderContext(checkpoint_id=1, reader=0, attempt=0)


def version(path: Path) -> FileVersion:
    """The file as discovery would see it."""
    status = os.stat(path)
    return FileVersion(str(path), status.st_size, status.st_mtime_ns // 1000)


def whole(path: Path) -> FileSplit:
    """One split for all of a file."""
    file = version(path)
    return FileSplit(file, 0, file.size)


def cut(path: Path, borders: Iterable[int]) -> list[FileSplit]:
    """Splits of a file at the given bytes."""
    file = version(path)
    points = sorted({0, file.size, *(b for b in borders if 0 < b < file.size)})
    return [FileSplit(file, a, b) for a, b in pairwise(points)]


def read(
    splits: Sequence[FileSplit],
    schema: pa.Schema,
    context: ReaderContext = CONTEXT,
    **options: Any,
) -> tuple[pa.Table, list[Report]]:
    """Rows and reports of `splits`; every batch is checked to equal the schema."""
    reader = FileSplitReader(schema, ReaderOptions(**options), context)
    batches, reports = [], []
    for item in reader.read(splits):
        if isinstance(item, pa.RecordBatch):
            assert item.schema.equals(schema), (item.schema, schema)
            item.validate(full=True)
            batches.append(item)
        else:
            reports.append(item)
    return pa.Table.from_batches(batches, schema), reports


def read_rows(paths: Sequence[Path], schema: pa.Schema, **options: Any) -> list[dict[str, Any]]:
    """Rows of whole files as Python values."""
    return read([whole(path) for path in paths], schema, **options)[0].to_pylist()

"""One table in every block format, and the rows that the reader makes of such files."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.reader.files.formats.api import FileFormat
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import version

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("real", pa.float64()),
        ("many", pa.list_(pa.int64())),
        ("named", pa.map_(pa.string(), pa.int64())),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)


def sample_rows(count: int) -> list[dict[str, Any]]:
    """Return the rows that the fixture `write` writes."""
    return [
        {
            "id": i,
            "text": f"text {i % 37}" if i % 5 else None,
            "real": i * 0.5,
            "many": [i, None] if i % 3 else None,
            "named": [(f"k{i % 3}", i)],
            "nested": {"a": i, "b": "x"} if i % 4 else None,
        }
        for i in range(count)
    ]


def format_of(kind: str, schema: pa.Schema = SCHEMA, **options: Any) -> FileFormat:
    """Return the reader of a format, with options by Spark's names."""
    name = {"stream": "arrow"}.get(kind, kind)
    return make_format(ReaderOptions(fileFormat=name, **options), schema)


def rows_of(file_format: FileFormat, file: FileVersion, *cuts: int) -> list[dict[str, Any]]:
    """Return the rows of a file, or of the splits between these cuts, in order."""
    rows: list[dict[str, Any]] = []
    for start, end in pairwise([0, *cuts, file.size]):
        for decoded in file_format.decode(FileSplit(file, start, end)):
            decoded.batch.validate(full=True)
            rows += decoded.batch.to_pylist()
    return rows


def table_of(kind: str, paths: Iterable[Path], schema: pa.Schema, **options: Any) -> pa.Table:
    """Return all rows of some files."""
    reader = format_of(kind, schema, **options)
    files = map(version, paths)
    parts = [part for f in files for part in reader.decode(FileSplit(f, 0, f.size))]
    return pa.Table.from_batches([part.batch for part in parts], schema)

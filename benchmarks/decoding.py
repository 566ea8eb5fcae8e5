"""Our reader in this process, without Spark: what decoding alone costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.connector.spark.types import arrow_schema
from pyspark_sluice.reader.api import ReaderContext
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader


def decoded(
    path: Path, file_format: str, schema: StructType, options: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The batches of one whole file, as they would go to Spark."""
    status = path.stat()
    file = FileVersion(str(path), status.st_size, status.st_mtime_ns // 1000)
    given = {"fileFormat": file_format, "timeZone": "UTC", **options}
    reader = FileSplitReader(arrow_schema(schema), ReaderOptions(**given), ReaderContext(1, 0, 0))
    for item in reader.read([FileSplit(file, 0, file.size)]):
        if isinstance(item, pa.RecordBatch):
            yield item

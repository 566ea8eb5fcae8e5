"""Parquet files that a table can refer to where they are: nothing of them is read but the footer.

That is the case if reading them would change nothing: the same columns with the same types, and no
rows that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from ...checkpoint_meta.documents.written_file import WrittenFile
from ...checkpoint_meta.files.file_split import FileSplit
from ...errors import SchemaMismatchError
from ..files.evolution.type_growth import is_same
from ..files.formats.api import Decoded
from ..files.formats.blocks import reading
from ..files.formats.parquet.logical_types import LogicalTypes
from ..files.io.source_file import SourceFile
from ..files.reader import FileSplitReader
from ..files.values.calendar_rebase import rebase_functions
from .partitioning import partition_text
from .statistics import leaves, statistics_of


class InPlaceReader(FileSplitReader):
    """Yields a batch about each file; `FilesInPlace` takes them."""

    @override
    def _pack_key(self, split: FileSplit) -> object | None:
        # Packed files are parsed as one, while each of these has its own row about it.
        return None

    @override
    def _rows_in(self, batch: pa.RecordBatch) -> int:
        # The report counts rows of the file, where the batch has one row about it.
        return sum(file.rows for file in _files(batch))

    @override
    def _batches(self, split: FileSplit) -> Iterator[tuple[pa.RecordBatch, Decoded]]:
        path = split.file.path
        self._remainder = None
        way = self._plan_for(split)
        # For its error only: a new column has to stop the query before the task commits.
        self._watch.format_for(split.file, way.file_format, way.data)
        stored = SourceFile(split.file, self._options.storage_options)
        with reading(split.file, "Parquet file"), stored.native() as source:
            parquet = pq.ParquetFile(source)
            types = LogicalTypes(parquet)
            file_schema, old = types.stored(way.data), types.int96
            metadata = parquet.metadata.metadata or {}
            if old or rebase_functions(file_schema, metadata, self._options, path, old):
                raise _differs(path, "timestamps or dates in the encoding of old writers", "none")
        for column in file_schema:
            index = way.data.get_field_index(column.name)
            if index < 0 or file_schema.names.count(column.name) > 1:
                expected = f"each of these at most once: {', '.join(way.data.names)}"
                raise _differs(path, f"a column {column.name}", expected)
            if not is_same(column.type, way.data.field(index).type):
                wanted = way.data.field(index).type
                raise _differs(path, f"{column.name} {column.type}", f"{column.name} {wanted}")
        if not parquet.metadata.num_rows:
            return
        path_columns = self._columns.partition(path)
        floats = [leaf.name for leaf in leaves(file_schema) if pa.types.is_floating(leaf.type)]
        file = WrittenFile(
            path=path,
            rows=parquet.metadata.num_rows,
            bytes=split.file.size,
            partition={name: partition_text(value) for name, value in path_columns.items()},
            # Whether floats are not-a-number is only in the rows.
            statistics=statistics_of(parquet.metadata, file_schema, floats),
        )
        batch = pa.record_batch({"file": [file.model_dump_json()]})
        # A table refers to whole files: the part ends between two of them.
        if self._budget.has_begun and not self._budget.has_room(file.rows, split.length):
            self._remainder = split
            return
        self._budget.take(file.rows, split.length)
        yield batch, Decoded(batch)


class FilesInPlace:
    """Takes the batches of an `InPlaceReader`: nothing is written, and nothing is to be removed."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._files: list[WrittenFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take what is known of some files."""
        self._files += _files(batch)

    def finish(self) -> Sequence[WrittenFile]:
        """The files, in their order."""
        return self._files

    def discard(self) -> None:
        """The files are the user's."""


def _files(batch: pa.RecordBatch) -> list[WrittenFile]:
    texts = batch.column("file").to_pylist()
    return [WrittenFile.model_validate_json(text) for text in texts]


def _differs(path: str, problem: str, expected: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        "a file cannot be added to a table as it is (writeCopy=never)",
        path,
        problem,
        expected,
        "Without writeCopy=never the rows of all files are written with the types of the "
        "schema; or give writeSchema the columns that the files have.",
    )

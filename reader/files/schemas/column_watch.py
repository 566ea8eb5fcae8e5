"""Looks at the metadata of a file for columns that the schema does not have, before it is read.

For formats that say what their columns are; JSON and CSV find out while they parse.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ..evolution.new_columns import NewColumnsSeen, refuse_unrelated, unknown_part, written
from ..evolution.type_growth import added_or_widened, aligned, grown
from ..formats.api import Decoded, FileFormat, FormatContext, Splittability
from ..formats.registry import make_format
from ..options import ReaderOptions
from ..values.column_fitter import ColumnFitter


class ColumnWatch:
    """Decides how a file is decoded that may have more columns than the schema."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions, context: FormatContext) -> None:
        self._schema = schema
        self._options = options
        self._context = context
        self._mode = options.mode_of_evolution
        name = options.rescued_data_column
        rescues = bool(name) and name in schema.names
        self._watches = self._mode.stops or rescues
        self._known: tuple[pa.DataType, pa.Schema, FileFormat | None] | None = None

    def format_for(self, file: FileVersion, plain: FileFormat, data: pa.Schema) -> FileFormat:
        """Return the decoder of `file`: `plain`, or one that keeps what else is in it.

        Args:
            file: about to be read.
            plain: the decoder of `data`.
            data: the columns of the schema that are not in the file's path.

        Raises:
            NewColumnsSeen: the file has more columns, and that stops the query.
        """
        if not (self._watches and plain.says_columns):
            return plain
        # No bytes of content: the formats that say their columns have them in metadata.
        columns = plain.columns_of(file, self._options, 0)
        # Files of one source mostly have the same columns.
        if self._known is None or self._known[:2] != (columns, data):
            self._known = columns, data, self._keeping(file, columns, data)
        return self._known[2] or plain

    def _keeping(
        self, file: FileVersion, file_columns: pa.DataType, data: pa.Schema
    ) -> FileFormat | None:
        if file_columns.num_fields and all(field.name.startswith("_col") for field in file_columns):
            return None  # Columns of Hive's ORC go by their place.
        columns = pa.schema(list(aligned(file_columns, pa.struct(list(self._schema)))))
        names = [name for name in data.names if name != self._options.rescued_data_column]
        accept = self._options.accept_unrelated_files
        refuse_unrelated(file.path, columns.names, names, accept=accept)
        if not added_or_widened(self._schema, columns, widen=self._mode.widens):
            return None
        if self._mode.stops:
            raise NewColumnsSeen(file.path)
        return _KeepingFormat(columns, data, self._options, self._context)


class _KeepingFormat(FileFormat):
    """Decodes all that a file has; what the schema does not have goes into one column, as JSON."""

    def __init__(
        self,
        file_schema: pa.Schema,
        data: pa.Schema,
        options: ReaderOptions,
        context: FormatContext,
    ) -> None:
        super().__init__(data, options, context)
        self._rescued = options.rescued_data_column
        kept = pa.schema([field for field in data if field.name != self._rescued])
        whole = grown(kept, file_schema, widen=False)
        self._inner = make_format(options, whole, context)
        self._more = [
            field.name
            for field in whole
            if field.name not in kept.names or kept.field(field.name).type != field.type
        ]
        self._unknown = unknown_part(pa.struct(list(kept)))
        self._fitter = ColumnFitter(data, options.time_zone or "UTC")

    @override
    def splittability(self, file: FileVersion) -> Splittability:
        return self._inner.splittability(file)

    @override
    def first_row(self, split: FileSplit) -> int:
        return self._inner.first_row(split)

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        for decoded in self._inner.decode(split):
            rows = decoded.batch.select(self._more).to_pylist()
            parts = map(self._unknown, rows)
            texts = [None if part is None else written(part, _leaf) for part in parts]
            batch = self._fitter.fit(decoded.batch, split.file.path)
            index = batch.schema.get_field_index(self._rescued)
            rescued = pa.array(texts, pa.string())
            whole = batch.set_column(index, self._rescued, rescued)
            passed_over = decoded.passed_over
            yield Decoded(whole, decoded.dropped_records, decoded.bad, passed_over=passed_over)
        self.passed_over = self._inner.passed_over


def _leaf(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    # As Spark writes bytes into JSON.
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)

"""JSON lines and JSON documents by the rules of Spark's reader.

Three paths, each of which refuses whatever it is not sure of: msgspec for flat records
(`structs.py`), pyarrow's parser with an explicit schema for nested ones, both over blocks of
whole lines; and CPython's parser with `values.py`, which is slow and exact. A refused block is
tried again a few lines at a time, so that only the lines around a bad record take the exact path.

Why pyarrow for nested records: Rust's arrow-json (arro3-io) is no faster, takes text for numbers,
cuts decimals, and accepts `01` and trailing commas, all without a word; pyarrow raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.json as pa_json
from typing_extensions import override

from .....checkpoint_meta.splits import FileSplit
from .....errors import OptionError
from ...lines import whole_content
from ...options import ReaderOptions
from ..api import Decoded
from ..columns import empty_columns
from ..records import Parsed, RecordFormat, Source, data_schema, malformed
from ..strings import is_utf8
from ..times.temporal import Temporal
from .borders import lines, lines_by, parseable, rows_by_file
from .rows import JsonRows, Row
from .structs import REFUSALS, FlatRecords
from .wire import finish, wire_schema

_SMALL = 64 * 1024
"""Size of the pieces of a refused block that the fast path tries again."""

_NOT_A_STRING = re.compile(r"Column\(/([^/)]+)\) changed from string to (?:number|boolean)")


class JsonFormat(RecordFormat):
    """Records of JSON lines, or with `multiLine` the document of each file."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        self._data = data_schema(schema, options)
        self._temporal = Temporal(options)
        try:
            self._rows = JsonRows(schema, self._data, options, self._temporal)
        except TypeError as err:
            raise OptionError("the schema cannot be read from JSON", found=str(err)) from err
        self._wire = wire_schema(self._data)
        self._flat = FlatRecords.of(self._wire, known_only=bool(options.rescued_data_column))

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        if not self.spans_lines:
            yield from super().decode(split)
            return
        try:
            data = whole_content(split.file, self.options)
        except ValueError as err:
            raise malformed(split.file.path, str(err), "a document of a bounded size") from err
        source = Source((split.file,), (0,))
        if data.strip():
            yield self._kept(self._exact([(0, data)], source))

    @override
    def parse(self, data: bytes, source: Source) -> Parsed:
        if self.options.line_sep not in ("", "\n", "\r\n", "\r"):
            return self._exact(lines_by(data, self.options.line_sep.encode()), source)
        parsed = self._fast(data, source)
        if parsed is not None:
            return parsed
        if len(data) <= _SMALL or len(source.files) > 1:
            return self._exact(lines(data), source)
        return self._piecewise(data, source)

    def _piecewise(self, data: bytes, source: Source) -> Parsed:
        """The fast path for the good pieces of a block, the exact one for the others."""
        batches, dropped, at = [], 0, 0
        while at < len(data):
            end = data.find(b"\n", at + _SMALL) + 1 or len(data)
            here = Source(source.files, source.starts, source.position + at)
            piece = data[at:end]
            parsed = self._fast(piece, here) or self._exact(lines(piece), here)
            batches.append(parsed.batch)
            dropped += parsed.dropped
            at = end
        return Parsed(pa.concat_batches(batches), dropped)

    def _fast(self, data: bytes, source: Source) -> Parsed | None:
        """Rows by a fast parser; None where they refuse or might be wrong."""
        if not parseable(data):
            return None
        parsed = self._by_msgspec(data) or self._by_pyarrow(data)
        if parsed is None:
            return None
        wire, rows = parsed
        rows_of = rows_by_file(data, source, rows)
        if rows_of is None:
            return None
        try:
            batch = self._assembled(wire, rows)
        except (ValueError, pa.ArrowException):
            return None
        return Parsed(batch, rows_of=rows_of if len(source.files) > 1 else None)

    def _by_msgspec(self, data: bytes) -> tuple[list[pa.Array], int] | None:
        if self._flat is None:
            return None
        try:
            return self._flat.columns(data)
        except (*REFUSALS, pa.ArrowException):
            return None

    def _by_pyarrow(self, data: bytes) -> tuple[list[pa.Array], int] | None:
        if self._wire is None or not is_utf8(data):
            return None
        try:
            table = self._table(data, self._wire).select(self._data.names)
        except (ValueError, pa.ArrowException):
            return None
        return [column.combine_chunks() for column in table.columns], table.num_rows

    def _table(self, data: bytes, wire: pa.Schema) -> pa.Table:
        """Parse with `wire`, without the string columns that turn out to hold something else."""
        ignored = "error" if self.options.rescued_data_column else "ignore"
        while True:
            complete = len(wire) == len(self._data)
            options = pa_json.ParseOptions(
                explicit_schema=wire,
                unexpected_field_behavior=ignored if complete else "infer",
            )
            reading = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
            try:
                table = pa_json.read_json(pa.BufferReader(data), reading, options)
            except pa.ArrowInvalid as err:
                found = _NOT_A_STRING.search(str(err))
                index = wire.get_field_index(found[1]) if found else -1
                if index < 0 or self.options.rescued_data_column:
                    raise
                wire = wire.remove(index)
                continue
            return table if complete else _with_strings(table, self._data, wire)

    def _assembled(self, wire: list[pa.Array], rows: int) -> pa.RecordBatch:
        if not len(self.schema):
            return empty_columns(self.schema, rows)
        columns = []
        for field in self.schema:
            index = self._data.get_field_index(field.name)
            if index < 0:
                columns.append(pa.nulls(rows, field.type))
            else:
                kind = self._data.field(index).type
                columns.append(finish(wire[index], kind, self._temporal))
        return pa.RecordBatch.from_arrays(columns, schema=self._rows.out_schema)

    def _exact(self, records: Iterable[tuple[int, bytes]], source: Source) -> Parsed:
        rows, dropped = list[Row](), 0
        rows_of = [0] * len(source.files)
        dropped_of = [0] * len(source.files)
        for offset, line in records:
            index = source.locate(offset)[0] if len(source.files) > 1 else 0
            found, bad = self._rows.of_record(line, _locate(source, offset))
            rows.extend(found)
            rows_of[index] += len(found)
            dropped += bad
            dropped_of[index] += bad
        batch = self._rows.batch(rows)
        return Parsed(batch, dropped, rows_of if len(source.files) > 1 else None, dropped_of)


def _with_strings(table: pa.Table, data: pa.Schema, wire: pa.Schema) -> pa.Table:
    """Inferred columns as text. Raises ValueError where their text is not what was written."""
    columns = []
    for field in data:
        index = table.schema.get_field_index(field.name)
        column = table.column(index) if index >= 0 else pa.nulls(table.num_rows, field.type)
        if wire.get_field_index(field.name) < 0:
            exact = (pa.int64(), pa.bool_(), pa.string(), pa.null())
            if column.type not in exact:
                raise ValueError(f"{column.type} does not keep how it was written")
            column = column.cast(pa.string())
        columns.append(pa.chunked_array([column]) if isinstance(column, pa.Array) else column)
    return pa.table(columns, names=data.names)


def _locate(source: Source, offset: int) -> Callable[[], str]:
    return lambda: source.locate(offset)[1]

"""JSON lines and JSON documents by the rules of Spark's reader.

Two paths. The fast one is pyarrow's parser with an explicit schema, over blocks of whole lines; it
refuses whatever it is not sure of. What it refuses is parsed again, a few lines at a time, and what
is refused again goes through CPython's parser and `json_values.py`, which are exact.

Why pyarrow: on one core, 54 MB of six-column lines took 0.23 s (235 MB/s) with it and 0.24 s
with Rust's arrow-json (arro3-io). The latter takes text for numbers, cuts decimals, and accepts
`01` and trailing commas, all without a word; pyarrow raises, so that the exact path decides.
Its one trap is a block that begins with a null record: that crashes the process, hence `_plain`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from typing_extensions import override

from ...checkpoint_meta.splits import FileSplit
from ...errors import OptionError
from ..lines import whole_content
from ..options import ReaderOptions
from .api import Decoded
from .json_rows import JsonRows, Row
from .json_wire import finish, wire_schema
from .records import Parsed, RecordFormat, Source, data_schema, malformed
from .strings import is_utf8
from .temporal import Temporal

_SMALL = 64 * 1024
"""Size of the pieces of a refused block that the fast path tries again."""

_OPENS = re.compile(rb"\s*\{")
_NOT_A_STRING = re.compile(r"Column\(/([^/)]+)\) changed from string to (?:number|boolean)")
_NULL_LINE = re.compile(rb"^\s*null\b", re.MULTILINE)


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
            lines = _split(data, self.options.line_sep.encode())
            return self._exact(lines, source)
        parsed = self._fast(data, source)
        if parsed is not None:
            return parsed
        if len(data) <= _SMALL or len(source.files) > 1:
            return self._exact(_lines(data), source)
        return self._piecewise(data, source)

    def _piecewise(self, data: bytes, source: Source) -> Parsed:
        """The fast path for the good pieces of a block, the exact one for the others."""
        batches, dropped, at = [], 0, 0
        while at < len(data):
            end = data.find(b"\n", at + _SMALL) + 1 or len(data)
            here = Source(source.files, source.starts, source.position + at)
            piece = data[at:end]
            parsed = self._fast(piece, here) or self._exact(_lines(piece), here)
            batches.append(parsed.batch)
            dropped += parsed.dropped
            at = end
        return Parsed(pa.concat_batches(batches), dropped)

    def _fast(self, data: bytes, source: Source) -> Parsed | None:
        """Rows by pyarrow's parser; None where it refuses or might be wrong."""
        if self._wire is None or not _plain(data) or not is_utf8(data):
            return None
        try:
            table = self._table(data, self._wire)
            rows_of = _rows_of(data, source, table.num_rows)
            if rows_of is None:
                return None
            batch = self._assembled(table)
        except (ValueError, pa.ArrowException):
            return None
        return Parsed(batch, rows_of=rows_of if len(source.files) > 1 else None)

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

    def _assembled(self, table: pa.Table) -> pa.RecordBatch:
        columns = []
        for field in self.schema:
            index = self._data.get_field_index(field.name)
            if index < 0:
                columns.append(pa.nulls(table.num_rows, field.type))
                continue
            column = table.column(field.name).combine_chunks()
            columns.append(finish(column, self._data.field(index).type, self._temporal))
        schema = self._rows.out_schema
        if not columns:
            return _no_columns(table.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _exact(self, lines: Any, source: Source) -> Parsed:
        rows, dropped = list[Row](), 0
        rows_of = [0] * len(source.files)
        dropped_of = [0] * len(source.files)
        for offset, line in lines:
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


def _plain(data: bytes) -> bool:
    """True if pyarrow may be given these bytes at all."""
    return _OPENS.match(data) is not None


def _no_columns(rows: int) -> pa.RecordBatch:
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing)


def _rows_of(data: bytes, source: Source, rows: int) -> list[int] | None:
    """Records of each file, if each line holds one, or nothing but blanks; None if not."""
    if len(source.files) == 1:
        # Counting two characters is all that clean data costs: every line begins an object.
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        if lines == rows and data.count(b"\n{") == lines - 1:
            return [rows]
    raw = np.frombuffer(data, np.uint8)
    feeds = np.flatnonzero(raw == 10)
    inner = feeds[:-1] if data.endswith(b"\n") else feeds
    if not (raw[inner + 1] == ord("{")).all() and _NULL_LINE.search(data):
        return None
    lines = len(feeds) + (not data.endswith(b"\n"))
    if lines == rows:
        if len(source.files) == 1:
            return [rows]
        ends = np.searchsorted(feeds, [*source.starts, len(data)])
        return [int(count) for count in np.diff(ends)]
    borders = [*source.starts, len(data)]
    counts = [
        sum(1 for line in data[a:b].split(b"\n") if line and not line.isspace())
        for a, b in pairwise(borders)
    ]
    return counts if sum(counts) == rows else None


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in data.splitlines(keepends=True) if b"\r" in data else data.split(b"\n"):
        if line and not line.isspace():
            yield offset, line
        offset += len(line) + (b"\r" not in data)


def _split(data: bytes, separator: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in data.split(separator):
        if line and not line.isspace():
            yield offset, line
        offset += len(line) + len(separator)

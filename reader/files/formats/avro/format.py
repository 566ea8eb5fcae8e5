"""Avro: cut anywhere, read from sync marker to sync marker, decoded into columns by two libraries.

pyruhvro makes columns in Rust, of most schemas (`plain_blocks.py`). fastavro is the best kept of
the Avro decoders for Python and knows all of Avro, but goes by way of Python objects: it reads the
other schemas, and says what is wrong with a block that does not decode.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import not_installed
from ...evolution.column_names import ColumnNames
from ...evolution.type_growth import retyped
from ...io.memory_bounds import too_long
from ...options import ReaderOptions
from ...values.calendar_rebase import rebase_functions
from ...values.convert import index_of
from ...values.map_nested import UUID, leaves_of, on_columns
from ...values.rows import batch_of, gc_paused
from ..api import NO_CONTEXT, Block, FormatContext, Splittability, contiguous
from ..blocks import BlockFormat, malformed, reading
from .container import MAGIC, Header, decompressor, encoded, raw_blocks, read_header
from .plain_blocks import PlainBlocks, plain_schema
from .schema import AvroSchema, Column, has_endless_arrays

_ROWS = 32_768
# The header that is made here names the marker, so any 16 bytes serve.
_SYNC = bytes(16)


class AvroFormat(BlockFormat):
    """Avro object container files.

    They may be cut at any byte, since the blocks of a split are found by their sync markers; so
    nothing of a file has to be read to plan its splits.
    """

    counts_rows = True
    checks_text = True
    what = "Avro file"

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        self._fastavro = _fastavro()
        self._known: tuple[str, _Blocks] | None = None

    def splittability(self, file: FileVersion) -> Splittability:
        """At any byte; a block belongs to the split in which it starts."""
        del file
        return Splittability.RECORDS

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        schema = AvroSchema(read_header(source).schema)
        kind = pa.struct([(name, schema.column(name).final) for name in schema.fields])
        return pa.schema(list(as_spark(kind)))

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        header = read_header(source)
        blocks = list(raw_blocks(source, header, 0, file.size, with_data=False))
        return contiguous([(block.start, block.rows) for block in blocks], file.size)

    @override
    def _blocks_in(self, split: FileSplit) -> Iterator[Block]:
        # From the split's start on, and no further than asked: a file may have a million blocks.
        with reading(split.file, self.what), self._opened(split.file) as source:
            header = read_header(source)
            for block in raw_blocks(source, header, split.start, split.end, with_data=False):
                # The first block of a file begins where the file does.
                start = 0 if block.start == header.end else block.start
                yield Block(start, block.end, block.rows)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        header = read_header(source)
        expand = decompressor(header.codec)
        decoder = self._decoder(split.file, header)
        changes = rebase_functions(decoder.schema, header.notes, self.options, split.file.path)
        pending: list[tuple[int, bytes]] = []
        rows = size = 0
        most, limit = self.options.max_record_bytes, self.options.batch_bytes // 4
        behind = split.skip
        for block in raw_blocks(source, header, split.start, split.end):
            try:
                data = expand(block.data, most)
            except ValueError as err:
                problem = f"{err}, at byte {block.start}"
                raise malformed(split.file, self.what, problem) from err
            if len(data) > most:
                where = f"byte {block.start}"
                raise too_long(split.file.path, where, self.options, what="decompressed block")
            pending.append((block.rows, data))
            rows, size = rows + block.rows, size + len(data)
            left = self.context.records_left()
            if rows >= min(_ROWS, _ROWS if left is None else left + behind) or size >= limit:
                for batch in decoder.batches(split.file, pending):
                    yield on_columns(batch, changes)
                behind = max(0, behind - rows)
                pending, rows, size = [], 0, 0
        for batch in decoder.batches(split.file, pending):
            yield on_columns(batch, changes)

    def _decoder(self, file: FileVersion, header: Header) -> _Blocks:
        # Files of one source mostly share their schema, and parsing it is most of a tiny file.
        if self._known is None or self._known[0] != header.schema:
            self._known = header.schema, self._new_decoder(file, header)
        return self._known[1]

    def _new_decoder(self, file: FileVersion, header: Header) -> _Blocks:
        try:
            schema = AvroSchema(header.schema)
            if has_endless_arrays(schema.stripped()):
                raise malformed(file, self.what, "an array whose elements take no bytes")
            names = list(schema.fields)
            column_names = ColumnNames(names)
            hits = (index_of(column_names, field.name) for field in self.schema)
            columns = {names[i]: schema.column(names[i]) for i in sorted({*hits} - {-1})}
            return _Blocks(self._fastavro, schema, columns)
        except (
            TypeError,
            KeyError,
            RecursionError,
            self._fastavro.schema.SchemaParseException,
            self._fastavro.schema.UnknownType,
        ) as err:
            raise malformed(file, self.what, f"an Avro schema that does not parse ({err})") from err


def as_spark(columns: pa.StructType) -> pa.StructType:
    """Return the columns with bytes for UUIDs on fixed, as which Spark infers them."""
    return retyped(columns, {at: pa.binary() for at, leaf in leaves_of(columns) if leaf == UUID})


class _Blocks:
    """Decodes blocks of one schema: as columns, or else as rows, then one Arrow array a column."""

    def __init__(
        self, fastavro: ModuleType, schema: AvroSchema, columns: dict[str, Column]
    ) -> None:
        self._fastavro = fastavro
        self._columns = columns
        # Decoding to another schema costs twice as much a value as decoding all of them: leaving
        # columns out only pays when most of them are.
        prune = 2 * len(columns) < len(schema.fields)
        self._reader_schema = fastavro.parse_schema(schema.stripped(columns)) if prune else None
        stripped = schema.stripped()
        plain = plain_schema(stripped) if columns else None
        places = [(list(schema.fields).index(name), c.raw) for name, c in columns.items()]
        self._plain = None if plain is None else PlainBlocks(plain, places)
        writer = json.dumps(stripped).encode()
        # The blocks are handed on uncompressed and without logical types, under a new header.
        pairs = map(_sized, (b"avro.codec", b"null", b"avro.schema", writer))
        self._head = b"".join((MAGIC, encoded(2), *pairs, encoded(0), _SYNC))
        self.schema = pa.schema([(name, column.final) for name, column in columns.items()])

    def batches(
        self, file: FileVersion, blocks: Sequence[tuple[int, bytes]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of uncompressed blocks, each with its count of rows."""
        expected = sum(rows for rows, _ in blocks)
        if not expected:
            return
        if not self._columns:
            yield batch_of(self.schema, expected)
            return
        if not any(data for _, data in blocks):
            # Rows without bytes are all the same.
            (one,) = self._records(file, [(1, b"")])
            yield from _repeated(self._batch(one), expected)
            return
        if self._plain is not None and (plain := self._plain.columns(blocks)) is not None:
            decoders = self._columns.values()
            arrays = [c.refined(array) for c, array in zip(decoders, plain, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            return
        read = 0
        for records in self._records(file, blocks):
            read += len(records)
            yield self._batch(records)
        if read != expected:
            problem = f"{read} rows in blocks that should hold {expected}"
            raise malformed(file, AvroFormat.what, problem)

    def _records(
        self, file: FileVersion, blocks: Sequence[tuple[int, bytes]]
    ) -> Iterator[list[dict[str, Any]]]:
        parts = [self._head]
        for rows, data in blocks:
            parts += (encoded(rows), _sized(data), _SYNC)
        stream = io.BytesIO(b"".join(parts))
        ready: list[dict[str, Any]] = []
        try:
            for block in self._fastavro.block_reader(stream, reader_schema=self._reader_schema):
                records = iter(block)
                while more := _taken(records, _ROWS - len(ready)):
                    ready += more
                    if len(ready) == _ROWS:
                        yield ready
                        ready = []
                # A wrong count of rows shows in what they leave over.
                if block.bytes_.read(1):
                    raise malformed(file, AvroFormat.what, "a block of more rows than it declares")
        except EOFError as err:
            # Its own text names an object in memory.
            raise malformed(file, AvroFormat.what, "a block that ends within a row") from err
        except (KeyError, IndexError, TypeError, AttributeError) as err:
            # What fastavro raises when bytes do not follow the schema; it has no class for it.
            raise malformed(
                file, AvroFormat.what, f"rows that do not follow the schema ({err})"
            ) from err
        if ready:
            yield ready

    def _batch(self, records: list[dict[str, Any]]) -> pa.RecordBatch:
        arrays = [
            column.array([record[name] for record in records])
            for name, column in self._columns.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _taken(records: Iterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    with gc_paused():
        return list(islice(records, count))


def _repeated(row: pa.RecordBatch, count: int) -> Iterator[pa.RecordBatch]:
    several = row.take(pa.array(np.zeros(min(count, _ROWS), np.int64)))
    for start in range(0, count, _ROWS):
        yield several.slice(0, min(_ROWS, count - start))


def _sized(data: bytes) -> bytes:
    return encoded(len(data)) + data


def _fastavro() -> ModuleType:
    try:
        return importlib.import_module("fastavro")
    except ImportError as err:
        raise not_installed("option fileFormat is avro", "", "fastavro", "avro") from err

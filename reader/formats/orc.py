"""ORC: cut at stripes, pruned by column; a stripe is decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import orc

from ...checkpoint_meta.splits import FileSplit, FileVersion
from ..options import ReaderOptions
from . import orc_tail
from .api import Block
from .blocks import MAX_ROWS, BlockFormat, contiguous, malformed, starting_in
from .columns import ColumnFitter, empty_columns

_NOTE = b"spark.sql.catalyst.type"
_LOCAL = pa.timestamp("us")


class OrcFormat(BlockFormat):
    """ORC files. Memory is one decoded stripe, which writers keep at 64 MiB or so.

    Where the tail cannot be parsed here (LZO, Brotli), the file is one block. ORC's plain timestamp
    is a wall clock, which hangs in `timeZone` where the schema asks for an instant, as in Spark.
    """

    what = "ORC file"

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        self._fitter = ColumnFitter(schema, options.time_zone or "UTC")

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(orc.ORCFile(source), source, file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        reader = orc.ORCFile(source)
        blocks = _layout(reader, source, split.file.size)
        paths = self._fitter.paths(_as_meant(reader.schema), split.file.path)
        chosen = starting_in(split, blocks, reader.nstripes)
        known = [block.rows for block in blocks] if len(blocks) == reader.nstripes else []
        if not paths and known:
            for stripe in chosen:
                for start in range(0, known[stripe], MAX_ROWS):
                    yield empty_columns(pa.schema([]), min(MAX_ROWS, known[stripe] - start))
            return
        read = 0
        for stripe in chosen:
            batch = reader.read_stripe(stripe, paths or None)
            read += batch.num_rows
            yield _with_local_times(batch)
        whole = reader.nrows if split.start == 0 else 0
        expected = sum(known[stripe] for stripe in chosen) if known else whole
        if read != expected:
            found = f"{read} rows where the footer says {expected}"
            raise malformed(split.file, self.what, found)


def _as_meant(found: pa.Schema) -> pa.Schema:
    """Spark writes timestamps without zone as numbers of microseconds, with a note on the column.

    Columns within structs, lists and maps carry no note that Arrow would show: those are refused.
    """
    local = [field.with_type(_LOCAL) if _is_local(field) else field for field in found]
    return pa.schema(local)


def _is_local(field: pa.Field) -> bool:
    noted: bytes = (field.metadata or {}).get(_NOTE, b"")
    return noted == b"timestamp_ntz" and bool(field.type == pa.int64())


def _with_local_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = _as_meant(batch.schema)
    arrays = [
        array.view(_LOCAL) if field.type == _LOCAL and array.type != _LOCAL else array
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch


def _layout(reader: orc.ORCFile, source: pa.NativeFile, size: int) -> list[Block]:
    try:
        found = orc_tail.stripes(source)
    except (ValueError, OSError):
        # Arrow could open the file, so it is the tail parser that does not know this kind.
        found = []
    if len(found) != reader.nstripes or sum(stripe.rows for stripe in found) != reader.nrows:
        return [Block(0, size, reader.nrows)]
    return contiguous([s.offset for s in found], [s.rows for s in found], size)

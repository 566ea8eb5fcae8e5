"""ORC: cut at stripes, pruned by column; a stripe is decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyarrow import orc

from .....checkpoint_meta.splits import FileSplit, FileVersion
from ...opening import is_local
from ...options import ReaderOptions
from ..api import Block
from ..blocks import BlockFormat, contiguous, in_bounds, malformed, opened, reading, starting_in
from ..child_process import ChildDecoder, ChildDied, Produce
from ..columns import ColumnFitter, only_rows
from . import tail

_NOTE = b"spark.sql.catalyst.type"
_LOCAL = pa.timestamp("us")


class OrcFormat(BlockFormat):
    """ORC files. Memory is one decoded stripe, which writers keep at 64 MiB or so.

    The ORC decoder within Arrow can crash on damaged stripes, so local files are decoded in a child
    process; nothing but the tail, by a parser of our own, is read in this one. ORC's plain
    timestamp is a wall clock, which hangs in `timeZone` where the schema asks for an instant.
    """

    what = "ORC file"

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        self._fitter = ColumnFitter(schema, options.time_zone or "UTC")
        produce = partial(_produce, self._fitter, options)
        self._decode: Produce = produce
        if ChildDecoder.supported:
            self._child = ChildDecoder(produce)
            self._decode = self._child.batches

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(tail.stripes(source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        if not is_local(split.file.path):
            # Object stores are read by threads, which do not live on in a child.
            yield from _stripes(self._fitter, split, source)
            return
        try:
            yield from self._decode(split)
        except ChildDied as err:
            raise malformed(split.file, self.what, str(err)) from err


def _produce(
    fitter: ColumnFitter, options: ReaderOptions, split: FileSplit
) -> Iterator[pa.RecordBatch]:
    """The batches of a split, in pieces that go through a pipe; runs in the child."""
    with reading(split.file, OrcFormat.what), opened(split.file, options) as source:
        for batch in _stripes(fitter, split, source):
            if len(batch.schema):
                yield from in_bounds(batch, options.batch_bytes)
            else:
                yield batch


def _stripes(
    fitter: ColumnFitter, split: FileSplit, source: pa.NativeFile
) -> Iterator[pa.RecordBatch]:
    found = tail.stripes(source)
    source.seek(0)
    reader = orc.ORCFile(source)
    if found is not None and (len(found), sum(s.rows for s in found)) != (
        reader.nstripes,
        reader.nrows,
    ):
        counted = f"stripes of other than the {reader.nrows} rows of the file"
        raise malformed(split.file, OrcFormat.what, counted)
    blocks = _layout(found, split.file.size)
    paths = fitter.paths(_as_meant(reader.schema), split.file.path)
    chosen = starting_in(split, blocks, reader.nstripes)
    if found is not None and not paths:
        for stripe in chosen:
            yield from only_rows(found[stripe].rows)
        return
    read = 0
    for stripe in chosen:
        batch = reader.read_stripe(stripe, paths or None)
        read += batch.num_rows
        yield _with_local_times(batch)
    whole = reader.nrows if split.start == 0 else 0
    expected = whole if found is None else sum(found[stripe].rows for stripe in chosen)
    if read != expected:
        counted = f"{read} rows where the footer says {expected}"
        raise malformed(split.file, OrcFormat.what, counted)


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


def _layout(found: Sequence[tail.Stripe] | None, size: int) -> list[Block]:
    if found is None:
        return [Block(0, size, -1)]
    return contiguous([s.offset for s in found], [s.rows for s in found], size)

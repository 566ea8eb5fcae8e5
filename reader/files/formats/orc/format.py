"""ORC: cut at stripes, pruned by column; a stripe is decoded at a time.

What its values mean (calendar, zone, Spark's notes) becomes changes of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import orc
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....checkpoint_meta.storage.urls import is_local
from .....errors import SchemaMismatchError
from ...evolution.type_growth import SPARK_TYPES, noted_type, retyped
from ...io.memory_bounds import held_at_most, too_long
from ...options import ReaderOptions
from ...values.calendar_rebase import hybrid_calendar
from ...values.column_fitter import ColumnFitter
from ...values.map_nested import Change, Path, is_within, map_nested, on_columns
from ...values.rows import in_place_of, only_rows
from ...values.times.zones import Zone, zone_of
from ..api import NO_CONTEXT, Block, FormatContext, TimeSpan, contiguous
from ..blocks import BlockFormat, in_bounds, malformed, opened, reading, starting_in
from ..time_columns import TimeColumn, opened_at_end
from .child_process import ChildDecoder, ChildDied, Produce
from .tail import (
    DATE,
    DECIMAL,
    INSTANT,
    TIMESTAMP,
    OrcTail,
    Type,
    read_tail,
    time_span,
    with_rewritten_footer,
    writer_zone,
)

_POSITION = "_col"
_INTERVAL = SPARK_TYPES["interval day to second"]
_RANGE = "out of range for nanosecond"


class OrcFormat(BlockFormat):
    """ORC files. Memory is one decoded stripe, which writers keep at 64 MiB or so.

    The ORC decoder within Arrow can crash on damaged stripes and has no bound of its own, so it
    runs in a child process, which may take no more than `held_at_most` says; nothing but the tail,
    by a parser of our own, is read in this one. ORC's plain timestamp is a wall clock in the zone
    that its stripe names: the instant is what counts here.
    """

    counts_rows = True
    has_time_statistics = True
    what = "ORC file"

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        produce = partial(_produce, self._fitter, options)
        self._decode: Produce = produce
        # Where there is no `fork`, as on Windows, a crash of the decoder is one of the task's
        # process.
        if ChildDecoder.supported:
            self._child = ChildDecoder(produce, held_at_most(options))
            self._decode = self._child.batches

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        tail = read_tail(source)
        source.seek(0)
        schema = orc.ORCFile(source).schema
        return schema if tail is None else _inferred(schema, tail)

    @classmethod
    @override
    def time_span(
        cls, file: FileVersion, options: ReaderOptions, column: str, unit: str
    ) -> TimeSpan | None:
        with reading(file, cls.what), opened_at_end(file, options) as source:
            session = options.time_zone or "UTC"
            return time_span(source, TimeColumn(file, column, unit), session)

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(read_tail(source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._decode(split, None if is_local(split.file.path) else source)
        except ChildDied as err:
            raise malformed(split.file, self.what, str(err)) from err


def _inferred(schema: pa.Schema, tail: OrcTail) -> pa.Schema:
    """Return the schema in the types that Spark infers."""
    types: dict[Path, pa.DataType] = {}
    kinds = dict(_leaves(tail))

    def note(arrow: pa.DataType, at: Path) -> None:
        kind = kinds.get(at)
        if kind is None:
            return
        noted = noted_type(kind.type_of_spark, arrow)
        if kind.kind in (TIMESTAMP, INSTANT):
            types[at] = SPARK_TYPES["timestamp"]
        elif kind.is_local_time:
            types[at] = SPARK_TYPES["timestamp_ntz"]
        elif noted is not None:
            types[at] = noted

    for index, field in enumerate(schema):
        map_nested(field.type, note, (str(index),))
    pairs = enumerate(schema)
    return pa.schema([field.with_type(retyped(field.type, types, (str(i),))) for i, field in pairs])


def _produce(
    fitter: ColumnFitter,
    options: ReaderOptions,
    split: FileSplit,
    native_file: pa.NativeFile | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split, in pieces that go through a pipe; runs in the child."""
    opening = opened(split.file, options) if native_file is None else nullcontext(native_file)
    with reading(split.file, OrcFormat.what), opening as source:
        for batch in _stripes(fitter, options, split, source):
            if len(batch.schema):
                yield from in_bounds(batch, options.batch_bytes)
            else:
                yield batch


def _stripes(
    fitter: ColumnFitter, options: ReaderOptions, split: FileSplit, source: pa.NativeFile
) -> Iterator[pa.RecordBatch]:
    path = split.file.path
    tail = read_tail(source)
    if tail is None:
        codec = "compression with LZO or Brotli, which Arrow does not decode"
        raise malformed(split.file, OrcFormat.what, codec)
    # Arrow takes a name with a dot for a path; see `with_rewritten_footer`.
    numbered = any("." in name for kind in tail.types for name in kind.names)
    chosen = starting_in(split, _layout(tail, split.file.size), len(tail.stripes))
    zones = _zones(source, tail, chosen, options)
    # In UTC a wall clock is its instant, and the footer may stay as it is.
    instants = any(zone not in _UTC_NAMES for zone in zones.values())
    if numbered or instants:
        source = with_rewritten_footer(source, tail, numbered=numbered, instants=instants)
    source.seek(0)
    reader = orc.ORCFile(source)
    rows = sum(stripe.rows for stripe in tail.stripes)
    # What our own parser and Arrow make of the footer has to agree, or rows would be missing
    # unnoticed.
    if (len(tail.stripes), rows) != (reader.nstripes, reader.nrows):
        counted = f"stripes whose rows do not add up to the {reader.nrows} rows of the file"
        raise malformed(split.file, OrcFormat.what, counted)
    schema = _named(reader.schema, tail, fitter.schema, path)
    # The types are those of any zone, also where there is no stripe to have one.
    targets = fitter.targets(schema, path)
    changes = {
        zone: _changes(schema, tail, zone, path, targets) for zone in zones.values() or ("UTC",)
    }
    meant = _as_meant(schema, next(iter(changes.values())))
    paths = fitter.paths(meant, path)
    _refuse_unscaled(tail, schema, paths, path)
    wanted = {names[0] for names in paths}
    tops = [name for name in schema.names if name in wanted]
    shown = dict(zip(schema.names, reader.schema.names, strict=True))
    # The names below a number may still have dots, so such a column is read whole.
    parts = [(shown[names[0]], *(() if numbered else names[1:])) for names in paths]
    for index in chosen:
        stripe = tail.stripes[index]
        if not paths:
            yield from only_rows(stripe.rows)
            continue
        try:
            batch = _read(reader, index, [".".join(names) for names in parts], path)
        except MemoryError as err:
            asked = f"more than {held_at_most(options)} bytes to decode it"
            place = f"stripe {index}"
            raise too_long(path, place, options, what="stripe", found=asked) from err
        batch = batch.rename_columns(tops)
        if batch.num_rows != stripe.rows:
            counted = f"{batch.num_rows} rows where the footer says {stripe.rows}"
            raise malformed(split.file, OrcFormat.what, counted)
        yield on_columns(batch, changes[zones[index]])


def _zones(
    source: pa.NativeFile, tail: OrcTail, chosen: range, options: ReaderOptions
) -> dict[int, str]:
    """The writer's zone of each stripe; where it says none, or none matters, the session's."""
    session = options.time_zone or "UTC"
    if not any(kind.kind == TIMESTAMP for kind in tail.types):
        return dict.fromkeys(chosen, "UTC")
    return {i: writer_zone(source, tail, tail.stripes[i]) or session for i in chosen}


def _named(shown: pa.Schema, tail: OrcTail, schema: pa.Schema, path: str) -> pa.Schema:
    """Return the file's columns by their names; by the schema's where Hive says `_col0`, `_col1`.

    Raises:
        SchemaMismatchError: more columns than the schema has, so it is unknown which those are.
    """
    stored_names = names = tail.types[0].names if tail.types else ()
    if stored_names and all(name.startswith(_POSITION) for name in stored_names):
        names = tuple(schema.names)
    if len(stored_names) > len(names):
        raise SchemaMismatchError(
            "columns that are named by position do not fit the schema",
            path,
            f"{len(stored_names)} columns, {stored_names[0]} to {stored_names[-1]}",
            f"at most {len(schema)}: {', '.join(schema.names)}",
            "Give all columns of the file in .schema(...), in the order in which Hive has them.",
        )
    pairs = zip(shown, names[: len(stored_names)], strict=True)
    return pa.schema([field.with_name(name) for field, name in pairs])


def _refuse_unscaled(tail: OrcTail, schema: pa.Schema, paths: list[Path], path: str) -> None:
    wanted = frozenset(paths)
    for (index, *below), kind in _leaves(tail):
        if kind.kind != DECIMAL or kind.precision:
            continue
        at = (schema.field(int(index)).name, *below)
        if is_within(at, wanted):
            raise SchemaMismatchError(
                f"column {'.'.join(at)!r} cannot be read without loss",
                path,
                "a decimal without precision and scale, as Hive 0.11 wrote it",
                "a decimal with precision and scale",
                "Write the file again with a newer Hive or with Spark, or leave the column out.",
            )


def _read(reader: orc.ORCFile, stripe: int, columns: list[str], path: str) -> pa.RecordBatch:
    try:
        return reader.read_stripe(stripe, columns)
    except pa.ArrowInvalid as err:
        if _RANGE not in str(err):
            raise
        raise SchemaMismatchError(
            "an ORC timestamp cannot be read",
            path,
            str(err).splitlines()[0],
            "years 1677 to 2262, as Arrow decodes ORC in nanoseconds",
            "Write the column as a date, or the file as Parquet, or leave the column out.",
        ) from err


def _layout(tail: OrcTail | None, size: int) -> list[Block]:
    if tail is None:
        return [Block(0, size, 0)]  # It is refused when it is read: see `_stripes`.
    return contiguous([(stripe.offset, stripe.rows) for stripe in tail.stripes], size)


_BASE = 1_420_070_400
"""1 January 2015 in seconds, what timestamps are counted from, in any zone."""

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000
_UTC_NAMES = ("UTC", "GMT", "Etc/UTC", "Z")


def _changes(
    schema: pa.Schema, tail: OrcTail, zone: str, path: str, targets: Mapping[Path, pa.DataType]
) -> dict[str, Change]:
    """Return what is to be done with which column of a stripe that was written in `zone`.

    `schema` is the schema of the file as `with_rewritten_footer` hands it on. Timestamps come out
    as instants, or as the wall clock that was written where `targets` have no zone.

    Raises:
        SchemaMismatchError: values of the hybrid calendar in a zone that is not known.
    """
    kinds = dict(_leaves(tail))
    calendar = None if tail.is_proleptic else hybrid_calendar(zone, path)

    def leaf(arrow: pa.DataType, at: Path) -> Change | None:
        kind = kinds.get(at)
        if kind is None:
            return None
        if kind.kind == DATE:
            return calendar.dates if calendar else None
        if kind.is_local_time:
            return lambda array: array.view(pa.timestamp("us"))
        target = targets.get((name, *at[1:]))
        if kind.type_of_spark.startswith("interval") and target == _INTERVAL:
            return lambda array: array.view(_INTERVAL)
        if kind.kind != TIMESTAMP:
            return None
        offset = _BASE - zone_of(zone).instant(_BASE * 1_000_000) // 1_000_000
        rebase = calendar.instants if calendar else None
        instants = partial(_instants, offset=offset if arrow.tz else 0, rebase=rebase)
        if target is not None and pa.types.is_timestamp(target) and target.tz is None:
            return lambda array: _wall_clocks(instants(array), zone_of(zone))
        return lambda array: instants(array).view(pa.timestamp("ns", "UTC"))

    changes = {}
    for index, field in enumerate(schema):
        name = field.name
        # By number, as the names may be others than in the file.
        change = map_nested(field.type, leaf, (str(index),))
        if change is not None:
            changes[field.name] = change
    return changes


def _as_meant(schema: pa.Schema, changes: dict[str, Change]) -> pa.Schema:
    """`schema` with the types that the changes lead to."""
    fields = []
    for field in schema:
        change = changes.get(field.name)
        # `pa.array` would import pandas where that is installed, in every child again.
        empty = pa.nulls(0, field.type)
        fields.append(field if change is None else field.with_type(change(empty).type))
    return pa.schema(fields)


def _instants(array: pa.Array, offset: int, rebase: Change | None) -> pa.Array:
    """Stored timestamps as instants; `offset` is the writer's zone's from UTC in 2015."""
    # The zone of the type is dropped only.
    plain = array.view(pa.timestamp("ns"))
    plain = _moved(plain, offset) if offset else plain
    return plain if rebase is None else rebase(plain)


def _wall_clocks(instants: pa.Array, zone: Zone) -> pa.Array:
    """Return what the writer's clock showed."""
    numbers = instants.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    microseconds, finer = np.divmod(numbers, 1000)
    return in_place_of(instants, zone.wall_clocks(microseconds) * 1000 + finer, instants.type)


def _moved(array: pa.Array, offset: int) -> pa.Array:
    """Timestamps counted from 2015 in the writer's zone, that were taken as counted in UTC.

    Writers cut seconds towards zero, and readers put that right where a fraction shows it. The
    boundary between is 1970 in UTC, not in the writer's zone: undo it there, do it here.
    """
    numbers = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds, fraction = np.divmod(numbers, _SECOND)
    cut = fraction >= _MILLISECOND
    seconds = seconds + (cut & (seconds < 0)) - offset
    seconds = seconds - (cut & (seconds < 0))
    return in_place_of(array, seconds * _SECOND + fraction, array.type)


def _leaves(tail: OrcTail) -> Iterator[tuple[Path, Type]]:
    """Types without children, by path: the column's number, then names as in Arrow's types."""
    if not tail.types:
        return
    stack: list[tuple[Path, int]] = [
        ((str(i),), child) for i, child in enumerate(tail.types[0].children)
    ]
    while stack:
        at, index = stack.pop()
        kind = tail.types[index] if index < len(tail.types) else None
        # Deeper than there are types: the tree has a circle.
        if kind is None or len(at) > len(tail.types):
            raise ValueError("types in the ORC footer that do not form a tree")
        if not kind.children:
            yield at, kind
        # Lists and maps have children without names.
        names = kind.names or {1: ("element",), 2: ("key", "value")}.get(len(kind.children), ())
        stack += [((*at, name), child) for name, child in zip(names, kind.children, strict=False)]

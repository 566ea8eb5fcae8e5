"""Files and ranges of files as Arrow columns: the form in which they are kept and written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from ..documents.serializer import VersionedSerializer
from .file_split import FileSplit, FileVersion, SampledFile

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
WordT = TypeVar("WordT", np.int64, np.uint64)

_FILE = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("modified", pa.int64()),
    ("etag", pa.string()),
]
FILES = pa.schema(_FILE)
"""One version of a file a row."""

_BOUNDS = ("start", "end", "skip", "read_bytes", "replaces")
RANGES = pa.schema(
    [
        *_FILE,
        *((name, pa.int64()) for name in (*_BOUNDS, "sample")),
        ("digest", pa.string()),
    ]
)
"""One range of a file a row, in the fields of `FileSplit`, with the sample of its file and the
digest of its content."""

CHANGES = pa.schema([*RANGES, ("known", pa.bool_()), ("withdrawn", pa.bool_())])
"""What a checkpoint says of a range that it did not assign.

The bytes from `start` to `end` became pending, or with `withdrawn` are pending no longer. With
`known` this version of the file is known from now on, as taken up to `end`; a row without bytes
says nothing else. Of several such rows of one file the last one counts. A row of no file and with
a `digest` says that this is known, or with `withdrawn` that it is not known any more.
"""


TIMES = pa.schema([("event_time", pa.int64()), ("event_time_of", pa.string())])
"""More columns of `CHANGES`, of queries that take event times from the statistics of files.

Null where nothing is remembered of the file.
"""

TIMED_CHANGES = pa.schema([*CHANGES, *TIMES])


def file_columns(files: Sequence[FileVersion]) -> list[pa.Array]:
    """The columns of `FILES`."""
    return [pa.array([file[at] for file in files], field.type) for at, field in enumerate(FILES)]


def files_of(files: Sequence[FileVersion]) -> pa.RecordBatch:
    """Versions of files as rows of `FILES`."""
    return pa.record_batch(file_columns(files), schema=FILES)


def versions_of_rows(files: pa.RecordBatch) -> list[FileVersion]:
    """Rows of `FILES` as versions of files."""
    return list(map(FileVersion, *(files.column(name).to_pylist() for name in FILES.names)))


def ranges_of(splits: Sequence[FileSplit]) -> pa.RecordBatch:
    """Splits as rows of `RANGES`."""
    columns = file_columns([split.file for split in splits])
    columns += [pa.array([getattr(s, name) for s in splits], pa.int64()) for name in _BOUNDS]
    columns.append(pa.array([split.file.sample for split in splits], pa.int64()))
    columns.append(pa.array([split.file.digest for split in splits], pa.string()))
    return pa.record_batch(columns, schema=RANGES)


def splits_in(ranges: pa.RecordBatch) -> list[FileSplit]:
    """Rows of `RANGES` as splits."""
    *columns, samples = [_column(ranges, name).to_pylist() for name in RANGES.names[:-1]]
    contents = _column(ranges, "digest")
    files = map(FileVersion, *columns[:4])
    if any(samples) or has_text(contents):
        files = map(SampledFile.of, files, samples, contents.to_pylist())
    return list(map(FileSplit, files, *columns[4:]))


def with_bounds(
    files: pa.RecordBatch,
    start: Numbers,
    end: Numbers,
    replaces: Numbers | None = None,
    contents: Sequence[str] = (),
) -> pa.RecordBatch:
    """Rows of `FILES` (or of `RANGES`, whose bounds they lose) as rows of `RANGES`."""
    columns = [files.column(name) for name in FILES.names]
    none = np.zeros(len(start), np.int64)
    replaces = none if replaces is None else replaces
    columns += map(numbers_array, (start, end, none, none, replaces, none))
    columns.append(pa.array(contents, pa.string()) if contents else _no_text(len(start)))
    return pa.record_batch(columns, schema=RANGES)


def changes_of(
    ranges: pa.RecordBatch, *, known: bool = False, withdrawn: bool = False
) -> pa.RecordBatch:
    """Rows of `RANGES` as rows of `CHANGES`."""
    flags = [pa.repeat(pa.scalar(flag, pa.bool_()), ranges.num_rows) for flag in (known, withdrawn)]
    return pa.record_batch([*ranges.columns, *flags], schema=CHANGES)


def with_times(changes: pa.RecordBatch, times: Sequence[pa.Array] | None = None) -> pa.RecordBatch:
    """Rows of `CHANGES` as rows of `TIMED_CHANGES`; `times` are the columns of `TIMES`."""
    if changes.schema.equals(TIMED_CHANGES):
        return changes
    times = times or [pa.nulls(changes.num_rows, field.type) for field in TIMES]
    return pa.record_batch([*changes.columns, *times], schema=TIMED_CHANGES)


def has_times(changes: pa.RecordBatch) -> bool:
    """True for rows of `TIMED_CHANGES`."""
    return TIMES.names[0] in changes.schema.names


def ranges_in(batch: pa.RecordBatch, chosen: Flags | None = None) -> pa.RecordBatch:
    """The columns of `RANGES` alone, of the rows that are chosen."""
    ranges = pa.record_batch([_column(batch, name) for name in RANGES.names], schema=RANGES)
    if chosen is None or chosen.all():
        return ranges
    # By position: a mask from numpy would go through pyarrow's conversion, which imports pandas.
    return ranges.take(numbers_array(np.flatnonzero(chosen)))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of `CHANGES`; zeros or no text where a file of version 1 is older than it."""
    at = batch.schema.get_field_index(name)
    if at >= 0:
        return batch.column(at)
    count = batch.num_rows
    return _no_text(count) if name == "digest" else numbers_array(np.zeros(count, np.int64))


def _no_text(count: int) -> pa.Array:
    return pa.repeat(pa.scalar("", pa.string()), count)


def all_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `CHANGES`, or of `TIMED_CHANGES`, as every release has written them."""
    schema = TIMED_CHANGES if has_times(batch) else CHANGES
    return pa.record_batch([_column(batch, name) for name in schema.names], schema=schema)


def became_pending(changes: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of `CHANGES` that say so, as rows of `RANGES`."""
    return ranges_in(changes, becomes_pending(changes))


def becomes_pending(changes: pa.RecordBatch) -> Flags:
    """The rows of `CHANGES` that say that a range became pending, as a mask."""
    return _has_bytes(changes) & ~flags_in(changes, "withdrawn")


def is_withdrawn(changes: pa.RecordBatch) -> Flags:
    """The rows of `CHANGES` that say that a range is pending no longer, as a mask."""
    return _has_bytes(changes) & flags_in(changes, "withdrawn")


def _has_bytes(changes: pa.RecordBatch) -> Flags:
    flags: Flags = numbers_in(changes, "start") < numbers_in(changes, "end")
    return flags


def content_changes(contents: Sequence[str], *, known: bool) -> pa.RecordBatch:
    """Rows of `CHANGES` that say that these contents are known, or not any more."""
    none = np.zeros(len(contents), np.int64)
    files = files_of([FileVersion("", 0, 0)] * len(contents))
    return changes_of(with_bounds(files, none, none, contents=contents), withdrawn=not known)


def contents_in(changes: pa.RecordBatch, *, known: bool) -> list[str]:
    """The contents that rows of `CHANGES` say are known, or are not known any more."""
    return _contents(changes, ~_has_bytes(changes) & (flags_in(changes, "withdrawn") != known))


def contents_assigned(ranges: pa.RecordBatch) -> list[str]:
    """The contents of files that were assigned with these rows of `RANGES`."""
    # With its first bytes a file is taken, whatever becomes of the rest.
    start, skip = (_column(ranges, name) for name in ("start", "skip"))
    return _contents(ranges, (words_in(start, np.int64) == 0) & (words_in(skip, np.int64) == 0))


def _contents(batch: pa.RecordBatch, chosen: Flags) -> list[str]:
    column = _column(batch, "digest")
    if not has_text(column):
        return []
    return list(filter(None, column.take(numbers_array(np.flatnonzero(chosen))).to_pylist()))


def flags_in(batch: pa.RecordBatch, name: str) -> Flags:
    """A column of flags, none of them null."""
    column = batch.column(name)
    assert column.null_count == 0
    # Arrow stores flags as bits, and no buffer at all where a column has no rows.
    bits = np.unpackbits(np.frombuffer(column.buffers()[1] or b"", np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def numbers_array(values: Numbers) -> pa.Array:
    """A column of 64 bit numbers over the memory of `values`."""
    # pyarrow's own conversion imports numpy's masked arrays to look whether it is one.
    buffer = pa.py_buffer(np.ascontiguousarray(values, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, buffer])


def numbers_in(batch: pa.RecordBatch, name: str) -> Numbers:
    """A column of 64 bit numbers, none of them null, without a copy."""
    return words_in(batch.column(name), np.int64)


def has_text(column: pa.Array) -> bool:
    """False if a column of texts has empty ones or none alone."""
    ends: npt.NDArray[np.int32] = np.frombuffer(column.buffers()[1] or b"", np.int32)
    return bool(len(column)) and bool(ends[column.offset] != ends[column.offset + len(column)])


def words_in(column: pa.Array, kind: type[WordT]) -> npt.NDArray[WordT]:
    """Words of 64 bits, none of them null, over the memory of a column.

    pyarrow's own conversion imports pandas where there is one.
    """
    assert column.null_count == 0
    values: npt.NDArray[WordT] = np.frombuffer(column.buffers()[1] or b"", kind)
    return values[column.offset : column.offset + len(column)]


class FileSplitSerializer(VersionedSerializer[Sequence[FileSplit]]):
    """File splits as rows of `RANGES`."""

    version = 1

    # Offsets of Arrow's string columns are int32.
    def __init__(self, most_text: int = 2**31 - 1) -> None:
        """`most_text` is how many bytes of text a column of one record batch may hold."""
        self._most_text = most_text

    @override
    def serialize(self, value: Sequence[FileSplit]) -> pa.RecordBatch:
        return ranges_of(value)

    @override
    def serialize_all(self, value: Sequence[FileSplit]) -> Sequence[pa.RecordBatch]:
        # A character has at most four bytes: few states have to be measured exactly.
        if 4 * sum(len(s.file.path) + len(s.file.etag) for s in value) <= self._most_text:
            return [self.serialize(value)]
        sizes = (max(len(s.file.path.encode()), len(s.file.etag.encode())) for s in value)
        starts, total = [0], 0
        for at, size in enumerate(sizes):
            total += size
            # `at > starts[-1]`: a batch has one row at least.
            if total > self._most_text and at > starts[-1]:
                starts.append(at)
                total = size
        ends = [*starts[1:], len(value)]
        return [self.serialize(value[a:b]) for a, b in zip(starts, ends, strict=True)]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[FileSplit]:
        return splits_in(batch)

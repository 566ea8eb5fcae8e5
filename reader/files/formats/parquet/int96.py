"""INT96 timestamps as Spark reads them: from the twelve bytes, not from what Arrow makes of them.

Arrow takes the day 0 for the filling of nulls, and days and nanoseconds as unsigned, so that values
at the edges would come out as other ones without a word. So it is shown a footer in which these
columns are of twelve bytes each, as they lie in the file: eight of nanoseconds, four of the day.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...values.map_nested import Change, Path, map_nested
from ...values.rows import in_place_of
from .footer import MAGIC, Compact

_DAY = 86_400_000_000
_JULIAN_DAY_OF_1970 = np.int32(2_440_588)
_PARTS = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])

# Of Thrift's compact protocol: a field number one higher than the last, a number; and the numbers
# of `parquet.thrift` doubled, as the protocol writes what is not negative.
_SCHEMA = 2
_NEXT_NUMBER, _INT96, _FIXED_BYTES, _TWELVE = 0x15, 2 * 3, 2 * 7, 2 * 12


def paths_of(parquet: pq.ParquetFile) -> set[Path]:
    """Paths of the leaves that are INT96, which Arrow shows as timestamps without a zone."""
    kinds = [parquet.schema.column(i).physical_type for i in range(len(parquet.schema))]
    if "INT96" not in kinds:
        return set()
    paths: list[Path] = []

    def note(kind: pa.DataType, path: Path) -> None:
        del kind
        paths.append(path)

    for field in parquet.schema_arrow:
        map_nested(field.type, note, (field.name,))
    return {path for path, kind in zip(paths, kinds, strict=True) if kind == "INT96"}


def as_bytes(footer: bytes) -> pq.FileMetaData:
    """Return what Arrow makes of a footer whose INT96 columns are declared as twelve bytes each."""
    parts, done = [MAGIC], 0
    for start in _schema_elements(footer):
        if footer[start : start + 2] == bytes([_NEXT_NUMBER, _INT96]):
            length = bytes([_NEXT_NUMBER, _FIXED_BYTES, _NEXT_NUMBER, _TWELVE])
            parts += [footer[done:start], length]
            done = start + 2
            if footer[done] == _NEXT_NUMBER:
                # A length is there already.
                reader = Compact(footer, done + 1)
                reader.value(_NEXT_NUMBER & 15)
                done = reader.at
            else:
                # The number of the next field counts from the last one, which now is the length.
                parts.append(bytes([footer[done] - 0x10]))
                done += 1
    changed = b"".join([*parts, footer[done:]])
    length = (len(changed) - len(MAGIC)).to_bytes(4, "little")
    return pq.read_metadata(pa.BufferReader(changed + length + MAGIC))


def _schema_elements(footer: bytes) -> list[int]:
    """Return where each element of the schema begins in the footer."""
    reader, starts = Compact(footer), []
    for number, kind in reader.fields():
        if number != _SCHEMA:
            reader.value(kind)
            continue
        for _ in range(reader.list_header()[1]):
            starts.append(reader.at)
            reader.struct()
    return starts


def changes(schema: pa.Schema, int96: set[Path]) -> dict[str, Change]:
    """Make columns that hold twelve bytes at these paths timestamps, in microseconds."""

    def leaf(kind: pa.DataType, path: Path) -> Change | None:
        del kind
        return _timestamps if path in int96 else None

    changes_by_name = {field.name: map_nested(field.type, leaf, (field.name,)) for field in schema}
    return {name: change for name, change in changes_by_name.items() if change is not None}


def _timestamps(array: pa.FixedSizeBinaryArray) -> pa.TimestampArray:
    """Return the instants, with Spark's arithmetic: it wraps around, and cuts towards zero."""
    data = array.buffers()[1]
    parts: Any = np.frombuffer(data, _PARTS, len(array), array.offset * _PARTS.itemsize)
    nanoseconds = parts["nanoseconds"].astype(np.int64)
    microseconds = nanoseconds // 1000
    if nanoseconds.size and nanoseconds.min() < 0:
        # Spark's division cuts towards zero, numpy's goes down.
        microseconds += (nanoseconds < 0) & (nanoseconds % 1000 != 0)
    # In 32 bits, as Spark subtracts them.
    days = parts["day"] - _JULIAN_DAY_OF_1970
    return in_place_of(array, days.astype(np.int64) * _DAY + microseconds, pa.timestamp("us"))

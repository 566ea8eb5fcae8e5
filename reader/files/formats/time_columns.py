"""What reading the least and the greatest time of a file from its footer has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileVersion
from ....errors import SchemaMismatchError
from ..evolution.column_names import ColumnNames
from ..io.source_file import AsFile, RandomAccess, SourceFile
from ..options import ReaderOptions
from .api import TimeSpan

TAIL: Final = 64 * 1024
"""Bytes at the end of a file that are read at once: few footers are longer."""

# Fractions, because a nanosecond is no whole number of microseconds.
PER_UNIT: Final = {
    "s": Fraction(1_000_000),
    "ms": Fraction(1_000),
    "us": Fraction(1),
    "ns": Fraction(1, 1_000),
    "day": Fraction(86_400_000_000),
}
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column whose bounds are wanted."""

    file: FileVersion
    name: str
    unit: str
    """What integers count; empty if they are no times."""

    def index_in(self, names: Sequence[str]) -> int:
        """The column among the names of a file: this name, or else the only one in another case.

        Raises:
            SchemaMismatchError: it is not there.
        """
        places = ColumnNames(names).places_of(self.name)
        if len(places) != 1:
            raise self.unusable(f"the columns {', '.join(names[:20])}")
        return places[0]

    def per_integer(self) -> Fraction:
        """Microseconds that an integer counts.

        Raises:
            SchemaMismatchError: integers are no times.
        """
        if not self.unit:
            raise self.unusable("an integer without eventTimeUnit")
        return PER_UNIT[self.unit]

    def unusable(self, problem: str) -> SchemaMismatchError:
        """Return the error for statistics that do not say a time."""
        return SchemaMismatchError(
            "the statistics of a file contain no event time",
            self.file.path,
            problem,
            f"statistics of {self.name}: a timestamp, a date, or an integer with eventTimeUnit, "
            "not within another column",
            "Have the file written with statistics (INT96 has none: Spark writes others with "
            "spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS), set onMissingEventTime=mtime "
            "to use modification times, or use eventTimePattern.",
        )


def span_of(first: int, last: int, each: Fraction) -> TimeSpan:
    """Return the span from `first` to `last`, of which each one counts so many microseconds."""
    # Rounded outwards, so that no row is outside the span.
    return TimeSpan(first * each.numerator // each.denominator, -(-last * each // 1))


@contextmanager
def opened_at_end(file: FileVersion, options: ReaderOptions) -> Iterator[pa.NativeFile]:
    """`file` for reading its footer: one read, unless the footer is long."""
    with SourceFile(file, options.storage_options).opened() as source:
        yield pa.PythonFile(AsFile(_TailCache(source, file.size), file.size), mode="r")


class _TailCache(RandomAccess):
    def __init__(self, source: RandomAccess, size: int) -> None:
        self._source = source
        self._start = max(0, size - TAIL)
        self._tail = b""

    def read_at(self, position: int, count: int) -> bytes:
        if position < self._start:
            return self._source.read_at(position, count)
        if not self._tail:
            self._tail = self._source.read_at(self._start, TAIL)
        return self._tail[position - self._start :][:count]

    def close(self) -> None:
        self._tail = b""

"""What Spark notes in the files it writes about the calendar of their dates and timestamps.

The rules are those of Spark's own readers: files of 2.4 and earlier, and files marked as such,
keep the hybrid calendar; all other files of Spark the proleptic Gregorian one; files of other
writers what the option says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ....errors import SchemaMismatchError
from ..options import ReaderOptions, RebaseMode
from .calendar import HybridCalendar
from .map_nested import Change, Path, on_leaves

__all__ = ["Calendar", "calendar_of", "hybrid_calendar"]

_VERSION = b"org.apache.spark.version"
_ZONE = b"org.apache.spark.timeZone"
_DATES = b"org.apache.spark.legacyDateTime", b"3.0.0"
_INT96 = b"org.apache.spark.legacyINT96", b"3.1.0"


@dataclass(frozen=True, slots=True)
class Calendar:
    """How the dates and timestamps of one file are meant."""

    path: str

    dates: HybridCalendar | None
    """Of dates and timestamps; None for the proleptic Gregorian calendar, which is Spark's."""

    int96: HybridCalendar | None
    """Of timestamps that Parquet keeps in INT96."""

    refuses: bool = False
    """Whether values that differ between the calendars are an error instead."""

    def changes(
        self, schema: pa.Schema, int96: Collection[Path] = frozenset()
    ) -> dict[str, Change]:
        """What is to be done with which column; `int96` are paths of leaves that INT96 holds."""

        def leaf(found: pa.DataType, path: Path) -> Change | None:
            if pa.types.is_date32(found):
                return self.date if self.dates else None
            if not pa.types.is_timestamp(found):
                return None
            if path in int96:
                return self.int96_instant if self.int96 else None
            # Spark has never rebased timestamps without a zone.
            return self.instant if self.dates and found.tz else None

        changes = {field.name: on_leaves(field.type, leaf, (field.name,)) for field in schema}
        return {name: change for name, change in changes.items() if change is not None}

    def date(self, array: pa.Array) -> pa.Array:
        """`date32` as Spark has it."""
        return array if self.dates is None else self._checked(array, self.dates.dates(array))

    def instant(self, array: pa.Array) -> pa.Array:
        """Timestamps with a zone as Spark has them."""
        return array if self.dates is None else self._checked(array, self.dates.instants(array))

    def int96_instant(self, array: pa.Array) -> pa.Array:
        """Timestamps from INT96 as Spark has them."""
        return array if self.int96 is None else self._checked(array, self.int96.instants(array))

    def _checked(self, found: pa.Array, rebased: pa.Array) -> pa.Array:
        if self.refuses and rebased is not found:
            raise SchemaMismatchError(
                "the calendar of dates or timestamps is not known",
                self.path,
                "values before 15 October 1582, or timestamps before 1901",
                "a note of the calendar in the file, or later values",
                (
                    "Set datetimeRebaseMode and int96RebaseMode to LEGACY if the writer used "
                    "the hybrid Julian calendar (Spark 2, Hive), otherwise to CORRECTED."
                ),
            )
        return rebased


def calendar_of(notes: Mapping[bytes, bytes], options: ReaderOptions, path: str) -> Calendar | None:
    """The calendar of a file with these key-value pairs; None if nothing in it has to be rebased.

    Raises:
        SchemaMismatchError: the old calendar in a zone that is not known.
    """
    dates = _mode(notes, _DATES, options.datetime_rebase_mode)
    int96 = _mode(notes, _INT96, options.int96_rebase_mode)
    if dates is int96 is RebaseMode.CORRECTED:
        return None
    hybrid = hybrid_calendar(notes.get(_ZONE, b"").decode() or options.time_zone or "UTC", path)
    return Calendar(
        path,
        None if dates is RebaseMode.CORRECTED else hybrid,
        None if int96 is RebaseMode.CORRECTED else hybrid,
        RebaseMode.EXCEPTION in (dates, int96),
    )


def hybrid_calendar(zone: str, path: str) -> HybridCalendar:
    """The calendar of a file that was written in `zone`.

    Raises:
        SchemaMismatchError: a zone whose old rules are not known.
    """
    try:
        return HybridCalendar(zone)
    except ValueError as err:
        raise SchemaMismatchError(
            "dates and timestamps of the hybrid Julian calendar cannot be rebased",
            path,
            str(err),
            "a zone of the IANA database or an offset from UTC",
            "Set timeZone, or write the file again in the proleptic Gregorian calendar.",
        ) from err


def _mode(
    notes: Mapping[bytes, bytes], rule: tuple[bytes, bytes], otherwise: RebaseMode
) -> RebaseMode:
    mark, since = rule
    version = notes.get(_VERSION)
    if version is None:
        return otherwise
    return RebaseMode.LEGACY if version < since or mark in notes else RebaseMode.CORRECTED

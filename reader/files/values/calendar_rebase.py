"""Calendars of dates and timestamps: what Spark notes of them in files, and rebasing to today's.

The rules are those of Spark's own readers: files of 2.4 and earlier, and files marked as such,
keep the hybrid calendar; all other files of Spark the proleptic Gregorian one; files of other
writers what the option says. Until 3.0 Spark and until 4.0 Hive counted days before 15 October 1582
by the Julian calendar, and found the instants of wall clocks before 1901 with other zone rules than
today's. A date keeps its year, month and day here, an instant its wall clock in the zone that it
was written in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import SchemaMismatchError
from ..options import ReaderOptions, RebaseMode
from .map_nested import Change, Path, changes_of
from .rows import in_place_of
from .times.zones import zone_of

_VERSION = b"org.apache.spark.version"
_ZONE = b"org.apache.spark.timeZone"
_DATES = b"org.apache.spark.legacyDateTime", b"3.0.0"
_INT96 = b"org.apache.spark.legacyINT96", b"3.1.0"


def rebase_functions(
    schema: pa.Schema,
    notes: Mapping[bytes, bytes],
    options: ReaderOptions,
    path: str,
    int96: Collection[Path] = frozenset(),
) -> dict[str, Change]:
    """Return the rebase function of each column that needs one, by the file's metadata.

    `int96` are paths of leaves that INT96 holds.

    Raises:
        SchemaMismatchError: the old calendar in a zone that is not known.
    """
    dates = _mode(notes, _DATES, options.datetime_rebase_mode)
    int96_mode = _mode(notes, _INT96, options.int96_rebase_mode)
    # The usual file: nothing of it has to be looked at.
    if dates is int96_mode is RebaseMode.CORRECTED:
        return {}
    hybrid = hybrid_calendar(notes.get(_ZONE, b"").decode() or options.time_zone or "UTC", path)

    def leaf(kind: pa.DataType, at: Path) -> Change | None:
        mode = int96_mode if at in int96 else dates
        # Spark has never rebased timestamps without a zone.
        is_instant = pa.types.is_timestamp(kind) and (kind.tz or at in int96)
        if mode is RebaseMode.CORRECTED or not (is_instant or pa.types.is_date32(kind)):
            return None
        rebase = hybrid.instants if is_instant else hybrid.dates
        return _refusing(rebase, path) if mode is RebaseMode.EXCEPTION else rebase

    return changes_of(schema, leaf)


def _refusing(rebase: Change, path: str) -> Change:
    """Return an error for values that differ between the calendars."""

    def change(array: pa.Array) -> pa.Array:
        if rebase(array) is not array:
            raise SchemaMismatchError(
                "the calendar of dates or timestamps is not known",
                path,
                "values before 15 October 1582, or timestamps before 1901",
                "a note of the calendar in the file, or later values",
                (
                    "Set datetimeRebaseMode and int96RebaseMode to LEGACY if the writer used "
                    "the hybrid Julian calendar (Spark 2, Hive), otherwise to CORRECTED."
                ),
            )
        return array

    return change


def hybrid_calendar(zone: str, path: str) -> HybridCalendar:
    """Return the calendar of a file that was written in `zone`.

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
    # Versions are compared as text, as in `DataSourceUtils.getRebaseSpec`.
    return RebaseMode.LEGACY if version < since or mark in notes else RebaseMode.CORRECTED


_FIRST_GREGORIAN_DAY = -141_427
"""15 October 1582, in days since 1970."""

_JULIAN_MARCH_0 = -719_470
"""1 March of the year 0 of the Julian calendar; years from March on have their leap day last."""

_FOUR_YEARS = 1461
_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class _ZoneRules:
    """The differences of Java's older zone rules; everything in seconds."""

    offset: int
    """How far local time is from UTC before 1900, as the older rules have it."""

    amount: int
    """What is added to instants, in addition to the days of the calendar."""

    starts: tuple[int, ...] = ()
    amounts: tuple[int, ...] = ()
    """From when on which other amount is added."""


class HybridCalendar:
    """The hybrid calendar as it was kept in one time zone."""

    def __init__(self, zone: str) -> None:
        """`zone` is the one that the writer's JVM was in.

        Raises:
            ValueError: a zone whose old rules are not known.
        """
        self._rules = _rules_of(zone)
        cutover = _FIRST_GREGORIAN_DAY * _DAY - self._rules.offset
        # In Spark's table the last amount of every zone is zero.
        self._same_from = self._rules.starts[-1] if self._rules.starts else cutover

    def dates(self, array: pa.Array) -> pa.Array:
        """`date32` with the same year, month and day in the proleptic Gregorian calendar."""
        raw = array.view(pa.int32())
        if not _any_below(raw, _FIRST_GREGORIAN_DAY):
            return array
        days = _numbers(raw)
        moved = (days + _calendar_days(days)).astype(np.int32)
        return in_place_of(array, moved, array.type)

    def instants(self, array: pa.Array) -> pa.Array:
        """Timestamps of any unit with the same wall clock in the proleptic Gregorian calendar."""
        unit = _PER_SECOND[array.type.unit]
        rules = self._rules
        raw = array.view(pa.int64())
        if not _any_below(raw, self._same_from * unit):
            return array
        numbers = _numbers(raw)
        seconds = numbers // unit
        local_days = (seconds + rules.offset) // _DAY
        old = local_days < _FIRST_GREGORIAN_DAY
        amounts = np.array((rules.amount, *rules.amounts), np.int64)
        added = amounts[np.searchsorted(np.array(rules.starts, np.int64), seconds, side="right")]
        days = np.where(old, _calendar_days(local_days), 0)
        added = np.where(old, rules.amount + days * _DAY, added)
        return in_place_of(array, numbers + added * unit, array.type)


def _calendar_days(days: np.ndarray) -> np.ndarray:
    """Return what to add to a day of the Julian calendar; nothing from 15 October 1582 on."""
    year = (4 * (days - _JULIAN_MARCH_0) + 3) // _FOUR_YEARS
    # The Gregorian calendar has no leap days in full centuries but for every fourth.
    return np.where(days < _FIRST_GREGORIAN_DAY, 2 - year // 100 + year // 400, 0)


def _any_below(raw: pa.Array, bound: int) -> bool:
    # Almost all columns are done with this one look.
    lowest = pc.min(raw).as_py()
    return lowest is not None and lowest < bound


def _numbers(raw: pa.Array) -> np.ndarray:
    # With nulls, numpy would make floats of the numbers.
    return np.asarray(raw.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


@lru_cache(maxsize=64)
def _rules_of(zone: str) -> _ZoneRules:
    rules = _known_zones().get(zone)
    if rules is not None:
        return rules
    # Zones without a name are as far from UTC as ever.
    fixed = zone_of(zone).fixed
    if fixed is None:
        raise ValueError(f"the zone {zone!r}, whose rules before 1901 are not known")
    return _ZoneRules(fixed, 0)


@cache
def _known_zones() -> dict[str, _ZoneRules]:
    """Spark's table of zones; see the file's head."""
    text = files(__package__).joinpath("calendar_zones.txt").read_text("utf-8")
    rules_by_zone: dict[str, _ZoneRules] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        offset, amount, *rest = line.split()
        later = [part.split(":") for part in rest if ":" in part]
        starts, amounts = (tuple(int(pair[i]) for pair in later) for i in (0, 1))
        rules = _ZoneRules(int(offset), int(amount), starts, amounts)
        rules_by_zone |= dict.fromkeys((part for part in rest if ":" not in part), rules)
    return rules_by_zone

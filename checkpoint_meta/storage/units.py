"""Byte sizes, durations and words as users write them.

Not here: which option takes which unit; the options models use the annotated types below.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

__all__ = ["ByteSize", "LowerCase", "Milliseconds", "parse_bytes", "parse_milliseconds"]

_NUMBER_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-zA-Zµ]*)\s*\Z")
_BYTE_FACTORS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000}
_MILLISECONDS |= {"h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONG_NAMES = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}
_LONG_NAMES |= {"week": "w"}


def parse_bytes(value: Any) -> Any:
    """Read `128m`, `1g`, `1 GiB` or a plain number of bytes; powers of 1024 as in Spark."""
    if not isinstance(value, str):
        return value
    match = _NUMBER_AND_UNIT.match(value)
    if match:
        unit = match[2].lower()
        if unit not in _BYTE_FACTORS:
            unit = re.sub(r"(?<=.)i?b$|(?<=^b)ytes?$", "", unit)
        if unit in _BYTE_FACTORS:
            return int(match[1]) * 1024 ** _BYTE_FACTORS[unit]
    raise ValueError("not a size in bytes; write a number, or a number with k, m, g or t: 128m")


def parse_milliseconds(value: Any) -> Any:
    """Read `500ms`, `5 minutes`, `7d`, `interval 1 day` or a plain number of milliseconds."""
    if not isinstance(value, str):
        return value
    # Spark and Auto Loader take intervals of SQL.
    match = _NUMBER_AND_UNIT.match(re.sub(r"^\s*interval\b", "", value, flags=re.IGNORECASE))
    if match:
        unit = match[2].lower()
        unit = _LONG_NAMES.get(unit.removesuffix("s"), unit)
        if unit in _MILLISECONDS:
            return int(match[1]) * _MILLISECONDS[unit]
        if unit in ("month", "year", "months", "years"):
            raise ValueError("a duration of fixed length, which months and years are not: 30d")
    raise ValueError("not a duration; write a number with ms, s, min, h, d or w: 30s")


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


LowerCase = BeforeValidator(_lower)
"""Takes a word in any case, for an option that is one of several."""

ByteSize = Annotated[int, BeforeValidator(parse_bytes)]
"""A number of bytes; text such as `128m` is accepted."""

Milliseconds = Annotated[int, BeforeValidator(parse_milliseconds)]
"""A number of milliseconds; text such as `30s` is accepted."""

"""Byte sizes, durations and words as users write them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

__all__ = ["ByteSize", "LowerCase", "Milliseconds", "parse_bytes", "parse_milliseconds"]

_NUMBER_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-zA-Zµ]*)\s*\Z")
_DURATION = re.compile(r"(\d+)\s*([a-zA-Z]+)")
_BYTE_FACTORS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_MILLISECONDS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000}
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
            # `k`, `kb` and `kib` are one unit; `b`, `byte` and `bytes` are single bytes.
            unit = re.sub(r"(?<=.)i?b$|(?<=^b)ytes?$", "", unit)
        if unit in _BYTE_FACTORS:
            return int(match[1]) * 1024 ** _BYTE_FACTORS[unit]
    raise ValueError("a size in bytes: a number, alone or with k, m, g or t, such as 128m")


def parse_milliseconds(value: Any) -> Any:
    """Read `500ms`, `5 minutes`, `interval 1 day 2 hours` or a plain number of milliseconds."""
    if not isinstance(value, str):
        return value
    # Spark and Auto Loader take intervals of SQL, in which numbers may have quotes.
    text = re.sub(r"^\s*interval\b", "", value, flags=re.IGNORECASE).replace("'", " ").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    parts = [(int(number), _unit(name.lower())) for number, name in _DURATION.findall(text)]
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError("a duration: a number with ms, s, min, h, d or w, such as 30s")
    if any(unit in ("month", "quarter", "year") for _, unit in parts):
        raise ValueError("a duration of fixed length, which months and years are not: 30d")
    if any(unit not in _MILLISECONDS for _, unit in parts):
        raise ValueError("a duration: a number with ms, s, min, h, d or w, such as 30s")
    return sum(number * _MILLISECONDS[unit] for number, unit in parts)


def _unit(name: str) -> str:
    # `s` and `ms` are units, and no plurals.
    singular = name.removesuffix("s") if len(name) > 2 else name
    return _LONG_NAMES.get(singular, singular)


LowerCase = BeforeValidator(
    lambda value: value.strip().lower() if isinstance(value, str) else value
)
"""Takes a word in any case, for an option that is one of several."""

ByteSize = Annotated[int, BeforeValidator(parse_bytes)]
"""A number of bytes; text such as `128m` is accepted."""

Milliseconds = Annotated[int, BeforeValidator(parse_milliseconds)]
"""A number of milliseconds; text such as `30s` is accepted."""

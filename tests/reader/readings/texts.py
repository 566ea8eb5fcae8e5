"""Texts for values of a type: valid ones, almost valid ones, and odd ones."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from random import Random

import pyarrow as pa

PIECES = (
    *(" ", "\t", "+", "-", ".", ",", "e", "E", "d", "f", "L", "_", "0", "1", "9", "x", ":", "T"),
    *("\ufeff", "\u00a0", "\u0661", "\U0001d7d9", "\U0001f600", "\x00", "\x0b", "/", "'", "%"),
)
"""What an almost valid text has too much of; digits of other scripts in and outside the BMP."""

ODD = (
    *("", "null", "NaN", "-NaN", "nan", "Infinity", "-Infinity", "+Infinity", "Inf", "-Inf", "INF"),
    *("inf", "1e400", "1e-400", "0x1F", "0x1p3", "1_000", "1,000", "1,234.5", "-1,5", "true"),
    *("yes", "1d", "1f", "1L", "-0", "+0", "-", "+", ".", "1.", ".5", "00", "007", "1e5", "1E+2"),
    *("-1e-3", "aGk=", "aGk", "!!", "PST", "GMT+2", "2024", "2024-02-30", "12:34", "99999-01-01"),
    *("epoch", "\ufefftext", "\ufeff", "9" * 39, "9" * 20, "1" * 60, "0" * 40 + "1"),
    *("1e38", "1e-38", "1e-9999999"),
)
CHARACTERS = "abcXYZ019 .,;:-_/é\u4e2d\U0001f600\ufeff'"
ZONES = (
    *("", "", "", "Z", "+02:00", "-0330", "+01", " Europe/Berlin", "UTC", "PST", "GMT+2", "+18:01"),
)
MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Sept", "Oct", "Nov", "Dec"),
)


def text_of(chance: Random, data_type: pa.DataType, pattern: str = "") -> str:
    """A text for a column of this type, which may not fit it."""
    draw = chance.random()
    if draw < 0.07:
        return chance.choice(ODD)
    text = by_pattern(chance, pattern) if pattern else valid(chance, data_type)
    return mutated(chance, text) if draw > 0.87 else text


def mutated(chance: Random, text: str) -> str:
    """One character more, less or another."""
    at = chance.randint(0, len(text))
    piece = chance.choice(["", chance.choice(PIECES), chance.choice(PIECES)])
    return text[:at] + piece + text[at + chance.randint(0, 1) :]


def valid(chance: Random, data_type: pa.DataType) -> str:
    """A text that Spark reads into this type without options, mostly."""
    if pa.types.is_boolean(data_type):
        return chance.choice(["true", "false", "TRUE", "False"])
    if pa.types.is_integer(data_type):
        return str(integer(chance, data_type.bit_width))
    if pa.types.is_floating(data_type):
        return floating(chance, data_type.bit_width)
    if pa.types.is_decimal(data_type):
        return decimal(chance, data_type.precision, data_type.scale)
    if pa.types.is_date(data_type):
        return day(chance)
    if pa.types.is_timestamp(data_type):
        return day(chance) + chance.choice(["", *["T", " "] * 3]) + clock(chance)
    return "".join(chance.choices(CHARACTERS, k=chance.choice([0, 1, 2, 3, 5, 9])))


def integer(chance: Random, bits: int) -> int:
    """A number of that many bits, or just beyond, the ends more often than chance would have it."""
    edge = 1 << (bits - 1)
    near = chance.choice([0, 1, -1, edge - 1, -edge, edge, -edge - 1, 2 * edge - 1])
    return chance.choice([near, chance.randint(-edge, edge - 1), chance.randint(-99, 99)])


def floating(chance: Random, bits: int) -> str:
    """A float as programs print it, and whole numbers that a float can just not hold."""
    raw = chance.getrandbits(bits).to_bytes(bits // 8, "little")
    number = struct.unpack("<f" if bits == 32 else "<d", raw)[0]
    whole = chance.choice([16777217, 2**53 + 1, 0, 1, 5, 10**22])
    short = round(chance.uniform(-1000, 1000), chance.randint(0, 7))
    return chance.choice([repr(number), str(whole), repr(short), "-0.0", "1.1", f"{short:e}"])


def decimal(chance: Random, precision: int, scale: int) -> str:
    """Digits around what the type holds: one more, one less, grouped, with exponents."""
    before = max(0, precision - scale + chance.choice([0, 0, 0, -1, -1, 1, 12 - scale // 2, -4]))
    after = max(0, scale + chance.choice([0, 0, 0, -1, 1, 3, -scale]))
    nines = chance.random() < 0.2
    whole = "9" * before if nines else "".join(chance.choices("0123456789", k=before))
    part = "9" * after if nines else "".join(chance.choices("0123456789", k=after))
    whole = whole.lstrip("0") or "0"
    if chance.random() < 0.1:
        whole = f"{int(whole):,}"
    exponent = chance.choice([""] * 8 + ["e2", "E-3", f"e-{scale}", f"E+{scale}"])
    return chance.choice(["", "", "-"]) + whole + (f".{part}" if part else "") + exponent


def day(chance: Random) -> str:
    """A date, mostly of this century."""
    year = chance.choice([chance.randint(1970, 2040), chance.randint(1, 9999), 1582, 1900])
    month, date = chance.randint(1, 12), chance.choice([chance.randint(1, 28), 31])
    return chance.choice([f"{year:04}-{month:02}-{date:02}"] * 4 + [f"{year}-{month}-{date}"])


def clock(chance: Random) -> str:
    """A time of day with or without fraction and zone."""
    hour, minute, second = chance.randint(0, 23), chance.randint(0, 59), chance.randint(0, 59)
    digits = chance.choice([0, 0, 3, 6, 9, 1, 7])
    fraction = "." + "".join(chance.choices("0123456789", k=digits)) if digits else ""
    return f"{hour:02}:{minute:02}:{second:02}{fraction}{chance.choice(ZONES)}"


DATE_PATTERNS = ("dd.MM.yyyy", "MMM d, yyyy", "yyyyMMdd", "d MMMM yyyy", "MM/dd/yy")
TIME_PATTERNS = (
    *("yyyy-MM-dd HH:mm:ss VV", "dd/MM/yyyy hh:mm a", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
    *("d MMM yyyy H:m", "yyyy-MM-dd HH:mm:ss z", "yyyy-MM-dd HH:mm:ss.SSS O"),
    "yyyy-DDD HH:mm[:ss][ Z]",
)


def pattern_of(data_type: pa.DataType, options: Mapping[str, str]) -> str:
    """The pattern of the options for this type; empty without one."""
    if pa.types.is_date(data_type):
        return options.get("dateFormat", "")
    if pa.types.is_timestamp(data_type):
        return options.get("timestampFormat" if data_type.tz else "timestampNTZFormat", "")
    return ""


def by_pattern(chance: Random, pattern: str) -> str:
    """A text in which each letter of the pattern becomes something like what it means."""
    found = re.findall(r"'([^']*)'|(([A-Za-z])\3*)|([^A-Za-z'\[\]])", pattern)
    return "".join(quote or other or _field(chance, letters) for quote, letters, _, other in found)


def _field(chance: Random, letters: str) -> str:
    width = len(letters)
    match letters[0]:
        case "y":
            return f"{chance.randint(1950, 2050)}"[-width:]
        case "M" if width > 2:
            return chance.choice(MONTHS if width == 3 else ("January", "May", "September"))
        case "V" | "z" | "O" | "X" | "Z":
            return chance.choice(
                ["Z", "+02:00", "GMT+2", "PST", "UTC", "Europe/Berlin", "+0200", "GMT"]
            )
        case "a":
            return chance.choice(["AM", "PM", "am", "pm", "a.m.", "p.m."])
        case "D":
            return f"{chance.randint(1, 366):03}"
        case "S":
            return "".join(chance.choices("0123456789", k=width))
        case _:
            most = {"M": 12, "d": 31, "H": 23, "h": 12}.get(letters[0], 59)
            return f"{chance.randint(1, most):0{chance.choice([width, width, 2])}}"

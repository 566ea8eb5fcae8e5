"""Random CSV: schemas, options, and files that other programs could have written."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.documented import meant
from pyspark_sluice.tests.reader.readings.kinds import FIELD_NAMES, atom
from pyspark_sluice.tests.reader.readings.model import Group
from pyspark_sluice.tests.reader.readings.texts import (
    DATE_PATTERNS,
    TIME_PATTERNS,
    pattern_of,
    text_of,
)

SEPARATORS = (",", ",", ",", "\t", "\\t", "|", "||", ";", "\\|", "::")
LINE_SEPARATORS = ("", "", "", "|", "||", "\r\n", "\n", "\r", ";", "\\n", "\\t")
LOCALES = ("en-US", "en-GB", "en-DE", "en-ZA", "en-CA", "en-IN", "EN_us")
ENCODINGS = (
    *("utf-8", "UTF-8", "ISO-8859-1", "US-ASCII", "windows-1252", "UTF-16LE", "UTF-16BE", "UTF-16"),
)


def group(chance: Random, files: int) -> Group:
    """Files of one schema under options of which a few are not the default."""
    schema = _schema(chance)
    options = _options(chance)
    one = _dense if chance.random() < 0.25 else _file
    made = tuple(one(chance, schema, options) for _ in range(files))
    multi = "multiLine" in options
    bad = ("x" * 9 + options.get("sep", ",") * 40).encode() if "sep" not in options else b""
    line_end = b"" if multi or "lineSep" in options or "encoding" in options else b"\n"
    suffix = chance.choice([""] * 8 + [".gz", ".bz2"])
    return Group("csv", schema, options, made, suffix, bad=bad, line_end=line_end)


def _schema(chance: Random) -> pa.Schema:
    names = list({n.lower(): n for n in chance.sample(FIELD_NAMES, chance.randint(1, 5))}.values())
    return pa.schema([pa.field(name, atom(chance)) for name in names])


def _options(chance: Random) -> dict[str, str]:
    drawn = {
        "sep": chance.choice(SEPARATORS),
        "quote": chance.choice(["'", ""]),
        "escape": chance.choice(['"', ""]),
        "lineSep": chance.choice(LINE_SEPARATORS),
        "multiLine": "true",
        "header": "true",
        "encoding": chance.choice(ENCODINGS),
        "comment": "#",
        "nullValue": chance.choice(["NA", "null", "0"]),
        "emptyValue": "E",
        "nanValue": "nan",
        "positiveInf": "Infinity",
        "ignoreLeadingWhiteSpace": "true",
        "ignoreTrailingWhiteSpace": "true",
        "locale": chance.choice(LOCALES),
        "dateFormat": chance.choice(DATE_PATTERNS),
        "timestampFormat": chance.choice(TIME_PATTERNS),
        "timestampNTZFormat": chance.choice(TIME_PATTERNS),
        "timeZone": chance.choice(["UTC", "Europe/Berlin", "America/Los_Angeles"]),
    }
    likely = {"header": 0.4, "multiLine": 0.25}
    chosen = {k: v for k, v in drawn.items() if v and chance.random() < likely.get(k, 0.12)}
    if "header" in chosen and chance.random() < 0.5:
        chosen["enforceSchema"] = "false"
    return chosen


def _file(chance: Random, schema: pa.Schema, options: dict[str, str]) -> bytes:
    sep = meant(options.get("sep", ","))
    end = options.get("lineSep", "") or chance.choice(["\n"] * 6 + ["\r\n", "\r"])
    lines = []
    if "header" in options:
        lines.append(
            sep.join(_quoted(chance, name, sep, options) for name in _header(chance, schema))
        )
    records = range(chance.randint(0, 4))
    lines += [_record(chance, schema, sep, options) for _ in records]
    for _ in range(chance.choice([0, 0, 0, 1])):
        blank = chance.choice(["", "", " ", "#c", "\ufeff", sep])
        lines.insert(chance.randint(0, len(lines)), blank)
    text = "".join(line + (end if chance.random() > 0.03 else "\r\n") for line in lines)
    if chance.random() < 0.25:
        text = text.removesuffix(end)
    mark = "\ufeff" if chance.random() < 0.04 else ""
    return (mark + text).encode(options.get("encoding", "utf-8"), "replace")


def _dense(chance: Random, schema: pa.Schema, options: dict[str, str]) -> bytes:
    """Nothing but the characters that matter: quotes, escapes, separators, blanks, line ends."""
    sep = meant(options.get("sep", ","))
    end = chance.choice(["\n", "\r\n"])
    pieces = ["a", "b", sep, sep, " ", "\t", "é", "\\", '"', '"', "'", "#"]
    if "multiLine" in options:
        pieces += [end, end]
    lines = ["".join(chance.choices(pieces, k=chance.randint(1, 14))) for _ in range(3)]
    # The parser takes files of four bytes for something else than longer ones.
    first = sep.join(schema.names) + end if "header" in options or "multiLine" in options else ""
    text = first + end.join(lines) + chance.choice(["", end])
    return text.encode(options.get("encoding", "utf-8"), "replace")


def _header(chance: Random, schema: pa.Schema) -> list[str]:
    names = [*schema.names]
    draw = chance.random()
    if draw < 0.08:
        names[chance.randrange(len(names))] = chance.choice(names)
    elif draw < 0.16:
        names.append(chance.choice([*names, "other", chance.choice(names).upper()]))
    elif draw < 0.2:
        chance.shuffle(names)
    return names


def _record(chance: Random, schema: pa.Schema, sep: str, options: dict[str, str]) -> str:
    values = []
    for kind in schema.types:
        text = text_of(chance, kind, pattern_of(kind, options))
        values.append(_quoted(chance, text, sep, options))
    draw = chance.random()
    if draw < 0.04:
        values.append("more")
    elif draw < 0.08:
        values.pop()
    elif draw < 0.11:
        at = chance.randrange(len(values))
        values[at] = chance.choice(['a"b', '"a"b', '"open', ' "q"', '"a\\"b"', '"a""b"'])
    return sep.join(values)


def _quoted(chance: Random, text: str, sep: str, options: dict[str, str]) -> str:
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    if "multiLine" in options and chance.random() < 0.05:
        text += chance.choice(["\n", "\r\n", "\r"]) + "z"
    wants = any(c in text for c in sep + "\r\n" + quote) or chance.random() < 0.08
    if not quote or not wants or chance.random() < 0.03:
        return text
    return quote + text.replace(quote, escape + quote) + quote

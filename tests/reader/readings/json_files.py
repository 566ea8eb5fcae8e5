"""Random JSON lines and documents, nested as the schema is and otherwise."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.kinds import VARIANT, WITH_VARIANTS, fields
from pyspark_sluice.tests.reader.readings.kinds import kind as any_kind
from pyspark_sluice.tests.reader.readings.model import Group
from pyspark_sluice.tests.reader.readings.texts import (
    DATE_PATTERNS,
    ODD,
    TIME_PATTERNS,
    mutated,
    pattern_of,
    text_of,
)

ENCODINGS = ("utf-8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32BE", "ISO-8859-1")
ALLOWED = (
    *("allowComments", "allowUnquotedFieldNames", "allowNumericLeadingZeros"),
    *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars"),
)
RAW = (
    *("null", "true", "false", "0", "-0", "1", "-1.5", "1e2", "1e400", "NaN", "-INF", "01", "+1"),
    *("[]", "{}", "[1]", '{"a":1}', '"x"', '""', "tru", "1.", ".5", "'x'", "/*c*/1", '"\\ud83d"'),
    *('"a\tb"', '"\\q"', '"open', "[1,]", '{"a":1,"a":"x"}', "9" * 39, "128", "200", "2147483648"),
)
DEPTHS = (1, 5, 60, 499, 500, 998, 999, 1000, 1001, 1500)


def group(chance: Random, files: int) -> Group:
    """Files of one nested schema under options of which a few are not the default."""
    depth = chance.choice([0, 1, 2, 3])
    schema = pa.schema(fields(chance, chance.randint(1, 5), depth, WITH_VARIANTS))
    options = _options(chance)
    made = tuple(_file(chance, schema, options) for _ in range(files))
    if chance.random() < 0.06:
        # The records are those of the fields, and each is one variant as a whole.
        options["singleVariantColumn"] = "v"
        schema = pa.schema([pa.field("v", VARIANT)])
    plain = "multiLine" not in options and "lineSep" not in options and "encoding" not in options
    suffix = chance.choice([""] * 8 + [".gz", ".bz2"])
    line_end = b"\n" if plain else b""
    return Group("json", schema, options, made, suffix, bad=b'{"a":tru', line_end=line_end)


def _options(chance: Random) -> dict[str, str]:
    drawn = {
        "lineSep": chance.choice(["|", "\n", "\r\n", "||", "\\n", "}{"]),
        "multiLine": "true",
        "encoding": chance.choice(ENCODINGS),
        "dateFormat": chance.choice(DATE_PATTERNS),
        "timestampFormat": chance.choice(TIME_PATTERNS),
        "timestampNTZFormat": chance.choice(TIME_PATTERNS),
        "timeZone": chance.choice(["UTC", "Europe/Berlin", "America/Los_Angeles"]),
        "locale": chance.choice(["en-US", "en-GB", "en-DE", "en-CA"]),
        "allowNonNumericNumbers": "false",
        "allowSingleQuotes": "false",
        **dict.fromkeys(ALLOWED, "true"),
    }
    likely = {"multiLine": 0.3, "lineSep": 0.06, "encoding": 0.06}
    chosen = {k: v for k, v in drawn.items() if chance.random() < likely.get(k, 0.08)}
    if chosen.get("encoding", "utf-8") not in ("utf-8", "ISO-8859-1") and "multiLine" not in chosen:
        # Spark cannot find lines in them without knowing what ends one.
        chosen["lineSep"] = "\n"
    return chosen


def _file(chance: Random, schema: pa.Schema, options: dict[str, str]) -> bytes:
    end = options.get("lineSep", "") or chance.choice(["\n"] * 6 + ["\r\n", "\r"])
    records = [_record(chance, schema, options) for _ in range(chance.randint(1, 4))]
    if "multiLine" in options:
        text = _document(chance, records)
    else:
        text = "".join(r + (end if chance.random() > 0.04 else "") for r in records)
        text = text.removesuffix(end) if chance.random() < 0.4 else text
    if chance.random() < 0.12:
        text = chance.choice([end, " ", end + end, "\ufeff", " " + end]) + text
    return text.encode(options.get("encoding", "utf-8"), "replace")


def _document(chance: Random, records: list[str]) -> str:
    if chance.random() < 0.4:
        return records[0] + chance.choice(["", "\n", " ", "\r\n"])
    gap = chance.choice(["", "\n", " "])
    return "[" + gap + f"{gap},{gap}".join(records) + gap + "]" + chance.choice(["", "\n"])


def _record(chance: Random, schema: pa.Schema, options: dict[str, str]) -> str:
    draw = chance.random()
    if draw < 0.04:
        return chance.choice([*RAW, "", "[{}]", "[{},{}]", "{", "}", '{"a":1', "\ufeff"])
    text = _object(chance, [*schema], options)
    return mutated(chance, text) if draw > 0.93 else text


def _object(chance: Random, wanted: list[pa.Field], options: dict[str, str]) -> str:
    chosen = [field for field in wanted if chance.random() < 0.85]
    chance.shuffle(chosen)
    pairs = [(field.name, _value(chance, field.type, options)) for field in chosen]
    for _ in range(chance.choice([0] * 6 + [1])):
        pairs.insert(chance.randint(0, len(pairs)), _surplus(chance, wanted))
    colon = chance.choice([":"] * 4 + [" : ", ":\t"])
    parts = (
        f"{json.dumps(name, ensure_ascii=chance.random() < 0.2)}{colon}{v}" for name, v in pairs
    )
    return "{" + chance.choice([",", ",", ", "]).join(parts) + "}"


def _surplus(chance: Random, wanted: list[pa.Field]) -> tuple[str, str]:
    """A field that nobody asked for, or one of the wanted again."""
    name = chance.choice(["other", "more", *(f.name for f in wanted), wanted[0].name.upper()])
    depth = chance.choice(DEPTHS)
    deep = "[" * depth + "]" * depth
    objects = '{"k":' * depth + "1" + "}" * depth
    return name, chance.choice([chance.choice(RAW), chance.choice(RAW), deep, objects])


def _value(chance: Random, kind: pa.DataType, options: dict[str, str]) -> str:
    draw = chance.random()
    if draw < 0.05:
        return chance.choice(RAW)
    if draw < 0.1:
        return "null"
    if kind == VARIANT:
        return _of_any_kind(chance, options)
    if pa.types.is_struct(kind):
        return _object(chance, [*kind], options)
    if pa.types.is_list(kind):
        parts = [_value(chance, kind.value_type, options) for _ in range(chance.randint(0, 3))]
        return "[" + ",".join(parts) + "]"
    if pa.types.is_map(kind):
        keys = chance.choices(["k", "j", "", "é", "a.b"], k=chance.randint(0, 3))
        pairs = (f"{json.dumps(k)}:{_value(chance, kind.item_type, options)}" for k in keys)
        return "{" + ",".join(pairs) + "}"
    return _atom(chance, kind, options)


def _of_any_kind(chance: Random, options: dict[str, str]) -> str:
    """For a variant: values of all types, nested, and numbers at the ends of their types."""
    kind = any_kind(chance, chance.choice([0, 0, 1, 2, 3]))
    return chance.choice(RAW) if chance.random() < 0.1 else _value(chance, kind, options)


def _atom(chance: Random, kind: pa.DataType, options: dict[str, str]) -> str:
    text = text_of(chance, kind, pattern_of(kind, options))
    is_bare = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if is_bare or pa.types.is_decimal(kind):
        odd = not text or text in ODD
        return json.dumps(text) if chance.random() < (0.7 if odd else 0.12) else text
    return json.dumps(text, ensure_ascii=chance.random() < 0.3)

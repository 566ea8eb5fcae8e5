"""Random XML: documents over any schema, and those of the tests of XML with their odd markup."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from pyspark_sluice.tests.reader.files.formats.xml import documents
from pyspark_sluice.tests.reader.readings.kinds import ATOMS, Pool, arrow_schema, fields
from pyspark_sluice.tests.reader.readings.model import CORRUPT, Group
from pyspark_sluice.tests.reader.readings.texts import (
    DATE_PATTERNS,
    TIME_PATTERNS,
    pattern_of,
    text_of,
    valid,
)

POOL = Pool(
    tuple(kind for kind in ATOMS if kind != pa.binary()),
    (
        *("a", "b", "c", "a.b", "A-b", "\u00e4", "x", "value", "id", "_id", "_k", "_VALUE", "ns:w"),
        *("key", "element", "list", "_c0", "s", "n", "date", "r", "xs_any", "A b"),
    ),
)
LEGACY = {"useLegacyXMLParser": "true"}
"""The older of Spark's parsers reads on after a malformed record, but ignores less markup."""

ENCODINGS = ("UTF-16", "ISO-8859-1", "US-ASCII", "windows-1252")
_Write = Callable[[pa.DataType], str]


def group(chance: Random, files: int) -> Group:
    """Files of one schema: half of them as the tests of XML make them."""
    is_good = chance.random() < 0.4
    options = {"rowTag": "r", **_options(chance)}
    if chance.random() < 0.5:
        schema = arrow_schema(documents.SCHEMA)
        schema = schema.remove(schema.get_field_index(CORRUPT))
        one = documents.document if is_good else documents.spoiled_document
        made = tuple(one(chance).replace(b"<r/>", b"<r></r>") for _ in range(files))
    else:
        schema = pa.schema(fields(chance, chance.randint(1, 5), chance.choice([0, 1, 2]), POOL))
        # Only Spark's default parser looks at what a file declares.
        encoding = chance.choice(ENCODINGS) if is_good and chance.random() < 0.15 else ""
        made = tuple(_file(chance, schema, options, encoding, is_good) for _ in range(files))
    parser = {} if is_good else LEGACY
    suffix = chance.choice([""] * 8 + [".gz", ".bz2"])
    bad = b"<r><a>1</b></r>"
    return Group("xml", schema, options, made, suffix, bad=bad, line_end=b"\n", only_spark=parser)


def _options(chance: Random) -> dict[str, str]:
    drawn = {
        "nullValue": chance.choice(["", "x", "0", "NA"]),
        "ignoreSurroundingSpaces": "false",
        "attributePrefix": chance.choice(["", "n", "@"]),
        "valueTag": chance.choice(["y", "value", "text"]),
        "excludeAttribute": "true",
        "ignoreNamespace": "true",
        "wildcardColName": chance.choice(["t", "a", "s"]),
        "dateFormat": chance.choice(DATE_PATTERNS),
        "timestampFormat": chance.choice(TIME_PATTERNS),
        "timestampNTZFormat": chance.choice(TIME_PATTERNS),
        "timeZone": chance.choice(["UTC", "Europe/Berlin", "America/Los_Angeles"]),
        "locale": chance.choice(["en-US", "en-GB", "en-DE", "en-CA"]),
    }
    return {name: value for name, value in drawn.items() if chance.random() < 0.1}


def _file(
    chance: Random, schema: pa.Schema, options: dict[str, str], encoding: str, is_good: bool
) -> bytes:
    writer = _Writer(chance, options, is_good)
    between = [each for each in documents.BETWEEN if is_good or "<!" not in each]
    head = f"<?xml version='1.0' encoding='{encoding}'?>" if encoding else ""
    if not encoding and is_good:
        head = chance.choice(documents.HEADS)
    parts = [head, "<rs xmlns:ns='u'>"]
    for _ in range(chance.randrange(1, 5)):
        broken = chance.choice(documents.BROKEN) if writer.spoils(0.1) else ""
        record = writer.element("r", pa.struct([*schema]))
        parts += [record.removesuffix("</r>") + broken + "</r>" if broken else record]
        parts += [chance.choice(between), "\n"]
    return ("".join(parts) + "</rs>").encode(encoding or "utf-8", "xmlcharrefreplace")


class _Writer:
    """Writes values of a schema as elements and attributes."""

    def __init__(self, chance: Random, options: dict[str, str], is_good: bool) -> None:
        self._chance, self._options, self._is_good = chance, options, is_good
        self._prefix = options.get("attributePrefix", "_")
        self._value_tag = options.get("valueTag", "_VALUE")

    def spoils(self, likely: float) -> bool:
        """True if something wrong is wanted here."""
        return not self._is_good and self._chance.random() < likely

    def element(self, name: str, kind: pa.DataType) -> str:
        """An element of this name with a value of the type."""
        attributes, inner = "", ""
        if pa.types.is_struct(kind):
            attributes, inner = self._struct(kind)
        elif pa.types.is_map(kind):
            keys = self._chance.choices(["k", "j", "\u00e9", "a.b"], k=self._chance.randint(0, 3))
            inner = "".join(self.element(key, kind.item_type) for key in keys)
        else:
            inner = self._text(kind)
        if self.spoils(0.02):
            inner = self._chance.choice(
                ["", "x", "<b>1</b>", "<b/>t", "<!-- -->1", *documents.BROKEN]
            )
        # Spark's older parser does not see records that have nothing at all: `<r/>`.
        if not inner and name != "r" and self._chance.random() < 0.5:
            return f"<{name}{attributes}/>"
        return f"<{name}{attributes}>{inner}</{name}>"

    def _struct(self, kind: pa.DataType) -> tuple[str, str]:
        attributes, parts = dict[str, str](), list[str]()
        for field in kind:
            if self._chance.random() < 0.15 or " " in field.name:
                continue
            is_attribute = self._prefix and field.name.startswith(self._prefix)
            if field.name == self._value_tag:
                parts.append(self._text(field.type))
            elif is_attribute and not pa.types.is_nested(field.type):
                attributes[field.name.removeprefix(self._prefix)] = self._plain(field.type)
            else:
                parts += self._elements(field)
            parts.append(self._chance.choice(["", "", "", "\n  ", "<other/>"]))
        self._chance.shuffle(parts)
        written = (f" {name}={quoteattr(text)}" for name, text in attributes.items() if name)
        return "".join(written), "".join(parts)

    def _elements(self, field: pa.Field) -> list[str]:
        kind, count = field.type, self._chance.choice([1] * 9 + [2])
        if pa.types.is_list(kind):
            kind, count = kind.value_type, self._chance.randint(0, 3)
        return [self.element(field.name, kind) for _ in range(count)]

    def _text(self, kind: pa.DataType) -> str:
        text = escape(self._plain(kind))
        if self._is_good and self._chance.random() < 0.05 and "&" not in text:
            return f"<![CDATA[{text}]]>"
        return text

    def _plain(self, kind: pa.DataType) -> str:
        """A text without the characters that XML has no way to write."""
        if pa.types.is_nested(kind):
            return ""
        pattern = pattern_of(kind, self._options)
        text = valid(self._chance, kind) if self._is_good and not pattern else ""
        text = text or text_of(self._chance, kind, pattern)
        return text.replace("\x00", "").replace("\x0b", "")

"""Documents of XML by chance: fitting a schema or not, well-formed or not; read by two readers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

LEGACY = {"useLegacyXMLParser": "true"}

SCHEMA = (
    "_id long, _k string, i int, l long, d double, f float, b boolean, s string, dec decimal(9,2), "
    "day date, at timestamp, local timestamp_ntz, n struct<_u:int,x:int,y:string,_VALUE:string,"
    "m:struct<z:array<int>,_VALUE:string>>, a array<int>, t array<string>, "
    "p array<struct<_u:string,q:int,_VALUE:string>>, e map<string,string>, _VALUE array<string>, "
    "`ns:w` int, _corrupt_record string"
)
GOOD = {
    "i": ["0", "-5", "+7", "2147483647", " 12 ", "<![CDATA[3]]>", "1<![CDATA[2]]>", "&#53;", ""],
    "l": ["9223372036854775807", "-1", "  ", "<!-- c -->4", "4<!-- c -->"],
    "d": ["1.5", "-.5", "1e3", "NaN", "-Infinity", "1,000.5", "1d", "0x1p3", "+2", "1.", "7E-3"],
    "f": ["1.1", "1e39", "16777217"],
    "b": ["true", "FALSE", "1", "0", " True "],
    "s": ["x", " y ", "", "a<b>c</b>d", "<b u='1'/>", "&lt;&amp;&gt;", "ä\U0001f600", "1<!--c-->2",
          "<![CDATA[<r>&]]>", "<?pi?>z", "a\r\nb", "<b><c>1</c> t</b><!-- -->"],
    "dec": ["1.005", "-3", "1,2", "+1e2", "1234567.89", ".5"],
    "day": ["2020-02-29", "0001-01-01", "9999-12-31"],
    "at": ["2020-01-01", "2020-01-01T10:00:00", "2020-01-01 10:00:00.123456789+02:00", "2020",
           "2020-01-01T10:00:00Z", "2020-06-01T10:00:00 Europe/Paris"],
    "local": ["2020-01-01T10:00:00", "2020-01-01"],
    "n": ["", "text", "<x>1</x>", "<x>1</x><y/>", " <y>v</y> t ", "<m/>", "<m><z>1</z><z>2</z></m>",
          "<m>t<z/></m>", "<q>0</q>", "<n><x>1</x></n>", "t<!-- -->u", "<X>4</X>"],
    "a": ["1", "", " 2 ", "<!--c-->", "+3"],
    "t": ["x", "", "<b>1</b>", " y "],
    "p": ["", "t", "<q>1</q>", "<q/>u", "<z/>"],
    "e": ["<x>1</x>", "<x>1</x><y><z>2</z></y>", "", "<x/>t", " <x>1</x>", "<x>1</x><x>2</x>"],
    "ns:w": ["1", "2"],
    "unknown": ["", "<r>nested</r>", "t", "<a><b/></a>"],
    "I": ["3"],
}  # fmt: skip
MISFIT = {
    "i": ["x", "1.0", "2147483648", "<b>1</b>", "1<b/>", "0x10", "1_0"],
    "l": ["9223372036854775808", "1 2", "\u00a01"],
    "d": ["x", "INF", "<b/>"],
    "b": ["yes", "2"],
    "dec": ["12345678.9", "x", "1d"],
    "day": ["2020-1-1", "2020-01-01T10:00", "2021-02-29", "20200101"],
    "at": ["x", "2020-13-01"],
    "local": ["2020-01-01T10:00:00Z"],
    "n": ["<x>y</x>"],
    "a": ["x", "<b/>"],
    "p": ["<q>x</q>"],
    "e": ["text"],
}
BROKEN = ["&e;", "<i>1</l>", "&", "]]>", "\x01", "<i a='1' a='2'/>", "<i a=1/>", "<1/>", "<i>"]
ATTRIBUTES = ["", "", " id='1'", ' id="7" k="x"', " k=' a&#10;b&lt;c\td '", " zz='1'", "\nk='>'\n"]
BETWEEN = [
    "", "\n", " ", "<!-- <r><i>9</i></r> -->", "text", "<![CDATA[<r/>]]>", "<?p <r/> ?>", "<rr/>",
    "<o><i>5</i></o>", "<R/>",
]  # fmt: skip
HEADS = [
    "", "<?xml version='1.0'?>\n", "\ufeff",
    "<!DOCTYPE rs [<!ENTITY q '<r/>'> <!-- ] <r/> > -->]>",
    "<?xml version='1.0' encoding='UTF-8'?><!-- <r> -->",
]  # fmt: skip


EASY = {
    name: [value for value in values if "<!" not in value and "<?" not in value]
    for name, values in GOOD.items()
}
"""What Spark's older parser reads as the newer one does."""


def record(chance: random.Random, *kinds: dict[str, list[str]]) -> str:
    """An element `r` with some fields, in any order and number."""
    attributes = chance.choice(ATTRIBUTES)
    if kinds == (GOOD,) and chance.random() < 0.05:
        return f"<r{attributes}/>"
    parts = []
    for _ in range(chance.randrange(6)):
        kind = chance.choice(kinds)
        name = chance.choice(list(kind))
        inner = chance.choice(kind[name])
        own = chance.choice(["", "", " u='5'"]) if name in ("n", "p") and kind is GOOD else ""
        tag = f"<{name}{own}/>" if not inner and chance.random() < 0.5 else ""
        parts.append(tag or f"<{name}{own}>{inner}</{name}>")
        parts.append(chance.choice(["", "", "\n  ", "text"]))
    return f"<r{attributes}>{''.join(parts)}</r>"


def document(chance: random.Random) -> bytes:
    """A document of good records."""
    parts = [chance.choice(HEADS), "<rs xmlns:ns='u'>"]
    for _ in range(chance.randrange(1, 8)):
        parts += [record(chance, GOOD), chance.choice(BETWEEN)]
    return ("".join(parts) + "</rs>").encode()


def spoiled_document(chance: random.Random) -> bytes:
    """A document of which some records do not fit, or are not well-formed."""
    parts = ["<rs>"]
    for _ in range(chance.randrange(1, 8)):
        kind = chance.randrange(3)
        if kind == 0:
            parts.append(f"<r><i>4</i>{chance.choice(BROKEN)}</r>\n")
        else:
            parts.append(record(chance, *((EASY, MISFIT) if kind == 1 else (EASY,))) + "\n")
    return ("".join(parts) + "</rs>").encode()


def written(folder: Path, contents: list[bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:03}.xml" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def of_spark(spark, folder: Path, ddl: str, **options: str) -> dict[str, list[dict[str, Any]]]:
    """Spark's rows of each file."""
    reader = spark.read.format("xml").options(**{"rowTag": "r", "timeZone": "UTC", **options})
    frame = reader.schema(ddl).load(str(folder)).select("*", "_metadata.file_name")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in frame.toArrow().to_pylist():
        rows.setdefault(row.pop("file_name"), []).append(row)
    return rows


def own_rows(path: Path, ddl: str, **options: str) -> list[dict[str, Any]]:
    given = {"fileFormat": "xml", "rowTag": "r", "timeZone": "UTC", "mode": "PERMISSIVE"}
    given |= {name: value for name, value in options.items() if name not in LEGACY}
    parse_options({"path": str(path), **given}, streaming=False)
    return read_rows([path], arrow_schema(ddl), **given)

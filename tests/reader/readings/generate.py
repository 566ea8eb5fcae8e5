"""The groups of each format, by number: the same seed gives the same files."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pyarrow as pa

from pyspark_sluice.tests.reader.readings import csv_files, json_files, xml_files
from pyspark_sluice.tests.reader.readings.model import Group

ODD_NAMES = (" ", "%", "+", "é", "#", "a b", "%20", "[x]", "{y}", "~", "&", "=", "'", "^", "中")
SCHEMA = pa.schema([pa.field("value", pa.string())])
METADATA = pa.struct([("file_path", pa.string()), ("file_name", pa.string())])
NAMED = SCHEMA.append(pa.field("_metadata", METADATA))
PIECES = (
    *("a", "b", " ", "|", "\n", "\r", "\r\n"),
    *("é", "\ufeff", "\U0001f600", "||", "\t", "\\", "\x00"),
)


def _text_files(chance: Random, files: int) -> Group:
    """Lines or whole texts, in files of odd names, of one separator, encoding and codec."""
    drawn = {
        "lineSep": chance.choice(["|", "||", "\\n", "|\n", "a", "\r", "\\t", "é", "\\r\\n"]),
        "encoding": chance.choice(["UTF-16LE", "ISO-8859-1", "US-ASCII", "UTF-16BE", "UTF-8"]),
        "wholetext": "true",
    }
    likely = {"lineSep": 0.5, "encoding": 0.3, "wholetext": 0.15}
    options = {k: v for k, v in drawn.items() if chance.random() < likely[k]}
    encoding = options.get("encoding", "utf-8")
    made = tuple(
        "".join(chance.choices(PIECES, k=chance.randint(0, 12))).encode(encoding, "replace")
        for _ in range(files)
    )
    names = tuple(chance.choice(ODD_NAMES) for _ in range(files)) if chance.random() < 0.5 else ()
    suffix = "" if names else chance.choice(["", "", "", ".gz", ".bz2", ".deflate"])
    schema = NAMED if names else SCHEMA
    return Group("text", schema, options, made, suffix, names=names)


_MAKERS = {
    "csv": csv_files.group,
    "json": json_files.group,
    "xml": xml_files.group,
    "text": _text_files,
}
FORMATS = tuple(_MAKERS)
_ENDLESS = re.compile(rb"([eE]\+?)[0-9]{4,}")
"""Spark takes minutes to hours for decimals such as 1e99999999."""


def group_of(file_format: str, seed: object, number: int, files: int) -> Group:
    """One group; its schema, options and files follow from format, seed and number."""
    chance = Random(f"{file_format} {seed} {number}")
    group = _MAKERS[file_format](chance, files)
    return replace(group, files=tuple(_ENDLESS.sub(rb"\g<1>999", data) for data in group.files))

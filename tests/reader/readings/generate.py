"""The groups of each format, by number: the same seed gives the same files."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from pyspark_sluice.tests.reader.readings import (
    block_files,
    csv_files,
    json_files,
    text_files,
    xml_files,
)
from pyspark_sluice.tests.reader.readings.model import Group

FORMATS = ("csv", "json", "xml", "text", "parquet", "orc", "avro", "arrow")


_OF_TEXT = {
    "csv": csv_files.group,
    "json": json_files.group,
    "xml": xml_files.group,
    "text": text_files.group,
}
_ENDLESS = re.compile(rb"([eE]\+?)[0-9]{4,}")
"""Spark takes minutes to hours for decimals such as 1e99999999."""


def group_of(file_format: str, seed: object, number: int, files: int) -> Group:
    """One group; its schema, options and files follow from format, seed and number."""
    chance = Random(f"{file_format} {seed} {number}")
    make = _OF_TEXT.get(file_format)
    if make is None:
        return block_files.group(chance, files, file_format)
    group = make(chance, files)
    return replace(group, files=tuple(_ENDLESS.sub(rb"\g<1>999", data) for data in group.files))

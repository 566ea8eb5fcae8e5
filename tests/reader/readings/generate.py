"""The groups of each format, by number: the same seed gives the same files."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from pyspark_sluice.tests.reader.readings import (
    csv_files,
    json_files,
    text_files,
    xml_files,
)
from pyspark_sluice.tests.reader.readings.model import Group

_MAKERS = {
    "csv": csv_files.group,
    "json": json_files.group,
    "xml": xml_files.group,
    "text": text_files.group,
}
FORMATS = tuple(_MAKERS)
_ENDLESS = re.compile(rb"([eE]\+?)[0-9]{4,}")
"""Spark takes minutes to hours for decimals such as 1e99999999."""


def group_of(file_format: str, seed: object, number: int, files: int) -> Group:
    """One group; its schema, options and files follow from format, seed and number."""
    chance = Random(f"{file_format} {seed} {number}")
    group = _MAKERS[file_format](chance, files)
    return replace(group, files=tuple(_ENDLESS.sub(rb"\g<1>999", data) for data in group.files))

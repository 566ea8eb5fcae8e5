"""The groups of each format, by number: the same seed gives the same files."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from pyspark_sluice.tests.reader.readings import (
    block_files,
    csv_files,
    json_files,
    text_files,
    xml_files,
)
from pyspark_sluice.tests.reader.readings.model import Group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("csv", "json", "xml", "text", "parquet", "orc", "avro", "arrow")


_ENDLESS = re.compile(rb"([eE]\+?)[0-9]{4,}")
"""Spark takes minutes to hours for decimals such as 1e99999999."""


def group_of(
    spark: SparkSession | None, file_format: str, seed: object, number: int, files: int
) -> Group:
    """One group; its schema, options and files follow from format, seed and number.

    Spark writes some files of Parquet and ORC.
    """
    group = _group_of(spark, file_format, seed, number, files)
    if not group.is_text:
        return group
    return replace(group, files=tuple(_ENDLESS.sub(rb"\g<1>999", data) for data in group.files))


def _group_of(
    spark: SparkSession | None, file_format: str, seed: object, number: int, files: int
) -> Group:
    chance = Random(f"{file_format} {seed} {number}")
    if file_format == "csv":
        return csv_files.group(chance, files)
    if file_format == "json":
        return json_files.group(chance, files)
    if file_format == "xml":
        return xml_files.group(chance, files)
    if file_format == "text":
        return text_files.group(chance, files)
    return block_files.group(chance, files, file_format, spark)

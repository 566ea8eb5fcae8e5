"""The groups of each format, by number: the same seed gives the same files."""

from __future__ import annotations

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


def group_of(spark: SparkSession, file_format: str, seed: object, number: int, files: int) -> Group:
    """One group; its schema, options and files follow from format, seed and number."""
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

"""XML files read by Spark and by Sluice, in values that compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.tests.reader.files.reading import read_rows
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

LEGACY = {"useLegacyXMLParser": "true"}


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

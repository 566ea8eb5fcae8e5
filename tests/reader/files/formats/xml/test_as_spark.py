"""XML of every kind, many files to one read: Spark's rows, and where the two differ on purpose.

docs/xml.md lists the differences.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.tests.reader.files.formats.xml import documents
from pyspark_sluice.tests.reader.files.reading import read_rows

pytestmark = pytest.mark.spark

CORRUPT = "_corrupt_record"
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


def arrow_schema(ddl: str) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")


def of_ours(path: Path, ddl: str, **options: str) -> list[dict[str, Any]]:
    given = {"fileFormat": "xml", "path": str(path), "rowTag": "r", "timeZone": "UTC"}
    parsed = parse_options(
        given | {"mode": "PERMISSIVE"} | {k: v for k, v in options.items() if k not in LEGACY},
        streaming=False,
    )
    chosen = parsed.model_dump(include=parsed.model_fields_set & set(type(parsed).model_fields))
    known = {k: v for k, v in chosen.items() if k not in ("path", "paths")}
    return read_rows([path], arrow_schema(ddl), **known)


def plain(value: Any) -> Any:
    """Comparable: NaN equals itself, maps go without order."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        made = [plain(inner) for inner in value]
        return sorted(made, key=repr) if made and isinstance(value[0], tuple) else made
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


def judged(rows: list[dict[str, Any]]) -> list[Any]:
    """The rows of good records, and where there are bad ones."""
    return ["bad" if row[CORRUPT] is not None else plain(row) for row in rows]


GENERATED: list[tuple[int, dict[str, str]]] = [
    (80, {}),
    (80, LEGACY),
    (40, {"ignoreSurroundingSpaces": "false"}),
    (40, {"nullValue": "1"}),
    (40, {"nullValue": ""}),
    (40, {"ignoreNamespace": "true"}),
    (40, {"excludeAttribute": "true"}),
    (40, {"valueTag": "y", "attributePrefix": "n"}),
    (40, {"wildcardColName": "t"}),
]


@pytest.mark.parametrize(
    ("count", "options"), GENERATED, ids=["-".join(each[1]) for each in GENERATED]
)
def test_generated_documents_give_spark_s_rows(spark, tmp_path, count, options):
    # Only the older of Spark's parsers goes on behind a record that is malformed.
    made = documents.spoiled_document if options is LEGACY else documents.document
    chance = random.Random(repr(options))
    contents = [made(chance) for _ in range(count)]
    paths = written(tmp_path / "in", contents)
    theirs = of_spark(spark, tmp_path / "in", documents.SCHEMA, **options)
    for path, content in zip(paths, contents, strict=True):
        ours = judged(of_ours(path, documents.SCHEMA, **options))
        assert ours == judged(theirs.get(path.name, [])), content.decode()
    bad = sum(judged(rows).count("bad") for rows in theirs.values())
    assert sum(map(len, theirs.values())) > count
    assert (bad > count // 2) == (options is LEGACY)

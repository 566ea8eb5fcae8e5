"""XML of every kind, many files to one read: Spark's rows, and where the two differ on purpose.

docs/differences.md lists the differences.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.tests.reader.files.formats.xml import documents
from pyspark_sluice.tests.reader.files.formats.xml.documents import (
    LEGACY,
    of_spark,
    own_rows,
    written,
)

CORRUPT = "_corrupt_record"


def plain(value: Any) -> Any:
    """Comparable: NaN equals itself, maps go without order, and structs without nulls."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        made = [plain(inner) for inner in value]
        return sorted(made, key=repr) if made and isinstance(value[0], tuple) else made
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


def judged(rows: list[dict[str, Any]]) -> list[Any]:
    """The rows of good records, and where there are bad ones."""
    return ["bad" if row[CORRUPT] is not None else plain(row) for row in rows]


SAMPLES = [
    b"<rs><r id='1'>t1<a>1</a>t2<b k='v'>7</b><b>8</b></r><r><c><d>2020-01-01</d></c></r></rs>",
    (
        b"<rs><r><a>1</a><b>true</b><c>2020-01-01</c><d>+5</d><e>1e5</e><f>1d</f><g> 7 </g>"
        b"<h>NaN</h><i>2020-01-01 10:00:00</i><j>2020</j><k>.5</k><m>-</m><n>1,000</n>"
        b"<o>123456789012345678901</o></r></rs>"
    ),
    (
        b"<rs><r><a>1</a><b>1</b><c>2020-01-01</c><d><x>1</x></d><f/><g>1</g><h k='1'/></r>"
        b"<r><a>1.5</a><b>x</b><c>2020-01-01T00:00:00</c><d>5</d><f><z>1</z></f>"
        b"<g k='1'>5</g></r></rs>"
    ),
    b"<rs><r><a/><b><c/></b><d>  </d><e k=''/></r></rs>",
    b"<rs><r> <a> <b>1</b> </a> t </r><r><n:x u:v='1' xmlns:n='q'>1</n:x></r></rs>",
    b"<rs><r><a><b>1</b><b>2</b></a><a><b>3</b></a></r><r><a><b>x</b></a></r></rs>",
    b"<rs><r><A>1</A><a>2</a></r></rs>",
    b"<rs><r><a>1<!-- -->2</a></r><r><a>&e;</a></r></rs>",
]


def _sorted(kind: pa.DataType) -> Any:
    """A type without the order of its fields."""
    if pa.types.is_struct(kind):
        return {field.name: _sorted(field.type) for field in kind}
    return [_sorted(kind.value_type)] if pa.types.is_list(kind) else str(kind)


def _inferred_by_spark(spark, path, options):
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = spark.read.format("xml").options(**options).load(str(path))
    return _sorted(pa.struct(list(to_arrow_schema(frame.schema, timezone="UTC"))))


def _inferred(paths, **options):
    schema = inferred_schema([*map(version, paths)], ReaderOptions(file_format="xml", **options))
    return _sorted(pa.struct([*schema]))


@pytest.mark.parametrize("exact", [True, False])
def test_columns_are_inferred_as_spark_infers_them(spark_answers, tmp_path, exact):
    paths = written(tmp_path / "in", SAMPLES)
    options = {"rowTag": "r", "inferSchema": str(exact), "mode": "DROPMALFORMED"}
    expected = spark_answers(
        lambda spark: [_inferred_by_spark(spark, path, options) for path in paths], paths, options
    )
    ours = {"row_tag": "r", "infer_column_types": exact, "mode": "DROPMALFORMED"}
    assert [_inferred([path], **ours) for path in paths] == expected


@pytest.mark.parametrize("contents", [(0, 1), (1, 0), (2, 1), (0, 3)])
def test_text_and_attributes_in_different_files_are_one_column_as_in_spark(
    spark_answers, tmp_path, contents
):
    values = (b'<p c="1">5</p>', b"<p>6</p>", b'<p c="1">5</p><p c="2">7</p>', b"<p>1.5</p>")
    paths = written(tmp_path / "in", [b"<rs><r>%s</r></rs>" % values[i] for i in contents])
    given = {"rowTag": "r", "valueTag": "text", "attributePrefix": ""}
    expected = spark_answers(
        lambda spark: _inferred_by_spark(spark, tmp_path / "in", given), paths, given
    )
    assert _inferred(paths, infer_column_types=True, **given) == expected


GENERATED: list[tuple[int, dict[str, str]]] = [
    (48, {}),
    (48, LEGACY),
    (24, {"ignoreSurroundingSpaces": "false", **LEGACY}),
    (24, {"nullValue": "x"}),
    (24, {"nullValue": ""}),
    (24, {"ignoreNamespace": "true"}),
    (24, {"excludeAttribute": "true"}),
    (24, {"valueTag": "y", "attributePrefix": "n"}),
    (24, {"wildcardColName": "t"}),
]


@pytest.mark.sample("ignoreNamespace", "valueTag-attributePrefix", why="more options")
@pytest.mark.parametrize(
    ("count", "options"), GENERATED, ids=["-".join(each[1]) for each in GENERATED]
)
def test_generated_documents_give_spark_s_rows(spark_answers, tmp_path, count, options):
    # Only the older of Spark's parsers goes on behind a record that is malformed.
    has_bad = LEGACY.keys() <= options.keys()
    made = documents.spoiled_document if has_bad else documents.document
    chance = random.Random(repr(options))
    contents = [made(chance) for _ in range(count)]
    paths = written(tmp_path / "in", contents)

    def by_spark(spark):
        rows = of_spark(spark, tmp_path / "in", documents.SCHEMA, **options)
        return [judged(rows.get(path.name, [])) for path in paths]

    theirs = spark_answers(by_spark, contents, documents.SCHEMA, options)
    for path, content, expected in zip(paths, contents, theirs, strict=True):
        assert judged(own_rows(path, documents.SCHEMA, **options)) == expected, content.decode()
    bad = sum(rows.count("bad") for rows in theirs)
    assert sum(map(len, theirs)) > count
    assert (bad > count // 2) == has_bad

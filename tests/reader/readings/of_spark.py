"""Spark's reading of a whole group: one query for all files, one more where files are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException

from pyspark_sluice.tests.answers import SparkAnswers, without_folders
from pyspark_sluice.tests.reader.readings.kinds import quoted, schema_ddl
from pyspark_sluice.tests.reader.readings.model import CORRUPT, Group, Outcome, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE = "file"
METADATA = "_metadata"
_QUICK = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
"""Some hundred paths are listed here and not by a job of their own."""

_ALONE = _QUICK | {
    "spark.sql.files.maxPartitionBytes": str(1 << 27),
    "spark.sql.files.openCostInBytes": str(1 << 27),
}


def columns_of(group: Group, mode: str) -> pa.Schema:
    """The schema that both are given: under PERMISSIVE with the column of corrupt records."""
    if mode == "PERMISSIVE" and group.has_modes:
        return group.schema.append(pa.field(CORRUPT, pa.string()))
    return group.schema


def read_by_spark(
    spark: SparkSession, group: Group, paths: Sequence[Path], mode: str, *, is_bad: bool = False
) -> list[Outcome]:
    """What Spark makes of each file; where it is to be refused, nothing else is tried first."""
    if not paths:
        return []
    reason = "the query"
    try:
        if not is_bad:
            with set_for_a_while(spark, _QUICK):
                return [*_rows(spark, group, paths, mode)]
    except Exception as error:  # noqa: BLE001 any error of Spark is its reading of the files
        reason = str(error)
    failed = _failing(spark, group, paths, mode)
    if failed is None:
        return [f"refused: {_short(reason)}"] * len(paths)
    good = [path for path in paths if path.name not in failed]
    rows = dict(zip(good, _rows(spark, group, good, mode) if good else [], strict=True))
    return [rows.get(path, f"refused: {failed.get(path.name)}") for path in paths]


def recorded(answers: SparkAnswers) -> Any:
    """The same by Spark's recorded answers."""

    def read(group: Group, paths: Sequence[Path], mode: str, *, is_bad: bool = False) -> Any:
        files = [(path.name, group.files[int(path.name[:5])]) for path in paths]
        asked = (group.schema.to_string(), *map(dict, (group.options, group.only_spark)))

        def by_spark(spark: SparkSession) -> Any:
            outcomes = read_by_spark(spark, group, paths, mode, is_bad=is_bad)
            return _replaced(outcomes, folder, "FOLDER")

        folder = str(paths[0].parent) if paths else "no folder"
        return _replaced(answers(by_spark, files, *asked, mode), "FOLDER", folder)

    return read


def _replaced(value: Any, old: str, new: str) -> Any:
    """The same outcome of files in another folder, which `_metadata` shows."""
    if isinstance(value, dict):
        return {name: _replaced(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) else value


def _frame(spark: SparkSession, group: Group, paths: Sequence[Path], mode: str) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    asked = columns_of(group, mode)
    ddl = schema_ddl(pa.schema([f for f in asked if f.name != METADATA]))
    reader = spark.read.format(group.file_format).schema(ddl)
    if group.has_modes:
        reader = reader.option("mode", mode)
    frame = reader.options(**group.options, **group.only_spark).load(
        [_literal(path) for path in paths]
    )
    schema = StructType.fromDDL(ddl)
    columns = [
        functions.col(quoted(f.name)).cast(with_bytes(f.dataType)).alias(f.name) for f in schema
    ]
    if METADATA in asked.names:
        parts = [functions.col(f"{METADATA}.{f.name}") for f in asked.field(METADATA).type]
        columns.append(functions.struct(*parts).alias(METADATA))
    return frame.select(*columns, functions.col("_metadata.file_name").alias(FILE))


def _literal(path: Path) -> str:
    """The path as Spark takes it, which would find patterns in it."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))


def _rows(spark: SparkSession, group: Group, paths: Sequence[Path], mode: str) -> list[Rows]:
    # Not `toArrow`, which fails for null in a column of variants.
    frame: Any = _frame(spark, group, paths, mode)
    table = pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))
    files = table.column(FILE).to_pylist()
    found: dict[str, Rows] = {path.name[:5]: [] for path in paths}
    for file, row in zip(files, comparable(table.drop_columns([FILE])), strict=True):
        found[file[:5]].append(row)
    return [found[path.name[:5]] for path in paths]


def _failing(
    spark: SparkSession, group: Group, paths: Sequence[Path], mode: str
) -> dict[str, str] | None:
    """The files that Spark refuses, by name; None if it refuses the query itself.

    One partition for each file, and one job for each partition: the query is planned once.
    """
    with set_for_a_while(spark, _ALONE):
        try:
            rdd = _frame(spark, group, paths, mode)._jdf.toJavaRDD()
            parts = list(rdd.partitions())
        except Exception:  # noqa: BLE001 see above
            return None
        return dict(_each_part(spark, rdd, parts, {path.name[:5]: path.name for path in paths}))


@contextmanager
def set_for_a_while(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Other settings of the session, and then those from before."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@contextmanager
def in_zones(spark: Any, session: str, machine: str) -> Iterator[None]:
    """For a while, another zone of the session and of the JVM itself."""
    zone = spark._jvm.java.util.TimeZone
    before = zone.getDefault().getID()
    with set_for_a_while(spark, {"spark.sql.session.timeZone": session}):
        zone.setDefault(zone.getTimeZone(machine))
        try:
            yield
        finally:
            zone.setDefault(zone.getTimeZone(before))


def _each_part(spark: SparkSession, rdd: Any, parts: list[Any], names: dict[str, str]) -> Any:
    gateway: Any = spark.sparkContext._gateway
    for number, part in enumerate(parts):
        files = part.files()
        own = {str(files[at].urlEncodedPath()).rpartition("/")[2][:5] for at in range(len(files))}
        index = gateway.new_array(gateway.jvm.int, 1)
        index[0] = number
        try:
            rdd.collectPartitions(index)
        except Exception as error:  # noqa: BLE001 see above
            yield from ((names[name], _short(str(error))) for name in own)


def _short(reason: str) -> str:
    """The innermost cause, without the stack and the folders of paths."""
    causes = [line for line in reason.splitlines() if line.startswith(("Caused by", "\tCaused"))]
    return without_folders(causes[-1] if causes else reason)[:160].strip()


def comparable(table: pa.Table) -> Rows:
    """Rows in which instants and days are numbers, bytes are text, floats keep their bits."""
    plain = pa.schema([pa.field(f.name, _plain_type(f.type)) for f in table.schema])
    columns = [column.cast(field.type) for column, field in zip(table.columns, plain, strict=True)]
    rows = pa.Table.from_arrays(columns, schema=plain).to_pylist()
    return [{name: _value(value) for name, value in row.items()} for row in rows]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain_type(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _plain_type(kind.item_type))
    return kind


def _value(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"value", "metadata"}:
        return _variant(value["value"], value["metadata"])
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(inner) for inner in value]
    if isinstance(value, float):
        return f"float {value!r}"
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, Decimal):
        return f"decimal {value:f}"
    if isinstance(value, bytes):
        # Spark carries bytes along that are not UTF-8; Arrow's strings cannot.
        return value.decode("utf-8", "replace")
    return value


def _variant(value: bytes, metadata: bytes) -> str:
    """What a variant holds, with the types of its values; the names' numbers do not count."""
    from pyspark.sql.types import VariantVal

    try:
        return f"variant {VariantVal(value, metadata).toPython()!r}"
    except (ArithmeticError, ValueError, RecursionError, PySparkException):
        # Days and instants that Python does not have, and a thousand levels.
        return f"variant {value.hex()} {metadata.hex()}"


def with_bytes(kind: Any) -> Any:
    """Spark's type with binary for string, so that text that is not UTF-8 can be collected."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return types.BinaryType()
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(with_bytes(kind.elementType))
    if isinstance(kind, types.MapType):
        return types.MapType(types.BinaryType(), with_bytes(kind.valueType))
    if isinstance(kind, types.StructType):
        return types.StructType([types.StructField(f.name, with_bytes(f.dataType)) for f in kind])
    return kind

"""Values in paths, and filters on them, as Spark takes both."""

# ruff: noqa: E501 - the texts of one type are on one line
import pyarrow as pa
import pytest

from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.row_filter import Predicate
from pyspark_sluice.reader.files.testing import read, read_rows, whole
from pyspark_sluice.tests.answers import RefusedBySparkError
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while

ZONE = "Europe/Berlin"
# Type -> what may be in a path, and what may not.
GOOD = {
    "string": "a|a%2Fb|a%20b|a+b|%|%zz|%4|ä|%C3%A4|1|null|a=b| x |%00|__HIVE_DEFAULT_PARTITION__",
    "int": "1|-1|+1|01|__HIVE_DEFAULT_PARTITION__|2147483647",
    "tinyint": "1|-128",
    "smallint": "32767",
    "bigint": "9223372036854775807|-9223372036854775808",
    "double": "1.5|1|1e3|NaN|Infinity|-Infinity|1d|1f| 1.5 |.5|5.|-0|1e400",
    "float": "1.1|1d|16777217|1e40",
    "decimal(5,2)": "1.25|1.255|-1.255|1|1e2|-0|+1.5|999.99",
    "decimal(38,0)": "99999999999999999999999999999999999999|0.5",
    "boolean": "true|TRUE|True|false",
    "date": "2024-01-02|2024-1-2|2024|2024-01-02 03:04:05|2024-01-02T03|+12024-01-02| 2024-01-02 |0001-01-01",
    "timestamp": "2024-01-02|2024-01-02 03:04:05|2024-01-02 03%3A04%3A05|2024-01-02 03%3A04%3A05.123456789|"
    "2024-01-02T03%3A04%3A05Z|2024-01-02 03%3A04%3A05+05%3A30|2024-01-02 03|2024-03-31 02%3A30%3A00|"
    "2024-10-27 02%3A30%3A00|2024-01-02 03%3A04%3A05 America%2FNew_York|1800-01-01|+12024-01-02",
    "timestamp_ntz": "2024-01-02|2024-01-02 03%3A04%3A05|2024-01-02T03%3A04%3A05Z",
    "binary": "a%2Fb|ab",
}  # fmt: skip
BAD = {
    "int": "| 1|1 |1.0|2147483648|x|1e3|1_000|%31",
    "bigint": "9223372036854775808",
    "double": "nan|inf|x|1_0|1dd",
    "decimal(5,2)": " 1|x|NaN",
    "boolean": "1|0|t|yes|x| true",
    "date": "x|2024-02-30|20240102",
    "timestamp": "x|2024-02-30|2024-01-02 25%3A00%3A00|2024-01-02 03%3A04%3A05 Mars",
    "string": "",
}
WRONG = [(kind, text) for kind, texts in BAD.items() for text in texts.split("|")]


def _tree(root, kind, texts):
    paths = []
    for number, text in enumerate(texts):
        directory = root / kind.replace(",", "_") / f"k={text}"
        directory.mkdir(parents=True)
        paths.append(directory / "a.json")
        paths[-1].write_text(f'{{"a":{number}}}\n')
    return paths


def _schema(kind):
    return arrow_schema(f"a int, k {kind}")


def _number(column):
    """Values that Python's types may not hold, as numbers or text."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).to_pylist()
    shown = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return [str(v) if shown and v is not None else v for v in column.to_pylist()]


def test_values_in_paths_are_those_of_sparks_partitions(spark_answers, tmp_path):
    shown = {
        "date": "unix_date(k)",
        "timestamp": "unix_micros(k)",
        "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01', k)",
    }
    trees = {kind: _tree(tmp_path, kind, texts.split("|")) for kind, texts in GOOD.items()}

    def by_spark(spark):
        with set_for_a_while(spark, {"spark.sql.session.timeZone": ZONE}):
            return {kind: numbers(spark, kind) for kind in trees}

    def numbers(spark, kind):
        frame = spark.read.schema(f"a int, k {kind}").json(str(trees[kind][0].parent.parent))
        frame = frame.orderBy("a").selectExpr(f"{shown.get(kind, 'k')} AS k")
        return _number(frame.toArrow().column("k").combine_chunks())

    expected = spark_answers(by_spark, GOOD, shown)
    for kind, paths in trees.items():
        ours, _ = read([whole(path) for path in paths], _schema(kind), time_zone=ZONE)
        found = _number(ours.column("k").combine_chunks())
        pairs = zip(GOOD[kind].split("|"), expected[kind], found, strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == [], kind


def test_spark_refuses_a_value_that_a_type_cannot_hold(spark_answers, tmp_path):
    for kind, text in dict(reversed(WRONG)).items():
        path = _tree(tmp_path / text.encode().hex(), kind, [text])[0]

        def by_spark(spark, kind=kind, path=path):
            spark.read.schema(f"a int, k {kind}").json(str(path.parent.parent)).collect()

        with pytest.raises(RefusedBySparkError, match="PARTITION"):
            spark_answers(by_spark, kind, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *WRONG,
        ("tinyint", "128"),
        ("smallint", "32768"),
        ("decimal(5,2)", "1000"),
        ("timestamp", "12%3A34"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_refused_with_directory_and_type(tmp_path, kind, text):
    path = _tree(tmp_path, kind, [text])[0]
    with pytest.raises(SchemaMismatchError, match=r"partition column 'k'.*k=.*Correct the type"):
        read_rows([path], _schema(kind))


def test_a_column_that_is_twice_in_a_path_is_refused(tmp_path):
    path = tmp_path / "k=5" / "K=6" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"a":1}\n')
    with pytest.raises(SchemaMismatchError, match=r"'k'.*twice in the path"):
        read_rows([path], _schema("int"))


# Conditions that Spark takes as well: its text and ours are the same.
LITERALS = {
    "string": "'a/b'|'1'|'ä'|''",
    "tinyint": "1|300|-128.5|-1280e-1",
    # For a literal beyond the range of int, Spark 4.3 takes a null for a smaller number here.
    "int": "1|-1|2147483647|1.5|1.0|1e0",
    "bigint": "9223372036854775807|9223372036854775806e0|9223372036854775807.5",
    "float": "1.1|1.1e0|16777217|16777216.0|1",
    "double": "1.5|0|1e3",
    "decimal(5,2)": "1.25|100|-1.26|1.255|1.25e0|99999999999999999999|0.00000000000000000001",
    "boolean": "true|false",
    "date": "'2024-01-02'|'2024'|'2024-1-2'|'+12024-01-02'|'2024-01-02 12:00:00'|DATE '2024-01-02'",
    "timestamp": "'2024-01-02'|'2024-01-02 03:04:05'|'2024-03-31 02:30:00'|'2024-01-02 03'|'2024-01-02 02:04:05Z'|"
    "'2024-10-27 02:30:00'|TIMESTAMP '2024-01-02 03:04:05'|'2024-01-02 03:04:05 CET'|DATE '2024-01-02'|DATE '2024-01-02 12:00'",
    "timestamp_ntz": "'2024-01-02'|'2024-01-02 03:04:05'|'2024-01-02T03:04:05Z'",
}  # fmt: skip


def _conditions(literals):
    values = literals.split("|")
    compared = [f"k {op} {value}" for op in ("=", "!=", "<", ">=") for value in values]
    return [*compared, "k IS NULL", "k IS NOT NULL", f"k IN ({', '.join(values)})"]


def test_filters_keep_the_files_and_the_rows_that_sparks_where_keeps(spark_answers, tmp_path):
    trees = {kind: _tree(tmp_path, kind, GOOD[kind].split("|")) for kind in LITERALS}

    def by_spark(spark):
        with set_for_a_while(spark, {"spark.sql.session.timeZone": ZONE}):
            return {kind: kept_by_spark(spark, kind) for kind in LITERALS}

    def kept_by_spark(spark, kind):
        frame = spark.read.schema(f"a int, k {kind}").json(str(trees[kind][0].parent.parent))
        conditions = _conditions(LITERALS[kind])
        asked = [f"coalesce({condition}, false)" for condition in conditions]
        rows = frame.selectExpr("a", *asked).orderBy("a").collect()
        # One text for each condition: numbers of the files whose rows are kept.
        return {
            condition: " ".join(str(row[0]) for row in rows if row[at])
            for at, condition in enumerate(conditions, 1)
        }

    expected = spark_answers(by_spark, GOOD, LITERALS)
    for kind, paths in trees.items():
        splits = [whole(path) for path in paths]
        everything, _ = read(splits, _schema(kind), time_zone=ZONE)
        for condition, numbers in expected[kind].items():
            pruned, _ = read(splits, _schema(kind), time_zone=ZONE, filter=condition)
            predicate = Predicate.parse(condition, _schema(kind), (), ZONE)
            kept = predicate.keep(everything.combine_chunks().to_batches()[0])
            for table in (pruned, kept):
                found = " ".join(map(str, table.column("a").to_pylist()))
                assert found == numbers, (kind, condition)


@pytest.mark.parametrize(
    "literal", ["'12:34'", "'x'", "'2024-02-30'", "'2024-01-02 03:04:05 Mars'"]
)
def test_a_literal_that_is_no_time_is_refused_with_its_place(literal):
    schema = pa.schema([("k", pa.timestamp("us", "UTC"))])
    with pytest.raises(OptionError, match=r"character \d+ of .*a value of type timestamp"):
        Predicate.parse(f"k > {literal}", schema)


@pytest.mark.parametrize("name", ["json", "text"])
def test_a_file_whose_path_lacks_a_partition_column_has_nulls_in_it(tmp_path, name):
    inside, outside = tmp_path / "k=5" / "a", tmp_path / "b"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_text('{"value":"x"}\n' if name == "json" else "x\n")
    schema = pa.schema([("k", pa.string()), ("value", pa.string())])
    rows = read_rows([inside, outside], schema, base_path=str(tmp_path), file_format=name)
    assert rows == [{"k": "5", "value": "x"}, {"k": None, "value": "x"}]

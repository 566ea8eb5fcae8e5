"""Schemas inferred from samples of files, with hints and partition columns."""

from __future__ import annotations

import os
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.evolution.hints import parse_columns, parse_hints, with_hints
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema, ddl_of

TEXT = pa.string()


@pytest.fixture
def infer(tmp_path):
    def inferred(contents: dict[str, bytes | str], **options) -> dict[str, pa.DataType]:
        files = []
        for number, (name, content) in enumerate(contents.items()):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            os.utime(path, (number, number))
            files.append(FileVersion(str(path), path.stat().st_size, number * 1_000_000))
        schema = inferred_schema(files, ReaderOptions(base_path=str(tmp_path), **options))
        return dict(zip(schema.names, schema.types, strict=True))

    return inferred


def _list(kind):
    return pa.list_(pa.field("element", kind))


RECORDS = (
    '{"id":1,"at":{"zip":1},"tags":[],"n":null,"e":{},"mixed":1}\n'
    "not a record\n\n"
    '{"id":2.5,"at":{"city":"x"},"tags":[{"k":true}],"mixed":"a","big":99999999999999999999}\n'
)


def test_json_is_strings_in_their_structure_unless_types_are_asked_for(infer):
    plain = infer({"a": RECORDS})
    assert plain["at"] == pa.struct([("zip", TEXT), ("city", TEXT)])
    assert plain["tags"] == _list(pa.struct([("k", TEXT)]))
    assert {plain[name] for name in ("id", "n", "e", "mixed", "big")} == {TEXT}
    typed = infer({"a": RECORDS}, infer_column_types=True)
    assert typed["id"] == pa.float64()
    assert typed["at"] == pa.struct([("zip", pa.int64()), ("city", TEXT)])
    assert typed["tags"] == _list(pa.struct([("k", pa.bool_())]))
    assert (typed["mixed"], typed["n"], typed["big"]) == (TEXT, TEXT, pa.decimal128(20, 0))


BIG = str(2**63)
BEYOND = [
    # Texts in a column, its type by Spark 4.3's inference, and by Sluice's where it takes more.
    ([BIG], pa.decimal128(19, 0), None),
    (["-" + BIG + "0"], pa.decimal128(20, 0), None),
    (["-" + BIG], pa.int64(), None),
    (["9" * 38], pa.decimal128(38, 0), None),
    (["9" * 39], pa.float64(), None),
    ([BIG, "1.5"], pa.float64(), None),
    (["1", "9" * 38], pa.decimal128(38, 0), None),
    ([BIG, "9" * 25], pa.decimal128(25, 0), None),
    ([BIG, "true"], TEXT, None),
    # Every bigint fits, not only those that were seen.
    (["1", BIG], pa.decimal128(19, 0), pa.decimal128(20, 0)),
    (["1.5", "9" * 39], pa.float64(), None),
]


def test_integers_beyond_bigint_have_the_types_that_spark_infers(spark_answers, tmp_path, infer):
    def inferred(spark):
        reader = spark.read.option("inferSchema", "true")
        return [reader.csv(str(path)).schema["_c0"].dataType.simpleString() for path in paths]

    paths = [tmp_path / str(number) for number in range(len(BEYOND))]
    for path, (texts, of_spark, ours) in zip(paths, BEYOND, strict=True):
        path.write_text("\n".join(texts))
        objects = [f'{{"_c0":{text}}}' for text in texts]
        for form, lines in (("csv", texts), ("json", objects)):
            kinds = infer({"a": "\n".join(lines)}, file_format=form, infer_column_types=True)
            assert kinds == {"_c0": ours or of_spark}, (form, texts)
    assert spark_answers(inferred, paths) == [ddl_of(kind) for _, kind, _ in BEYOND]


def test_a_document_in_single_quotes_is_read_as_the_reader_reads_it(infer):
    assert infer({"a": "[{'id': 1},\n {'b': 2}]"}, multi_line=True) == {"id": TEXT, "b": TEXT}


def test_csv_goes_by_header_and_merges_over_files(infer):
    files = {"a": "id,day,t\n1,2026-01-01,2026-01-01 00:00:00\n", "b": 'extra,id\n"x,y",5\n'}
    found = infer(files, file_format="csv", header=True, infer_column_types=True)
    instant = pa.timestamp("us", "UTC")
    assert found == {"id": pa.int64(), "day": pa.date32(), "t": instant, "extra": TEXT}
    assert infer({"c": "1,x\n2,y,z\n"}, file_format="csv") == dict.fromkeys(
        ("_c0", "_c1", "_c2"), TEXT
    )


CSV: dict[str, Any] = {"file_format": "csv", "header": True, "infer_column_types": True}
TYPED = {"id": pa.int64(), "n": TEXT, "d": pa.int64()}


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_csv_records_end_where_the_reader_ends_them(infer, odd):
    assert infer({"a": f"id,n,d\n1,x{odd}y,3\n"}, **CSV) == TYPED


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "|"])
def test_csv_over_lines_is_cut_where_the_reader_cuts_it(infer, line_break):
    long = "line\n9,9\n" * 40_000
    records = ["id,n,d", f'1,"{long}",3', "", '2,"y",4', f'5,"{long}']
    options = {**CSV, "multi_line": True, "escape": '"', "infer_sample_bytes": 700_000}
    options |= {"line_sep": line_break} if line_break == "|" else {}
    assert infer({"a": line_break.join(records)}, **options) == TYPED


def test_columns_are_in_the_path_as_well(infer):
    name = "day=2026-01-01/region=e%20u/n=__HIVE_DEFAULT_PARTITION__/a"
    assert infer({name: '{"id":1}'}, infer_column_types=True) == {
        "id": pa.int64(), "day": pa.date32(), "region": TEXT, "n": TEXT
    }  # fmt: skip
    assert infer({name: '{"id":1}'})["day"] == TEXT


def _parquet(**columns) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_parquet_files_merge_to_the_wider_type_or_name_the_column(infer):
    one = _parquet(id=pa.array([1], pa.int32()), n=pa.nulls(1))
    two = _parquet(ID=pa.array([1], pa.int64()), more=pa.array([[1]], pa.list_(pa.uint8())))
    found = infer({"1": one, "2": two}, file_format="parquet")
    assert found == {"id": pa.int64(), "more": _list(pa.int16())}
    with pytest.raises(SchemaMismatchError, match=r"column 'id'.*string.*int32.*query of their"):
        infer({"1": one, "2": _parquet(id=["x"])}, file_format="parquet")
    # The hint wins, and the reader of the other file says that its values do not fit.
    both = {"1": one, "2": _parquet(id=["x"])}
    assert infer(both, file_format="parquet", schema_hints="id string")["id"] == TEXT


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ([pa.array([Decimal("1.500")], pa.decimal128(18, 3)),
          pa.array([Decimal("2.50")], pa.decimal128(38, 2))],
         [Decimal("1.500"), Decimal("2.500")]),
        ([pa.array([bytes(15) + b"\1"], pa.uuid())], ["00000000-0000-0000-0000-000000000001"]),
        ([pa.array([5], pa.time32("s")), pa.array(["x"])], ["00:00:05.000", "x"]),
        ([pa.array([5], pa.duration("s")), pa.array([7], pa.duration("us"))],
         [timedelta(seconds=5), timedelta(microseconds=7)]),
    ],
)  # fmt: skip
def test_the_hint_that_an_error_recommends_is_read(infer, tmp_path, columns, values):
    files = {str(number): _parquet(v=column) for number, column in enumerate(columns)}
    with pytest.raises(SchemaMismatchError, match="column 'v'") as refused:
        infer(files, file_format="parquet")
    hint = str(refused.value).partition("schemaHints='")[2].partition("'")[0]
    schema = pa.schema(infer(files, file_format="parquet", schema_hints=hint).items())
    rows = read_rows([tmp_path / name for name in files], schema, file_format="parquet")
    assert [row["v"] for row in rows] == values


def test_a_hint_on_a_field_of_a_struct_decides_where_spark_has_no_type(infer):
    inner = pa.array([{"t": 1, "u": 2}], pa.struct([("t", pa.time64("us")), ("u", pa.int8())]))
    found = infer({"1": _parquet(s=inner)}, file_format="parquet", schema_hints="S.T string")
    assert found == {"s": pa.struct([("t", TEXT), ("u", pa.int8())])}


def test_the_sample_is_the_oldest_files_and_bounded_in_bytes(infer):
    files = {name: f'{{"{name}": 1}}\n' for name in "abc"}
    assert list(infer(files, infer_sample_files=2)) == ["a", "b"]
    long = {"a": '{"x": 1}\n' * 20_000 + '{"late": 1}\n'}
    assert list(infer(long, infer_sample_bytes=1024)) == ["x"]
    assert list(infer(long)) == ["x", "late"]


def test_without_a_file_hints_are_the_schema_and_without_hints_it_is_refused(infer):
    assert infer({}, schema_hints="id long") == {"id": pa.int64()}
    with pytest.raises(OptionError, match="no file to infer it from"):
        infer({})
    with pytest.raises(OptionError, match="no record to infer it from"):
        infer({"a": "\n\n"})


@pytest.mark.parametrize("name", ["json", "parquet"])
def test_a_file_that_goes_while_it_is_sampled_says_nothing(tmp_path, name):
    path = tmp_path / "there"
    path.write_bytes(_parquet(id=[1]) if name == "parquet" else b'{"id": 1}')
    gone = FileVersion(str(tmp_path / "gone"), 5, -1)
    files = [gone, FileVersion(str(path), path.stat().st_size, -1)]
    assert inferred_schema(files, ReaderOptions(file_format=name)).names == ["id"]


def test_made_columns_are_part_of_it(infer):
    found = infer({"a": '{"id":1}'}, mode="PERMISSIVE", rescued_data_column="_rescued_data")
    assert list(found) == ["id", "_rescued_data", "_corrupt_record"]


def test_hints_are_spark_ddl():
    text = (
        "id LONG, `odd name` decimal(10, 2), at.zip int, m map<string, array<struct<a: int, b "
        "timestamp_ntz>>>"
    )
    inner = pa.struct([("a", pa.int32()), ("b", pa.timestamp("us"))])
    assert parse_hints(text) == [
        (("id",), pa.int64()),
        (("odd name",), pa.decimal128(10, 2)),
        (("at", "zip"), pa.int32()),
        (("m",), pa.map_(pa.string(), _list(inner))),
    ]
    schema = pa.schema([("ID", TEXT), ("at", pa.struct([("zip", TEXT), ("city", TEXT)]))])
    hinted = with_hints(schema, "id long, at.zip int, more date")
    at = pa.struct([("zip", pa.int32()), ("city", TEXT)])
    assert hinted == pa.schema([("ID", pa.int64()), ("at", at), ("more", pa.date32())])


def test_a_hint_takes_nothing_back_of_a_schema_that_has_grown():
    hints = "size int, at struct<zip: string, no: float>, price decimal(10, 2), day date, t string"
    first = with_hints(pa.schema([]), hints)
    grown = arrow_schema(
        "size bigint, at struct<zip: string, no: double, city: string>, price decimal(22, 2),"
        "day timestamp_ntz, t string, new string"
    )
    assert with_hints(first, hints, has_grown=True) == first
    assert with_hints(grown, hints, has_grown=True) == grown
    # Another hint counts all the same.
    other = with_hints(grown, "size decimal(20, 0), new int, t date", has_grown=True)
    kinds = {name: ddl_of(other.field(name).type) for name in ("size", "new", "t")}
    assert kinds == {"size": "decimal(20,0)", "new": "int", "t": "date"}


@pytest.mark.parametrize(
    "text", ["id", "id lang", "id long more", "a.b", "m map<string>", "d decimal(99)"]
)
def test_hints_that_are_not_understood_are_refused_with_their_place(text):
    with pytest.raises(OptionError, match="schemaHints: it does not parse"):
        parse_hints(text)


def test_columns_may_be_not_null_and_hints_may_not():
    text = "id long NOT NULL, o struct<x: int not null, y string>, not int"
    assert parse_columns(text, "writeSchema") == [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("o", pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", TEXT)])),
        pa.field("not", pa.int32()),
    ]
    with pytest.raises(OptionError, match="found 'NOT NULL'"):
        parse_hints("id long NOT NULL")
    for wrong in ("id long NOT", "id long NULL", "id long NOT NULL NOT NULL", "a.b int"):
        with pytest.raises(OptionError, match="writeSchema: "):
            parse_columns(wrong, "writeSchema")


def test_a_hint_that_reaches_into_text_is_refused():
    with pytest.raises(OptionError, match=r"id\.x.*string"):
        with_hints(pa.schema([("id", TEXT)]), "id.x int")


@pytest.mark.parametrize(
    "text",
    [
        "id long, id string",
        "id long, s struct<a: int, b: int, a: string>",
        "m map<string, array<struct<a: int, a: int>>>",
    ],
)
def test_a_schema_with_a_name_twice_is_refused(text):
    with pytest.raises(OptionError, match=r"writeSchema: a name twice; found (id|a);"):
        parse_columns(text, "writeSchema")
    if "<" in text:
        with pytest.raises(OptionError, match="schemaHints: a name twice"):
            parse_hints(text)
    assert parse_columns("id long, ID long, s struct<id: int>", "writeSchema")

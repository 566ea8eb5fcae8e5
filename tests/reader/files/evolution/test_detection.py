"""New columns: seen before any row, kept, or left out; and types of a schema that grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.api import ReaderContext
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.evolution.type_growth import (
    added_or_widened,
    aligned,
    fitted,
    grown,
    wider,
)
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.options.schema_options import EvolutionMode
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import whole
from pyspark_sluice.tests.reader.files.formats.table_files import avro_file
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

AT = pa.struct([("zip", pa.string())])
MORE = pa.struct([("zip", pa.string()), ("city", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("at", AT), ("_rescued_data", pa.string())])
TABLE = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "at": pa.array([{"zip": "a", "city": "x"}, None], MORE),
        "new": pa.array([True, None], pa.bool_()),
    }
)


def _json(table, path):
    rows = table.to_pylist(maps_as_pydicts="strict")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


WRITERS = {
    "json": _json,
    "parquet": pq.write_table,
    "orc": pa_orc.write_table,
    "avro": lambda table, path: path.write_bytes(avro_file(table)),
    "arrow": lambda table, path: pa_feather.write_feather(table, str(path)),
}


def read(path: Path, schema: pa.Schema, *, must_finish: bool = False, **options):
    context = ReaderContext(1, 0, 0, must_finish=must_finish)
    made = ReaderOptions(base_path=str(path.parents[0]), **options)
    reader = FileSplitReader(schema, made, context, schema_is_inferred=True)
    items = list(reader.read([whole(path)]))
    return [row for item in items if isinstance(item, pa.RecordBatch) for row in item.to_pylist()]


@pytest.mark.parametrize("name", WRITERS)
def test_a_new_column_is_seen_before_any_row_unless_it_is_kept_or_left_out(tmp_path, name):
    path = tmp_path / "file"
    WRITERS[name](TABLE, path)
    for mode in EvolutionMode:
        options: dict[str, Any] = {"file_format": name, "schema_evolution_mode": mode}
        if mode.stops:
            with pytest.raises(NewColumnsSeen):
                read(path, SCHEMA, **options)
            again = read(path, SCHEMA, must_finish=True, **options)
            assert [row["id"] for row in again] == [1, 2], "what was acknowledged is read as then"
            continue
        rescues = mode is EvolutionMode.RESCUE
        found = read(path, SCHEMA, rescued_data_column="_rescued_data" * rescues, **options)
        assert [(row["id"], row["at"]) for row in found] == [(1, {"zip": "a"}), (2, None)]
        kept = [json.loads(row["_rescued_data"] or "{}") for row in found]
        whole = {"at": {"city": "x"}, "new": True}
        if name == "json" and rescues:
            assert kept[1].pop("new") is None, "as it stands in the record"
        assert kept == [whole if rescues else {}, {}]


def _within(at: pa.DataType) -> pa.Schema:
    """The struct `at` in a map, in a list, and in a list in a map."""
    in_list = pa.list_(pa.field("element", at))
    kinds = {"named": pa.map_(pa.string(), at), "listed": in_list}
    return pa.schema({"id": pa.int64(), **kinds, "inner": pa.map_(pa.string(), in_list)})


@pytest.mark.parametrize("name", WRITERS)
def test_a_new_field_of_a_struct_in_a_map_or_a_list_is_kept_or_added(tmp_path, name):
    path = tmp_path / "file"
    value = {"zip": "a", "city": "x"}
    row = {"named": [("k", value), ("n", None)], "listed": [value, None]}
    row["inner"] = [("k", [value, None])]
    WRITERS[name](pa.Table.from_pylist([{"id": 1, **row}], _within(MORE)), path)
    schema = _within(AT).append(pa.field("_rescued_data", pa.string()))
    usual: dict[str, Any] = {"file_format": name, "rescued_data_column": "_rescued_data"}
    [rescued] = read(path, schema, schema_evolution_mode="rescue", **usual)
    expected = {"named": {"k": {"city": "x"}}, "listed": [{"city": "x"}, None]}
    expected["inner"] = {"k": [{"city": "x"}, None]}
    assert json.loads(rescued.pop("_rescued_data")) == expected
    del value["city"]
    assert rescued == {"id": 1, **row}
    with pytest.raises(NewColumnsSeen):
        read(path, schema, schema_evolution_mode="addNewColumns", file_format=name)


@pytest.mark.parametrize("name", WRITERS)
def test_what_the_schema_has_is_no_news(tmp_path, name):
    path = tmp_path / "file"
    WRITERS[name](TABLE, path)
    schema = pa.schema([*TABLE.schema, ("later", pa.string())])
    mode = EvolutionMode.ADD_NEW_COLUMNS
    found = read(path, schema, file_format=name, schema_evolution_mode=mode)
    assert found == [{**row, "later": None} for row in TABLE.to_pylist()]


def test_csv_says_its_columns_in_the_header(tmp_path):
    path = tmp_path / "file"
    pa_csv.write_csv(TABLE.select(["new", "id"]), path)
    options: dict[str, Any] = {"file_format": "csv", "header": True}
    schema = pa.schema([("id", pa.int64()), ("gone", pa.string()), ("_rescued_data", pa.string())])
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, schema, schema_evolution_mode="addNewColumns", **options)
    assert caught.value.where == str(path)
    assert [row["id"] for row in read(path, schema, **options)] == [1, 2]
    rescued = read(
        path, schema, schema_evolution_mode="rescue", rescued_data_column="_rescued_data", **options
    )
    assert rescued[0] == {"id": 1, "gone": None, "_rescued_data": '{"new":"true"}'}


def test_a_new_key_in_the_path_is_a_new_column_and_a_known_one_is_not(tmp_path):
    folder = tmp_path / "day=1"
    folder.mkdir()
    path = folder / "file"
    path.write_text('{"id": 1, "day": "in the record as well"}\n')
    options: dict[str, Any] = {"base_path": str(tmp_path), "schema_evolution_mode": "addNewColumns"}

    def rows(schema):
        reader = FileSplitReader(schema, ReaderOptions(**options), ReaderContext(1, 0, 0))
        return next(iter(reader.read([whole(path)]))).to_pylist()

    with pytest.raises(NewColumnsSeen, match="day=1"):
        rows(pa.schema([("id", pa.int64())]))
    assert rows(pa.schema([("id", pa.int64()), ("day", pa.int32())])) == [{"id": 1, "day": 1}]


@pytest.mark.parametrize("name", ["json", "csv", "parquet"])
def test_a_longer_integer_is_seen_where_types_may_grow(tmp_path, name):
    path = tmp_path / "file"
    table = pa.table({"id": pa.array([1, 2**40], pa.int64())})
    {**WRITERS, "csv": pa_csv.write_csv}[name](table, path)
    schema = pa.schema([("id", pa.int32())])
    options: dict[str, Any] = {"file_format": name, "header": True}
    with pytest.raises(NewColumnsSeen):
        read(path, schema, schema_evolution_mode="addNewColumnsWithTypeWidening", **options)
    with pytest.raises(Exception, match=r"Malformed|malformed|without loss|int32"):
        read(path, schema, schema_evolution_mode="addNewColumns", **options)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.int32(), "1.5", pa.float64()),
        (pa.int8(), "-1e3", pa.float64()),
        (pa.int16(), "+70000", pa.int64()),
        (pa.decimal128(5, 2), "1000", pa.decimal128(22, 2)),
        (pa.decimal128(5, 2), "12345.678", pa.decimal128(8, 3)),
        (pa.int64(), "1.5", pa.float64()),
        (pa.int32(), "x", None),
        (pa.decimal128(5, 2), "1e50", None),
        (pa.decimal128(5, 2), "1.255", None),
        (pa.bool_(), "1.5", None),
    ],
    ids=str,
)
@pytest.mark.parametrize("multi_line", [False, True])
def test_csv_grows_to_the_type_that_takes_the_number(tmp_path, kind, text, expected, multi_line):
    path = tmp_path / "file"
    path.write_text(f"id,n\n1,\n2,{text}\n")
    schema = pa.schema([("id", pa.int64()), ("n", kind)])
    options = {"file_format": "csv", "header": True, "multi_line": multi_line, "mode": "PERMISSIVE"}
    options["schema_evolution_mode"] = "addNewColumnsWithTypeWidening"
    if expected is None:
        assert len(read(path, schema, **options)) == 2
        return
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, schema, **options)
    found = pa.schema(list(caught.value.found or ()))
    after = grown(schema, found, widen=True, is_text=True)
    assert after.field("n").type == expected


def test_nothing_under_a_new_name_is_no_news(tmp_path):
    path = tmp_path / "file"
    path.write_text('{"id": 1, "n": null, "o": {}, "l": [], "d": {"x": [{"y": null}]}}\n')
    schema = pa.schema([("id", pa.int64())])
    assert read(path, schema, schema_evolution_mode="addNewColumns") == [{"id": 1}]


MAPS = arrow_schema(
    "id bigint, counts map<string, int>, texts map<string, string>,"
    "places map<string, struct<zip: string>>, _rescued_data string"
)
WITH_MAPS = [
    # A record; its columns counts, texts and places; what is rescued of it.
    ('"counts":{"a":1,"b":null},"texts":{"k":"v:1"},"places":{"p":{"zip":"z"},"q":null}',
     ([("a", 1), ("b", None)], [("k", "v:1")], [("p", {"zip": "z"}), ("q", None)]), None),
    ('"counts":{"a":1,"a":2},"texts":{"k":"1","k":"2"},"places":{}',
     ([("a", 1), ("a", 2)], [("k", "1"), ("k", "2")], []), None),
    ('"places":{"p":{"zip":"z","city":[2]},"q":null}',
     (None, None, [("p", {"zip": "z"}), ("q", None)]), '{"places":{"p":{"city":[2]}}}'),
]  # fmt: skip


def test_maps_are_read_the_same_where_their_new_fields_are_rescued(tmp_path):
    path = tmp_path / "file"
    path.write_text("".join(f'{{"id":1,{texts}}}\n' for texts, *_ in WITH_MAPS))
    plain = read(path, MAPS)
    rows = read(path, MAPS, schema_evolution_mode="rescue", rescued_data_column="_rescued_data")
    assert [row.pop("_rescued_data") for row in rows] == [rescued for *_, rescued in WITH_MAPS]
    assert [tuple(row.values()) for row in rows] == [(1, *columns) for _, columns, _ in WITH_MAPS]
    assert [{**row, "_rescued_data": None} for row in rows] == plain


LIST = pa.list_(pa.field("element", pa.string()))
OBJECTS = pa.list_(pa.field("element", pa.struct([("a", pa.string())])))


@pytest.mark.parametrize(
    ("record", "seen"),
    [
        ('{"id": 1, "id": 2, "new": 3}', {"new": pa.string()}),
        ('{"new": null, "new": 1}', {"new": pa.string()}),
        ('{"at": {"zip": "z"}, "at": {"city": 1}}', {"at": pa.struct([("city", pa.string())])}),
        ('{"new": [1], "new": [2]}', {"new": LIST}),
        ('{"new": [], "new": [{"a": 2}]}', {"new": OBJECTS}),
        ('{"new": [1], "new": [{"a": 2}]}', {"new": OBJECTS}),
    ],
)
def test_the_last_value_of_a_name_that_comes_twice_may_be_new(tmp_path, record, seen):
    path = tmp_path / "file"
    path.write_text(record + "\n")
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, SCHEMA, file_format="json", schema_evolution_mode="addNewColumns")
    assert {field.name: field.type for field in caught.value.found} == seen


ID = pa.schema([("id", pa.int32())])


def test_new_columns_and_fields_come_last_and_types_stay():
    before = arrow_schema("at struct<zip: string>, id int")
    found = arrow_schema("new boolean, id bigint, at struct<city: string, zip: bigint>")
    after = arrow_schema("at struct<zip: string, city: string>, id int, new boolean")
    assert grown(before, found, widen=False) == after
    assert added_or_widened(before, found, widen=False) == ["at.city string", "new bool"]
    assert added_or_widened(before, found, widen=True) == ["at.city string", "id int64", "new bool"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(22, 2)),
        (pa.decimal128(5, 4), pa.decimal128(10, 0), pa.decimal128(14, 4)),
        (pa.decimal128(38, 0), pa.decimal128(10, 2), None),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", "UTC"), None),
        (pa.int64(), pa.string(), None),
        (pa.bool_(), pa.int8(), None),
    ],
)
def test_a_wider_type_takes_every_value_of_both_or_does_not_exist(one, other, both):
    assert wider(one, other) == wider(other, one) == both


def test_names_that_differ_in_case_are_aligned_or_refused():
    found = pa.struct([("ID", pa.int32()), ("more", pa.int8())])
    before = pa.struct([("id", pa.int32())])
    assert aligned(found, before) == pa.struct([("id", pa.int32()), ("more", pa.int8())])
    both = pa.struct([("id", pa.int32()), ("ID", pa.int32())])
    assert aligned(both, before) == both
    with pytest.raises(SchemaMismatchError, match="id and ID"):
        grown(ID, pa.schema(list(both)), widen=False)


def test_what_has_only_been_null_is_no_news():
    found = pa.schema([("n", pa.null()), ("id", pa.null())])
    assert added_or_widened(ID, found, widen=True) == []


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.decimal128(5, -2), pa.decimal128(7, 0)),
        (pa.float16(), pa.float32()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.list_(pa.uint8(), 3), pa.list_(pa.field("element", pa.int16()))),
        (pa.large_list(pa.string_view()), pa.list_(pa.field("element", pa.string()))),
        (pa.map_(pa.string(), pa.uint16()), pa.map_(pa.string(), pa.int32())),
        (pa.timestamp("ns", "Europe/Rome"), pa.timestamp("us", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.binary(16), pa.binary()),
    ],
)
def test_types_of_files_become_types_of_spark(found, kind):
    assert fitted(found) == kind


@pytest.mark.parametrize(
    "found", [pa.uuid(), pa.month_day_nano_interval(), pa.decimal256(50, 0), pa.decimal128(38, -1)]
)
def test_a_type_that_spark_does_not_have_is_no_other_one(found):
    with pytest.raises(TypeError):
        fitted(found)

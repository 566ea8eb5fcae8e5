"""What a reader met, as the next version of the schema: stored before the query stops."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory, StoredSchema
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.connector.source import schema_evolution
from pyspark_sluice.connector.source.schema_evolution import stored_with
from pyspark_sluice.connector.spark.types import arrow_schema
from pyspark_sluice.errors import NewColumnsError, SchemaMismatchError
from pyspark_sluice.reader.direct_write.field_ids import from_text, of_iceberg, to_text
from pyspark_sluice.reader.files.evolution.hints import with_hints
from pyspark_sluice.reader.files.evolution.new_columns import NewColumnsSeen
from pyspark_sluice.reader.files.options.schema_options import EvolutionMode
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import CONTEXT, cut, version

pytestmark = pytest.mark.slow

AT = pa.struct([("zip", pa.string())])
MORE = pa.struct([("zip", pa.string()), ("city", pa.string())])
ID = pa.schema([("id", pa.int64())])


def resolved_options(path: Path, **options: Any) -> SluiceOptions:
    mode = EvolutionMode(options.pop("schema_evolution_mode", "addNewColumns"))
    update = {"schema_evolution_mode": mode, "base_path": str(path.parent), **options}
    if update.get("header"):
        update["enforce_schema"] = False
    return SluiceOptions(path=str(path.parent)).model_copy(update=update)


def read(path: Path, schema: pa.Schema, borders=(), **options: Any) -> list[dict[str, Any]]:
    made = resolved_options(path, **options)
    reader = FileSplitReader(schema, made, CONTEXT, schema_is_inferred=True)
    items = list(reader.read(cut(path, borders)))
    return [row for item in items if isinstance(item, pa.RecordBatch) for row in item.to_pylist()]


def after(
    path: Path, schema: pa.Schema, borders=(), files: list[Path] | None = None, **options: Any
) -> pa.Schema:
    """The schema that is stored when the file is met by a reader of `schema`."""
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, schema, borders, **options)
    store = open_store(str(path.parent / "state"), {})
    splits = [split for each in files or [path] for split in cut(each, ())]
    made = resolved_options(path, **options)
    stored_with(caught.value, [split.file for split in splits], made, schema, store)
    stored = SchemaHistory(store).latest()
    assert stored is not None
    return arrow_schema(StructType.fromJson(dict(stored.struct)))


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def within(at: pa.DataType) -> pa.Schema:
    """The struct `at` in a map, in a list, and in a list in a map."""
    in_list = pa.list_(pa.field("element", at))
    kinds = {"named": pa.map_(pa.string(), at), "listed": in_list}
    return pa.schema({"id": pa.int64(), **kinds, "inner": pa.map_(pa.string(), in_list)})


@pytest.mark.parametrize("name", ["json", "parquet"])
@pytest.mark.parametrize("column", ["named", "listed", "inner"])
def test_a_new_field_of_a_struct_in_a_map_or_a_list_grows_the_schema(tmp_path, name, column):
    value = {"zip": "a", "city": "x"}
    values = {"named": {"k": value, "n": None}, "listed": [value], "inner": {"k": [value, None]}}
    path = tmp_path / "file"
    if name == "json":
        lines(path, {"id": 1, column: values[column]})
    else:
        pq.write_table(
            pa.Table.from_pylist([{"id": 1, column: values[column]}], within(MORE)), path
        )
    grown = after(path, within(AT), file_format=name)
    assert grown.field(column).type == within(MORE).field(column).type
    [row] = read(path, grown, file_format=name)
    assert "x" in str(row[column])


MIXED = [
    # Values of a new column, the column's type where types are inferred.
    ((1, "abc"), pa.string()),
    ((1, 2.5), pa.float64()),
    (({"a": 1}, {"b": 2}), pa.struct([("a", pa.int64()), ("b", pa.int64())])),
    (({"a": [], "b": 1}, {"b": 1}), {"b": pa.int64()}),
]


@pytest.mark.parametrize(("values", "kind"), MIXED, ids=str)
def test_the_type_of_a_new_column_takes_all_that_was_looked_at(tmp_path, values, kind):
    kind = pa.struct(list(kind.items())) if isinstance(kind, dict) else kind
    usual: dict[str, Any] = {"file_format": "json", "infer_column_types": True}
    first, second = ({"id": 1, "v": value} for value in values)
    many = [{"id": number} for number in range(8_000)]
    a, b, c = (tmp_path / name for name in "abc")
    fields: Any = kind if pa.types.is_struct(kind) else [pa.field("v", kind)]
    for found in (
        after(lines(a, first, second), ID, **usual),
        after(lines(a, *many, first, second), ID, **usual, borders=[60_000], batch_bytes=1 << 16),
        after(lines(a, first, *many, second), ID, **usual),
        # Another file that the task was given.
        after(lines(b, first), ID, **usual, files=[b, lines(c, second)]),
    ):
        assert dict(zip(found.names, found.types, strict=True)).keys() == {"id", "v"}
        got = found.field("v").type
        assert sorted(map(str, got)) == sorted(map(str, fields)) if got != kind else True
        for path in (a, c):
            assert read(path, found, **usual), "every record fits"


INT = pa.schema([("id", pa.int64()), ("v", pa.int32())])


@pytest.mark.parametrize(
    ("schema", "texts", "kind"),
    [
        (ID, ("1", "abc"), pa.string()),
        (ID, ("1", "2.5"), pa.float64()),
        (ID, ("2026-01-01", "2026-01-01T10:00:00"), pa.timestamp("us", "UTC")),
        (ID, ("", "7"), pa.int64()),
        # A column that has to be widened.
        (INT, (str(1 << 40), "1.5"), pa.float64()),
    ],
    ids=str,
)
def test_the_type_of_a_column_of_csv_takes_every_file_of_the_task(tmp_path, schema, texts, kind):
    files = [tmp_path / name for name in "ab"]
    for path, text in zip(files, texts, strict=True):
        path.write_text(f"id,v\n1,{text}\n")
    usual: dict[str, Any] = {"file_format": "csv", "header": True, "infer_column_types": True}
    usual["schema_evolution_mode"] = "addNewColumns" + "WithTypeWidening" * (schema is INT)
    found = after(files[0] if texts[0] else files[1], schema, **usual, files=files)
    assert found.field("v").type == kind
    for path, text in zip(files, texts, strict=True):
        [row] = read(path, found, **usual)
        assert (row["v"] is None) == (not text), "the value fits the column"


def test_an_integer_that_grows_is_wide_enough_for_all_that_was_looked_at(tmp_path):
    schema = pa.schema([("id", pa.int32())])
    path = lines(tmp_path / "a", {"id": 1 << 40}, *({"id": 1} for _ in range(9)), {"id": 1 << 70})
    mode = "addNewColumnsWithTypeWidening"
    for exact in (True, False):
        usual: dict[str, Any] = {"file_format": "json", "infer_column_types": exact}
        found = after(path, schema, **usual, schema_evolution_mode=mode)
        assert found == pa.schema([("id", pa.decimal128(22, 0))])


def test_a_variant_has_no_fields_that_could_be_new(tmp_path):
    marked = pa.field("metadata", pa.binary(), metadata={b"variant": b"true"})
    schema = pa.schema([("v", pa.struct([pa.field("value", pa.binary()), marked]))])
    path = lines(tmp_path / "a", {"v": {"x": 1}, "new": 1})
    found = after(path, schema, file_format="json")
    assert found.names == ["v", "new"]
    assert found.field("v").type.num_fields == 2


def test_a_split_of_a_file_counts_with_what_it_holds(tmp_path):
    """The sample of a file's beginning does not reach where a later split's reader is."""
    path = lines(tmp_path / "a", *({"id": n} for n in range(20_000)), {"v": 1}, {"v": "abc"})
    usual: dict[str, Any] = {"file_format": "json", "infer_column_types": True}
    size = path.stat().st_size
    found = after(path, ID, borders=[size - 1000], **usual, infer_sample_bytes=1 << 12)
    assert found == pa.schema([("id", pa.int64()), ("v", pa.string())])


NO_VALUES = {"empty": "2,", "no record": "", "a null value": "2,NA"}


@pytest.mark.parametrize("record", NO_VALUES.values(), ids=list(NO_VALUES))
@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("mode", [mode for mode in EvolutionMode if mode.stops])
def test_a_column_that_only_the_header_has_is_a_new_string(tmp_path, record, typed, mode):
    path, other = tmp_path / "2.csv", tmp_path / "3.csv"
    path.write_text(f"id,note\n{record}\n")
    other.write_text("more,id\n")
    usual: dict[str, Any] = {"file_format": "csv", "header": True, "infer_column_types": typed}
    usual |= {"null_value": "NA", "schema_evolution_mode": mode}
    if not mode.adds:
        with pytest.raises(NewColumnsSeen) as caught:
            read(path, ID, **usual)
        made = resolved_options(path, **usual)
        with pytest.raises(NewColumnsError, match="note string"):
            stored_with(caught.value, [version(path)], made, ID, None)
        return
    unreadable = tmp_path / "4.csv"
    unreadable.write_text("a,A\n")
    grown = after(path, ID, files=[path, unreadable], **usual)
    assert grown == pa.schema({"id": pa.int64(), "note": pa.string()})
    grown = after(path, ID, files=[path, other], **usual)
    assert grown == pa.schema({"id": pa.int64(), "note": pa.string(), "more": pa.string()})
    assert [row["id"] for row in read(path, grown, **usual)] == [2] * (record != "")


ORDER = pa.schema([("order_id", pa.string()), ("customer", pa.string()), ("_r", pa.string())])
PAGE = "Access denied\nSee the log for the reason.\n"
UNRELATED = {
    "an error page": ("csv", PAGE),
    "one line of it": ("csv", PAGE.replace("\n", "")),
    "another separator": ("csv", "order_id;customer\n1;a\n"),
    "an error in JSON": ("json", '{"error": "rate limited"}\n'),
    "another table": ("parquet", pa.table({"page": ["x"]})),
}
BRAKES = [mode for mode in EvolutionMode if mode is not EvolutionMode.NONE]


@pytest.mark.parametrize(("name", "content"), UNRELATED.values(), ids=list(UNRELATED))
@pytest.mark.parametrize("mode", BRAKES)
def test_a_file_without_a_column_of_the_schema_adds_none(tmp_path, name, content, mode):
    path = tmp_path / "file"
    pq.write_table(content, path) if name == "parquet" else path.write_text(content)
    usual: dict[str, Any] = {"file_format": name, "header": name == "csv"}
    usual |= {"schema_evolution_mode": mode, "rescued_data_column": "_r"}

    def met(**more: Any) -> Any:
        try:
            return read(path, ORDER, **usual, **more)
        except NewColumnsSeen as seen:
            made = resolved_options(path, **usual, **more)
            store = open_store(str(tmp_path / "state"), {})
            return stored_with(seen, [version(path)], made, ORDER, store)

    # A record of JSON without a column of the schema is rescued as a whole.
    if (name, mode) != ("json", EvolutionMode.RESCUE):
        with pytest.raises(SchemaMismatchError, match="the file has no column of the schema"):
            met()
    assert SchemaHistory(open_store(str(tmp_path / "state"), {})).latest() is None
    if mode is EvolutionMode.FAIL_ON_NEW_COLUMNS:
        with pytest.raises(NewColumnsError, match="columns that the schema does not have"):
            met(accept_unrelated_files=True)
        return
    permitted = met(accept_unrelated_files=True)
    assert isinstance(permitted, list if mode is EvolutionMode.RESCUE else StoredSchema)


def test_no_schema_is_inferred_from_files_that_share_no_column(tmp_path):
    good, page = tmp_path / "1.csv", tmp_path / "2.csv"
    good.write_text("id,name\n1,a\n")
    page.write_text(PAGE)
    made = resolved_options(good, file_format="csv", header=True)
    with pytest.raises(SchemaMismatchError, match=r"no column of the schema: .*2\.csv"):
        inferred_schema([version(good), version(page)], made)
    made = made.model_copy(update={"accept_unrelated_files": True})
    assert len(inferred_schema([version(good), version(page)], made)) == 3


def test_one_version_adds_no_more_columns_than_allowed(tmp_path):
    path = lines(tmp_path / "file", {"id": 1, **{f"user_{n}": n for n in range(6)}})
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, ID, file_format="json")
    for most, version_count in ((5, 0), (6, 1)):
        made = resolved_options(path, file_format="json", max_new_columns=most)
        store = open_store(str(tmp_path / "state"), {})
        refused = pytest.raises(NewColumnsError, match="found 6: user_0")
        with refused if most == 5 else nullcontext():
            stored_with(caught.value, [version(path)], made, ID, store)
        assert len(SchemaHistory(store).all()) == version_count


@pytest.mark.parametrize("name", ["json", "csv"])
@pytest.mark.parametrize("bad", [{}, {"mode": "DROPMALFORMED", "bad_records_path": "bad"}])
@pytest.mark.parametrize("first", [pa.int32(), pa.int64()])
def test_an_inferred_long_becomes_a_double_for_a_fraction(tmp_path, name, bad, first):
    """In one batch as in two, whichever value comes first."""
    usual: dict[str, Any] = {"file_format": name, "header": name == "csv", **bad}
    usual |= {"schema_evolution_mode": "addNewColumnsWithTypeWidening"}
    text = {"json": '{{"id": {}}}\n', "csv": "id\n{}\n"}[name]
    path, schema = tmp_path / "file", pa.schema([("id", first)])
    for value in (3_000_000_000, 1.5) if first == pa.int32() else (1.5,):
        path.write_text(text.format(value))
        schema = after(path, schema, infer_column_types=True, **usual)
        [row] = read(path, schema, infer_column_types=True, **usual)
        assert row == {"id": value}
    assert schema == pa.schema([("id", pa.float64())])
    assert with_hints(schema, "id bigint", has_grown=True) == schema


@pytest.mark.parametrize(
    ("kind", "column", "last_id", "is_stored"),
    [
        (pa.int32(), {"id": pa.int32()}, None, False),
        (pa.int32(), {"id": pa.int64()}, None, True),
        (pa.int32(), {"id": pa.float64()}, None, False),
        (pa.int32(), {"other": pa.int32()}, None, True),
        # Iceberg promotes it.
        (pa.int32(), {"id": pa.int32()}, 1, True),
        # A fraction in place of an inferred long.
        (pa.int64(), {"id": pa.int64()}, None, False),
        (pa.int64(), {"id": pa.float64()}, None, True),
    ],
)
def test_a_wider_type_is_stored_only_if_the_table_takes_it(
    tmp_path, monkeypatch, kind, column, last_id, is_stored
):
    value, wider = (1 << 40, "long") if kind == pa.int32() else (1.5, "double")
    path, schema = lines(tmp_path / "2.json", {"id": value}), pa.schema([("id", kind)])
    made: dict[str, Any] = {"file_format": "json", "infer_column_types": True}
    made["schema_evolution_mode"] = "addNewColumnsWithTypeWidening"
    with pytest.raises(NewColumnsSeen) as caught:
        read(path, schema, **made)
    table = pa.schema(column)
    text = to_text(table if last_id is None else of_iceberg(table, last_id, '{"fields":[]}'))
    monkeypatch.setattr(schema_evolution, "table_columns", lambda: from_text(text))
    store = open_store(str(tmp_path / "state"), {})
    refused = pytest.raises(NewColumnsError, match=rf"id is {wider}, and .* in the table")
    with nullcontext() if is_stored else refused:
        stored_with(caught.value, [version(path)], resolved_options(path, **made), schema, store)
    assert len(SchemaHistory(store).all()) == is_stored

"""A file of each logical type, read without a schema: type and rows are those of Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, orc

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.connector.source.schema_json import arrow_schema_of, json_of
from pyspark_sluice.connector.spark.types import arrow_schema, spark_schema
from pyspark_sluice.errors import MalformedDataError, OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.evolution.type_growth import is_variant
from pyspark_sluice.reader.files.formats.parquet.schema_elements import (
    CONVERTED,
    REPETITION,
    Fields,
    _encoded,
    number,
    schema_elements,
)
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.row_filter import Predicate
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows, version
from pyspark_sluice.reader.files.values.map_nested import map_nested
from pyspark_sluice.reader.files.values.times.zones import zone_of
from pyspark_sluice.tests.answers import RefusedBySparkError
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import format_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

OTHERS = Path(__file__).parent / "others"
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16)), None], pa.binary(16)))
NOON = dt.datetime.fromisoformat("2020-01-01T12:00")

ARRAYS: dict[str, pa.Array] = {
    "decimal": pa.array([Decimal("1.5")], pa.decimal128(38, 1)),
    "decimal32": pa.array([Decimal("1.25"), None], pa.decimal32(5, 2)),
    "decimal64 in a list": pa.array([[Decimal("1.25")]], pa.list_(pa.decimal64(15, 2))),
    "wide decimal": pa.array([Decimal("1.5")], pa.decimal256(50, 1)),
    "date": pa.array([dt.date(2020, 1, 1)]),
    "timestamp": pa.array([NOON], pa.timestamp("us", "UTC")),
    "local timestamp": pa.array([NOON], pa.timestamp("ms")),
    "nanoseconds": pa.array([NOON], pa.timestamp("ns")),
    "uint64": pa.array([2**64 - 1], pa.uint64()),
    "fixed bytes": pa.array([b"ab"], pa.binary(2)),
    "half float": pa.array([1.5], pa.float16()),
    "json": pa.array(['{"a": 1}', None], pa.json_()),
    "uuid": UUIDS,
    "time in milliseconds": pa.array([dt.time(1, 2, 3)], pa.time32("ms")),
    "time in microseconds": pa.array([dt.time(1, 2, 3)], pa.time64("us")),
    "duration": pa.array([5], pa.duration("us")),
    "null in a struct": pa.array([{"a": 1, "n": None}]),
    "view": pa.array(["a", None], pa.string_view()),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
}


def _parquet(name: str, path: Path) -> None:
    pq.write_table(pa.table({"v": ARRAYS[name]}), path, version="2.6")


def _int96(name: str, path: Path) -> None:
    table = pa.table({"v": pa.array([NOON, None], pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=name == "notes")


def _orc(name: str, path: Path) -> None:
    orc.write_table(pa.table({"v": ARRAYS[name]}), path)


def _other(name: str, path: Path) -> None:
    path.write_bytes((OTHERS / f"{name}{path.suffix}").read_bytes())


FILES: dict[str, tuple[Callable[[str, Path], None], str, str]] = {
    **{f"parquet {name}": (_parquet, name, "parquet") for name in ARRAYS},
    "parquet int96": (_int96, "", "parquet"),
    "parquet int96 with notes": (_int96, "notes", "parquet"),
    "orc decimal": (_orc, "decimal", "orc"),
    "orc date": (_orc, "date", "orc"),
    "orc timestamp": (_orc, "local timestamp", "orc"),
    "orc instant": (_orc, "timestamp", "orc"),
    **{
        path.name: (_other, path.stem, path.suffix[1:])
        for path in sorted(OTHERS.glob("*.*"))
        if path.suffix in (".parquet", ".orc")
    },
}
"""Case -> how the file is written, of what, in which format."""

OURS: dict[str, tuple[str, list[Any]] | type[Exception] | str] = {
    # Spark refuses these; no value is lost.
    "parquet half float": ("v float", [1.5]),
    "parquet nanoseconds": ("v timestamp_ntz", [NOON]),
    "parquet time in milliseconds": ("v time(6)", [dt.time(1, 2, 3)]),
    "parquet time in microseconds": ("v time(6)", [dt.time(1, 2, 3)]),
    # A number without its unit, and bytes without their meaning.
    "parquet duration": "found duration.*of Arrow.*schemaHints='v interval day to second'",
    "spark-geo.parquet": "found geometry of Parquet.*schemaHints='v binary'",
    "spark-ymi.parquet": "found interval year to month.*schemaHints='v int'",
    "spark-ymi.orc": "found interval year to month.*schemaHints='v int'",
    "polars-int128.parquet": "found bytes of a type that pyarrow.*schemaHints='big binary'",
    # Left out until it has a type.
    "parquet null in a struct": ("v struct<a:bigint>", [{"a": 1}]),
    # Spark shows the wall clock in its own zone, and reads other values next to a null.
    "pyorc-kolkata.orc": ("t timestamp", [dt.datetime(2019, 12, 31, 19, 32, 3, tzinfo=dt.UTC)]),
    "duckdb-array-next-to-null.parquet": MalformedDataError,
}
"""Cases of docs/differences.md: the columns and values, or a word of the error."""


@pytest.mark.parametrize("case", FILES)
def test_types_and_rows_without_a_schema_are_those_of_spark(case, spark_answers, tmp_path):
    write, name, kind = FILES[case]
    path = tmp_path / f"file.{kind}"
    write(name, path)

    def by_spark(spark: SparkSession) -> Any:
        frame = spark.read.format(kind).load(str(path))
        ddl = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frame.schema)
        # Not all of its types have a type in Python.
        if "year to month" in ddl or "geo" in ddl:
            return ddl, None
        return ddl, _plain(frame.toArrow().to_pylist())

    options = ReaderOptions(file_format=kind)
    try:
        expected = spark_answers(by_spark, case, str(ARRAYS.get(name)))
    except RefusedBySparkError as error:
        expected = str(error)
    ours = OURS.get(case)
    if ours is None and isinstance(expected, str):
        ours = "type that Spark does not support"
    if isinstance(ours, str):
        with pytest.raises(SchemaMismatchError, match=ours.replace("(", r"\(")):
            inferred_schema([version(path)], options)
        return
    schema = inferred_schema([version(path)], options)
    if ours is MalformedDataError:
        with pytest.raises(MalformedDataError, match="column 'a'"):
            read_rows([path], schema, file_format=kind)
        return
    ddl = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in spark_schema(schema))
    rows = _plain(read_rows([path], schema, file_format=kind))
    if ours is None:
        # `interval day` is one of Spark's units, of which Arrow has one.
        assert (ddl.replace("interval day to second", "interval day"), rows) == (
            expected[0].replace("interval day to second", "interval day"),
            expected[1],
        )
    else:
        assert isinstance(ours, tuple)
        column = ours[0].partition(" ")[0]
        assert (ddl, rows) == (ours[0], _plain([{column: value} for value in ours[1]]))
    assert json_of(schema)


def _plain(value: Any) -> Any:
    """Times and intervals as text."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, dt.timedelta | dt.time) else value


def test_a_map_with_optional_keys_and_an_older_annotation_is_refused_by_column(tmp_path):
    maps = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))
    path = tmp_path / "map.parquet"
    pq.write_table(pa.table({"m": maps, "id": [7]}), path, store_schema=False)
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, done = [], begin
    for index, element in enumerate(schema_elements(data[begin:-8])):
        # The key is optional, and the group around it has the annotation MAP_KEY_VALUE as well.
        new = {2: {CONVERTED: number(2)}, 3: {REPETITION: number(1)}}.get(index, {})
        footer += [data[done : begin + element.start], _encoded(Fields(element.fields | new))]
        done = begin + element.end
    footer.append(data[done:-8])
    changed = b"".join(footer)
    path.write_bytes(data[:begin] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(SchemaMismatchError, match=r"'m'.*a map with optional keys"):
        inferred_schema([version(path)], ReaderOptions(file_format="parquet"))
    rows = read_rows([path], pa.schema([("id", pa.int64())]), file_format="parquet")
    assert rows == [{"id": 7}]


def test_a_uuid_is_text_or_bytes_as_the_schema_says(tmp_path):
    text = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    pq.write_table(pa.table({"v": UUIDS}), tmp_path / "x.parquet")
    feather.write_feather(pa.table({"v": UUIDS}), str(tmp_path / "x.arrow"))
    for kind in ("parquet", "arrow"):
        path = tmp_path / f"x.{kind}"
        for target, value in ((pa.string(), text), (pa.binary(), bytes(range(16)))):
            rows = read_rows([path], pa.schema([("v", target)]), file_format=kind)
            assert rows == [{"v": value}, {"v": None}]


VALUES: dict[str, pa.Array] = {
    "text": pa.array(["a", "longer than twelve bytes", None]),
    "view": pa.array(["a", "longer than twelve bytes", None], pa.string_view()),
    "bytes": pa.array([b"a", b"longer than twelve bytes", None], pa.binary_view()),
    "decimal32": pa.array([Decimal("1.25"), Decimal("-1.25"), None], pa.decimal32(5, 2)),
    "decimal64": pa.array([Decimal("1.25"), Decimal("-1.25"), None], pa.decimal64(15, 2)),
    "half": pa.array([1.5, -2.5, None], pa.float16()),
    "null": pa.nulls(3),
}
VALUES["fields"] = pa.StructArray.from_arrays([VALUES["view"], VALUES["decimal32"]], ["t", "d"])


def _encodings(values: pa.Array) -> dict[str, pa.Array]:
    """Return the first three values in each form that Arrow has for them, as slices, with nulls."""
    values = values.slice(0, 3)
    twice = pa.concat_arrays([values, values])
    indices = pa.array([1, 0, None, 0, 2, 1], pa.int16())
    starts, sizes = pa.array([4, 0, 1, 2], pa.int32()), pa.array([1, 0, 2, 3], pa.int32())
    offsets = pa.array([0, 1, 3, 3, 6])
    some = pa.array([False, True, False, False])
    forms = {
        "plain": twice,
        "list": pa.ListArray.from_arrays(offsets.cast(pa.int32()), twice, mask=some),
        "large list": pa.LargeListArray.from_arrays(offsets, twice, mask=some),
        "list view": pa.ListViewArray.from_arrays(starts, sizes, twice, mask=some),
        "large list view": pa.LargeListViewArray.from_arrays(
            starts.cast(pa.int64()), sizes.cast(pa.int64()), twice, mask=some
        ),
        "fixed list": pa.FixedSizeListArray.from_arrays(
            pa.concat_arrays([twice, values.slice(1)]), 2, mask=some
        ),
        "struct": pa.StructArray.from_arrays([twice], ["x"], mask=indices.is_null()),
        "map": pa.MapArray.from_arrays([0, 1, 1, 2, 4], ["a", "b", "c", "d"], twice.slice(0, 4)),
    }
    # pyarrow writes the positions of the inner one of two dictionaries in place of its values.
    if not pa.types.is_dictionary(values.type):
        forms["dictionary"] = pa.DictionaryArray.from_arrays(indices, values)
    # No runs of runs; and it makes none of nulls.
    if not (pa.types.is_run_end_encoded(values.type) or pa.types.is_null(values.type)):
        ends = pa.array([1, 2, 4], pa.int32())
        forms["runs"] = pa.RunEndEncodedArray.from_arrays(ends, values)
    return {name: form.slice(1) for name, form in forms.items()}


@pytest.mark.parametrize("values", VALUES)
def test_arrow_values_are_read_in_every_encoding_of_every_encoding(values, tmp_path):
    path = tmp_path / "x.arrow"
    for inner, inner_array in _encodings(VALUES[values]).items():
        for outer, array in _encodings(inner_array).items():
            table = pa.table({"id": range(len(array)), "v": array})
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
            schema = inferred_schema([version(path)], ReaderOptions(file_format="arrow"))
            rows = read_rows([path], schema, file_format="arrow")
            if not pa.types.is_null(VALUES[values].type):
                assert [row["v"] for row in rows] == array.to_pylist(), (outer, inner)
            assert [row["id"] for row in rows] == [*range(len(array))], (outer, inner)


def test_json_of_arrow_is_text_and_a_dictionary_of_it_is_no_damage(tmp_path):
    texts, path = pa.array(['{"a": 1}', None], pa.json_()), tmp_path / "x.arrow"
    lists = pa.ListArray.from_arrays([0, 2], texts)
    feather.write_feather(pa.table({"v": lists}), str(path))
    schema = inferred_schema([version(path)], ReaderOptions(file_format="arrow"))
    assert read_rows([path], schema, file_format="arrow") == [{"v": ['{"a": 1}', None]}]
    positions = pa.DictionaryArray.from_arrays(pa.array([0, 1]), texts)
    feather.write_feather(pa.table({"v": positions}), str(path))
    with pytest.raises(SchemaMismatchError, match="Invalid storage type for JsonExtensionType"):
        read_rows([path], pa.schema([("v", pa.string())]), file_format="arrow")


def test_values_beyond_their_type_are_refused_by_column(tmp_path):
    # fastparquet's durations, and ClickHouse's times in nanoseconds.
    pq.write_table(pa.table({"v": pa.array([86_400_000_000]).view("time64[us]")}), tmp_path / "1")
    number = {"type": "bytes", "logicalTypX": "decimal", "precision": 4, "scale": 2}
    fields = [{"name": "v", "type": number}]
    with (tmp_path / "2").open("wb") as sink:
        schema = {"type": "record", "name": "r", "fields": fields}
        fastavro.writer(sink, schema, [{"v": b"\x27\x10"}])
    data = (tmp_path / "2").read_bytes()
    (tmp_path / "2").write_bytes(data.replace(b"logicalTypX", b"logicalType"))
    for name, kind in (("1", "parquet"), ("2", "avro")):
        schema = inferred_schema([version(tmp_path / name)], ReaderOptions(file_format=kind))
        for target in (schema, pa.schema([("v", pa.string())])) if kind == "parquet" else (schema,):
            with pytest.raises(SchemaMismatchError, match="column 'v' does not fit"):
                read_rows([tmp_path / name], target, file_format=kind)


def test_values_in_list_views_are_changed_behind_a_null_too():
    views = pa.array([[1], None, [2, 3]], pa.list_view(pa.int32()))
    change = map_nested(views.type, lambda *_: lambda array: array.cast(pa.int64()))
    assert change is not None
    changed = change(views.slice(1))
    changed.validate(full=True)
    assert changed.to_pylist() == [None, [2, 3]]


def test_a_long_text_in_a_wide_struct_makes_no_small_batches(tmp_path):
    texts = {f"f{i}": pa.array(["a", "b"] * 1000) for i in range(200)}
    texts["body"] = pa.array(["x" * 50_000, *["y"] * 1999])
    struct = pa.StructArray.from_arrays(list(texts.values()), list(texts))
    counts = []
    for name, table in (("flat", pa.table(texts)), ("struct", pa.table({"s": struct}))):
        pq.write_table(table, tmp_path / name)
        file = version(tmp_path / name)
        reader = format_of("parquet", inferred_schema([file], ReaderOptions(file_format="parquet")))
        counts.append(sum(1 for _ in reader.decode(FileSplit(file, 0, file.size))))
    assert counts[1] <= counts[0] + 1


def test_text_that_is_not_utf8_is_refused_by_name_and_read_as_bytes(tmp_path):
    raw = pa.array([b"ok", b"\xff"])
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"v": text}), tmp_path / "x.parquet")
    orc.write_table(
        pa.table({"v": text, "l": pa.ListArray.from_arrays([0, 1, 2], text)}), tmp_path / "x.orc"
    )
    nested = pa.list_(pa.field("element", pa.string()))
    for kind, name, target in (
        ("parquet", "v", pa.string()),
        ("orc", "v", pa.string()),
        ("orc", "l", nested),
    ):
        path = tmp_path / f"x.{kind}"
        with pytest.raises(SchemaMismatchError, match=f"column '{name}'.*UTF-8.*{name} binary"):
            read_rows([path], pa.schema([(name, target)]), file_format=kind)
        rows = read_rows([path], pa.schema([("v", pa.binary())]), file_format=kind)
        assert [row["v"] for row in rows] == [b"ok", b"\xff"]


def test_a_collation_is_in_the_schema_and_not_in_filters():
    path = OTHERS / "spark-coll.parquet"
    schema = inferred_schema([version(path)], ReaderOptions(file_format="parquet"))
    # Stored and read again, as by a restart.
    stored = arrow_schema_of(json_of(schema))
    given = arrow_schema(spark_schema(schema))
    for known in (schema, stored, given):
        assert spark_schema(known)["v"].dataType.simpleString() == "string collate UNICODE_CI"
        with pytest.raises(OptionError, match=r"v; found icu.UNICODE_CI.*where"):
            Predicate.parse("v = 'abc'", known)
    rows = read_rows([path], given, file_format="parquet")
    assert rows == [{"v": "Abc"}]
    hinted = ReaderOptions(file_format="parquet", schema_hints="v string")
    assert Predicate.parse("v = 'abc'", inferred_schema([version(path)], hinted))


def test_hints_decide_where_several_files_have_the_column(tmp_path):
    for name in ("1", "2"):
        (tmp_path / name).write_bytes((OTHERS / "duckdb-variant.parquet").read_bytes())
    files = [version(tmp_path / name) for name in ("1", "2")]
    for hints in ("", "v variant"):
        options = ReaderOptions(file_format="parquet", schema_hints=hints)
        assert is_variant(inferred_schema(files, options).field("v").type)
    _int96("", tmp_path / "3")
    _parquet("timestamp", tmp_path / "4")
    times = [version(tmp_path / name) for name in ("3", "4")]
    found = inferred_schema(times, ReaderOptions(file_format="parquet"))
    assert found.field("v").type == pa.timestamp("us", "UTC")


def test_orc_timestamps_are_the_wall_clock_that_was_written_if_the_schema_has_no_zone():
    path = OTHERS / "pyorc-kolkata.orc"
    rows = read_rows([path], pa.schema([("t", pa.timestamp("us"))]), file_format="orc")
    assert rows == [{"t": dt.datetime.fromisoformat("2020-01-01T01:02:03")}]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York", "+01:30", "Etc/UTC"])
def test_wall_clocks_are_those_of_the_zone_through_its_changes(zone):
    # Half hours of a year with both changes, and times before 1970.
    instants = np.concatenate([np.arange(17_520) * 1_800_000_000 + 1_577_836_800_000_001, [-5]])
    clocks = zone_of(zone).wall_clocks(instants)
    assert np.all((clocks - instants) % 1_800_000_000 == 0)
    for index in (0, 5000, 9_000, 17_520):
        first, last = zone_of(zone).readings(int(clocks[index]))
        assert instants[index] in (first, last)
    # The first reading of each clock is the instant, but in the hour that is repeated.
    repeated = np.count_nonzero(zone_of(zone).instants(clocks) != instants)
    assert repeated == (2 if zone == "America/New_York" else 0)

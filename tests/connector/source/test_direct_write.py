"""Rows that a stream writes into data files: their form, what shapes them, and what is refused."""

import json
import os
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key, file_keys, names_of
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.connector.stream import next_offset
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

IN_PLACE = {"fileFormat": "parquet", "writeCopy": "never"}


class Writing:
    """Files of one directory, whose rows are written into another one."""

    def __init__(self, root):
        self.root, self.data = root, root / "in"
        self.data.mkdir()
        self.add("0.json", *({"id": number, "text": f"row {number}"} for number in range(10)))

    def add(self, name, *rows):
        path = self.data / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def source(self, **options):
        usual = {
            "path": self.data,
            "fileFormat": "json",
            "stateLocation": self.root / "state",
            "writeTo": self.root / "table",
            "writeSchema": "id long, text string",
        }
        given = {key: value for key, value in {**usual, **options}.items() if value is not None}
        return SluiceDataSource({key.lower(): str(value) for key, value in given.items()})

    def land(self, **options):
        """The first batch: a row about each file."""
        source = self.source(**options)
        reader = source.streamReader(source.schema())
        start = reader.initialOffset()
        try:
            end = next_offset(reader, start)
            return [
                row
                for partition in reader.partitions(start, end)
                for batch in reader.read(partition)
                for row in batch.to_pylist()
            ]
        finally:
            reader.stop()


@pytest.fixture
def landing(tmp_path):
    return Writing(tmp_path)


@pytest.mark.effect_of("writeTo", "writeSchema", "writePartitionBy", "writeSortBy")
def test_what_shapes_rows_shapes_what_is_written(landing):
    (landing.data / "0.json").unlink()
    landing.add("day=2024-01-02/0.json", *({"id": number} for number in range(10)))
    (landing.data / "day=2024-01-02" / "1.json").write_text('{"id": 10}\n{"id": "bad"\n')
    schema = (
        "id long, text string, day date, _corrupt_record string, "
        "_metadata struct<file_name: string>"
    )
    more = {"mode": "PERMISSIVE", "writePartitionBy": "day", "writeSortBy": "id"}
    seen = landing.land(writeSchema=schema, parallelism=1, **more)
    assert {dict(row["partition"])["day"] for row in seen} == {"2024-01-02"}
    rows = pa.concat_tables(pq.read_table(row["path"], partitioning=None) for row in seen)
    rows = rows.to_pylist()
    assert Counter(row["id"] for row in rows) == Counter([*range(11), None])
    assert [row["_corrupt_record"] for row in rows if row["id"] is None] == ['{"id": "bad"']
    assert {row["_metadata"]["file_name"] for row in rows} == {"0.json", "1.json"}


def test_a_limit_on_rows_holds_for_direct_writes(landing):
    landing.add("1.json", *({"id": number} for number in range(10, 15)))
    source = landing.source(maxRowsPerTrigger=4)
    reader = source.streamReader(source.schema())
    at, sizes, ids = reader.initialOffset(), [], []
    while sum(sizes) < 15:
        start, at = at, next_offset(reader, at)
        partitions = reader.partitions(start, at)
        seen = [r for p in partitions for batch in reader.read(p) for r in batch.to_pylist()]
        tables = [pq.read_table(row["path"], partitioning=None) for row in seen]
        sizes.append(sum(table.num_rows for table in tables))
        ids += [number for table in tables for number in table["id"].to_pylist()]
    reader.stop()
    assert sorted(ids) == list(range(15))
    assert max(sizes) <= 4
    assert len(sizes) <= 5


def test_a_column_that_is_not_null_has_no_null_in_any_file(landing):
    schema = "id long NOT NULL, text string"
    (row,) = landing.land(writeSchema=schema)
    found = pq.read_schema(row["path"])
    assert [(field.name, field.nullable) for field in found] == [("id", False), ("text", True)]
    landing.add("1.json", {"id": None, "text": "x"})
    with pytest.raises(SluiceError, match="column 'id' does not fit the schema"):
        landing.land(writeSchema=schema, stateLocation=landing.root / "other")


@pytest.mark.effect_of("writeCompression", "writeFileBytes")
def test_the_form_of_the_files_is_as_the_options_say(landing):
    landing.add("0.json", *({"id": i, "text": os.urandom(60).hex()} for i in range(40_000)))
    form = {"writeCompression": "gzip", "writeFileBytes": "1m"}
    seen = landing.land(**form)
    assert len(seen) > 2
    groups = [pq.ParquetFile(row["path"]).metadata.row_group(0) for row in seen]
    assert {group.column(0).compression for group in groups} == {"GZIP"}
    assert sum(row["rows"] for row in seen) == 40_000


@pytest.mark.effect_of("writeTransform", "writeTransformSchema")
def test_a_filter_and_a_function_of_the_user_s_are_applied_on_the_way(landing):
    seen = landing.land(
        filter="id >= 5",
        writeTransform="pyspark_sluice.tests.spark.programs.write_transform:doubled",
        writeTransformSchema="twice long",
    )
    rows = pa.concat_tables(pq.read_table(row["path"]) for row in seen)
    assert sorted(rows["twice"].to_pylist()) == [10, 12, 14, 16, 18]


KEPT = {
    "writeTransform": "pyspark_sluice.tests.connector.host.transforms:with_file",
    "writeTransformSchema": "twice long, file string",
}


@pytest.mark.effect_of("writeFileColumn")
@pytest.mark.parametrize(
    "more", [{}, {"schemaEvolutionMode": "rescue"}, KEPT, {"filter": "id < 8"}]
)
def test_each_row_has_the_key_of_its_file(landing, more):
    # Small ones are parsed together; a large one is read alone, in several splits.
    landing.add("day=1/a b.json", *({"id": number} for number in range(3)))
    landing.add("day=2/c.json", *({"id": 0, "text": "x" * 1000} for _ in range(400)))
    schema = "id long, text string, _rescued_data string"
    options = {"writeFileColumn": "file", "maxSplitBytes": "100k", "writeSchema": schema, **more}
    seen = landing.land(**options)
    rows = pa.concat_tables(pq.read_table(row["path"], partitioning=None) for row in seen)
    counts = Counter(rows["file"].to_pylist())
    files = [landing.data / name for name in ("0.json", "day=1/a b.json", "day=2/c.json")]
    keys = [file_key(str(path)) for path in files]
    assert keys == file_keys(names_of(str(path) for path in files))
    assert [counts[key] for key in keys] == [8 if "filter" in more else 10, 3, 400]
    assert sum(counts.values()) == len(rows)
    assert rows.schema.field("file").type == pa.string()


def test_a_file_with_a_column_of_the_key_s_name_stores_no_schema(landing):
    # Beyond the sample, so that a reader meets it.
    landing.add("1.json", {"id": 2, "FILE": "x"})
    options = {"writeSchema": None, "writeFileColumn": "file", "inferSampleFiles": 1}
    with pytest.raises(SluiceError, match=r"a column of this name; found FILE"):
        landing.land(**options)
    assert len([*(landing.root / "state").rglob("schemas/*")]) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"writeTo": None}, "writeSchema: found without writeTo"),
        ({"writeTo": "{in}/table"}, "expected a separate directory"),
        ({"writeTransform": "a:b"}, "found without writeTransformSchema"),
        ({"writeTo": "webhdfs://host/x"}, "data files cannot be written there"),
        ({"writeSchema": "v variant"}, "variant columns cannot be written to data files"),
        ({"writePartitionBy": "nowhere"}, "writePartitionBy"),
        ({"writeCopy": "never"}, "found never with fileFormat=json; expected fileFormat=parquet"),
        ({"writeFileColumn": "TEXT"}, "writeFileColumn: the rows have a column of this name"),
        ({**KEPT, "writeFileColumn": "twice"}, "writeFileColumn: writeTransform has to keep"),
        ({**KEPT, "writeFileColumn": "origin"}, "writeFileColumn: writeTransform has to keep"),
        ({**IN_PLACE, "writeFileColumn": "file"}, "writeFileColumn: found with writeCopy=never"),
        ({**IN_PLACE, "filter": "id > 1"}, "filter: found with writeCopy=never"),
        ({**IN_PLACE, "writeFileBytes": "1g"}, "writeFileBytes: found with writeCopy=never"),
        ({**IN_PLACE, "cleanSource": "delete"}, "found never with cleanSource=delete"),
        ({**IN_PLACE, "onOverwrite": "reprocess"}, "found never with onOverwrite=reprocess"),
        ({**IN_PLACE, "schemaEvolutionMode": "rescue"}, "found rescue with writeCopy=never"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(landing, options, expected):
    given = {key: value and value.format(**{"in": landing.data}) for key, value in options.items()}
    with pytest.raises(SluiceError, match=expected):
        landing.land(**given)


def test_a_schema_for_the_stream_and_a_batch_read_are_refused_by_name(landing):
    rows = StructType().add("id", "long").add("text", "string")
    with pytest.raises(SluiceError, match="describe the rows of the data files with writeSchema"):
        landing.source().streamReader(rows).initialOffset()
    with pytest.raises(SluiceError, match=r"spark\.read hands rows to Spark"):
        landing.source().reader(rows).partitions()


def parquet_of(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


NOT_READABLE = "not a readable Parquet file"
HAS_TO_CHANGE = "cannot be added to a table as it is"


@pytest.mark.parametrize(
    ("name", "data", "expected", "found"),
    [
        ("a.zip", PACKERS[".zip"]({"a.parquet": b"PAR1"}), NOT_READABLE, ""),
        ("a.parquet", b"no Parquet at all", NOT_READABLE, ""),
        (
            "a.parquet",
            parquet_of(id=pa.array([1], pa.int32()), text=["a"]),
            HAS_TO_CHANGE,
            "found id int32",
        ),
        ("a.parquet", parquet_of(id=[1], more=["a"]), HAS_TO_CHANGE, "found a column more"),
        ("a.parquet", parquet_of(id=[1], text=[b"a"]), HAS_TO_CHANGE, "found text binary"),
    ],
    ids=["an archive", "no Parquet", "another integer", "another column", "bytes"],
)
def test_a_file_that_cannot_stay_as_it_is_is_named_and_the_batch_fails(
    landing, name, data, expected, found
):
    (landing.data / "0.json").unlink()
    (landing.data / name).write_bytes(data)
    with pytest.raises(SluiceError, match=expected) as error:
        landing.land(writeTo=landing.data, **IN_PLACE)
    assert name in str(error.value)
    assert found in str(error.value)

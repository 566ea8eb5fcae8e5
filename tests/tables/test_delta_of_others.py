"""Delta tables that others have made, with rules for rows that are in files already.

Each is made of the actions of the Delta protocol that Spark writes for such a table, since delta-rs
makes none of them.
"""

import datetime as dt
import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice.checkpoint_meta.documents.batch_mark import BatchMark, BatchOrigin
from pyspark_sluice.checkpoint_meta.documents.written_file import Removal
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tables.written_batch import WrittenBatch
from pyspark_sluice.tests.tables.sinks import LINEAGE, batch_of, identity_of, ids, written_batch

pytestmark = pytest.mark.slow

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def features(*names, reader=()):
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {**versions, "readerFeatures": [*reader], "writerFeatures": [*names]}


def column(name, kind, *, nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*columns):
    return {"type": "struct", "fields": [*columns]}


ID = column("id", "long")


def make_table(path, *columns, protocol=PLAIN, configuration=None, partition_by=()):
    (path / "_delta_log").mkdir()
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct(*columns)),
        "partitionColumns": [*partition_by],
        "configuration": configuration or {},
        "createdTime": 1_700_000_000_000,
    }
    actions = [{"protocol": protocol}, {"metaData": metadata}]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{0:020d}.json").write_text(text, encoding="utf-8")


def refused(path, batch, told, version=0):
    with pytest.raises(TableError, match=told):
        DeltaSink(str(path), {}).add(batch)
    assert DeltaTable(str(path)).version() == version


@pytest.mark.parametrize(
    ("columns", "configuration", "told"),
    [
        ([ID], {"delta.constraints.small": "id < 1"}, r"delta\.constraints\.small=id < 1"),
        ([ID], {"delta.columnMapping.mode": "name"}, r"delta\.columnMapping\.mode=name"),
        (
            [ID, column("o", struct(column("x", "long", **{"delta.invariants": "{}"})))],
            {},
            r"delta\.invariants of o\.x",
        ),
        (
            [ID, column("twice", "long", **{"delta.generationExpression": "id * 2"})],
            {},
            r"delta\.generationExpression of twice",
        ),
        (
            [ID, column("number", "long", **{"delta.identity.start": 1})],
            {},
            r"delta\.identity\.start of number",
        ),
    ],
)
def test_a_table_with_rules_for_rows_is_refused_by_their_names(
    tmp_path, columns, configuration, told
):
    make_table(tmp_path, *columns, configuration=configuration)
    refused(tmp_path, batch_of(tmp_path, 1, ids(0)), told)


def test_a_table_without_column_mapping_may_say_so(tmp_path):
    make_table(tmp_path, ID, configuration={"delta.columnMapping.mode": "none"})
    DeltaSink(str(tmp_path), {}).add(batch_of(tmp_path, 1, ids(0)))
    assert DeltaTable(str(tmp_path)).version() == 1


@pytest.mark.parametrize("feature", ["rowTracking", "inCommitTimestamp", "allowColumnDefaults"])
def test_a_feature_that_delta_rs_cannot_write_is_an_error_at_once(tmp_path, monkeypatch, feature):
    make_table(tmp_path, ID, protocol=features(feature))
    # No pause: what is certain is not tried again.
    monkeypatch.setattr("pyspark_sluice.tables.table_sink.delays", lambda first: iter(()))
    refused(tmp_path, batch_of(tmp_path, 1, ids(0)), "Unsupported table features")


def test_a_column_that_is_not_null_stays_so_where_files_have_no_nulls(tmp_path):
    make_table(tmp_path, column("id", "long", nullable=False))
    sink = DeltaSink(str(tmp_path), {})
    sink.add(batch_of(tmp_path, 1, ids(0)))
    sink.add(batch_of(tmp_path, 2, ids(3, more="new")))
    fields = {f.name: f.nullable for f in DeltaTable(str(tmp_path)).schema().fields}
    assert fields == {"id": False, "more": True}


def test_a_column_with_nan_may_be_not_null(tmp_path):
    make_table(tmp_path, ID, column("x", "double", nullable=False))
    nan = float("nan")
    DeltaSink(str(tmp_path), {}).add(batch_of(tmp_path, 1, ids(0, x=nan)))
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 3
    null = pa.scalar(None, pa.float64())
    rows = pa.concat_tables([ids(3, x=nan), ids(6, x=null)])
    refused(tmp_path, batch_of(tmp_path, 2, rows), "nulls in x", version=1)


def test_nulls_and_missing_columns_are_refused_where_the_table_is_not_null(tmp_path):
    inner = struct(column("x", "string", nullable=False))
    make_table(
        tmp_path,
        ID,
        column("text", "string", nullable=False),
        column("o", inner, nullable=False),
        column("some", {"type": "array", "elementType": "long", "containsNull": True}),
    )
    null = pa.scalar(None, pa.string())
    refused(tmp_path, batch_of(tmp_path, 1, ids(0, text=null, o={"x": "a"})), "nulls in text")
    refused(tmp_path, batch_of(tmp_path, 1, ids(0, text="a", o={"x": null.as_py()})), "nulls in o")
    refused(tmp_path, batch_of(tmp_path, 1, ids(0, o={"x": "a"})), "nulls in text")
    DeltaSink(str(tmp_path), {}).add(batch_of(tmp_path, 1, ids(0, text="a", o={"x": "a"})))
    assert DeltaTable(str(tmp_path)).version() == 1


def test_a_partition_column_that_is_not_null_has_its_value_in_the_path(tmp_path):
    day = column("day", "date", nullable=False)
    make_table(tmp_path, ID, day, partition_by=["day"])
    sink = DeltaSink(str(tmp_path), {})
    sink.add(batch_of(tmp_path, 1, ids(0, day="2024-01-02"), partition_by="day"))
    rows = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert [row["day"] for row in rows] == [dt.date(2024, 1, 2)] * 3
    nothing = ids(3, day=pa.scalar(None, pa.string()))
    with pytest.raises(TableError, match="nulls in day"):
        sink.add(batch_of(tmp_path, 2, nothing, partition_by="day"))


@pytest.mark.parametrize(
    ("kind", "fits", "does_not_fit"),
    [
        ("integer", "-7", "2147483648"),
        ("date", "2024-01-02", "2024-13-02"),
        ("timestamp", "2024-01-02 03:04:05.5", "now"),
        ("timestamp", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05 01:00"),
        ("timestamp_ntz", "2024-01-02 03:04:05", "2024-01-02T03:04:05Z"),
        ("boolean", "true", "abc"),
        ("double", "1.5", "abc"),
        ("decimal(5,2)", "1.50", "abc"),
        ("decimal(5,2)", "-1.00", "1.5"),
        ("decimal(9,8)", "1E-8", "3"),
        ("string", "abc", None),
    ],
)
def test_a_partition_value_that_would_make_the_table_unreadable_is_refused(
    tmp_path, kind, fits, does_not_fit
):
    ntz = ["timestampNtz"] if kind == "timestamp_ntz" else []
    protocol = features(*ntz, reader=ntz) if ntz else PLAIN
    make_table(tmp_path, ID, column("v", kind), partition_by=["v"], protocol=protocol)
    if does_not_fit is not None:
        batch = batch_of(tmp_path, 1, ids(0, v=does_not_fit), partition_by="v")
        refused(tmp_path, batch, f"does not fit the table's column: .*v: .*{does_not_fit}")
    sink = DeltaSink(str(tmp_path), {})
    sink.add(batch_of(tmp_path, 1, ids(0, v=fits), partition_by="v"))
    sink.add(batch_of(tmp_path, 2, ids(3, v=pa.scalar(None, pa.string())), partition_by="v"))
    assert DeltaTable(str(tmp_path)).to_pyarrow_table()["v"].null_count == 3


def test_rows_with_a_negative_fraction_in_a_partition_are_added_and_not_written_again(tmp_path):
    file = column("file", "string")
    make_table(tmp_path, ID, file, column("v", "decimal(5,2)"), partition_by=["v"])
    sink = DeltaSink(str(tmp_path), {})
    for number, value in enumerate(["1.10", "-1.10", "-1.10", "-2.00"], 1):
        rows = ids(3 * number, file=str(number), v=value)
        sink.add(batch_of(tmp_path, number, rows, partition_by="v"))
    told = r"found -1\.10 in a partition column: v"
    with pytest.raises(TableError, match=told):
        sink.compact(1024 * 1024)
    added = batch_of(tmp_path, 5, ids(3, file="1", v="1.10"), partition_by="v")
    mark = BatchMark.of(identity_of(5))
    removal = Removal(column="file", keys=["1"], values={})
    batch = WrittenBatch.of_files(
        [(file, mark) for file in added.files],
        LINEAGE,
        BatchOrigin(BatchMark.of(identity_of(4))),
        {},
        [(removal, mark)],
    )
    refused(tmp_path, batch, told, version=4)


def test_rows_of_decimal_partitions_without_such_a_value_are_compacted(tmp_path):
    file = column("file", "string")
    make_table(tmp_path, ID, file, column("v", "decimal(5,2)"), partition_by=["v"])
    sink = DeltaSink(str(tmp_path), {})
    for number, value in enumerate(["1.10", "1.10", "-2.00", None], 1):
        rows = ids(3 * number, file=str(number), v=pa.scalar(value, pa.string()))
        sink.add(batch_of(tmp_path, number, rows, partition_by="v"))
    assert sink.compact(1024 * 1024) == {"files_removed": 2, "files_added": 1}
    assert len(DeltaTable(str(tmp_path)).to_pyarrow_table()) == 12


def test_a_column_that_differs_only_in_case_is_refused_by_name(tmp_path):
    make_table(tmp_path, column("ID", "long"), column("o", struct(column("Xs", "long"))))
    refused(tmp_path, batch_of(tmp_path, 1, ids(0)), "id is ID in the table")
    upper = pa.table({"ID": [1], "o": [{"xs": 1}]})
    refused(tmp_path, batch_of(tmp_path, 1, upper), r"o\.xs is Xs in the table")


def test_a_table_is_made_not_null_only_where_all_files_promise_it(tmp_path):
    sure = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("a", pa.int64(), False)])
    one = batch_of(tmp_path, 1, pa.table({"id": [1], "a": [1]}, schema=sure))
    other = batch_of(
        tmp_path, 1, pa.table({"id": [2]}, schema=pa.schema([sure.field("id")])), reader=1
    )
    both = written_batch([*one.files, *other.files])
    DeltaSink(str(tmp_path), {}).add(both)
    fields = {f.name: f.nullable for f in DeltaTable(str(tmp_path)).schema().fields}
    assert fields == {"id": False, "a": True}

"""Batches in a Delta table: each once, through repeats, races, kills and lost answers."""

import json
import re
import signal
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from pyspark_sluice.checkpoint_meta.documents.batch_mark import NO_BATCH
from pyspark_sluice.errors import OptionError, TableError
from pyspark_sluice.reader.direct_write.unreferenced_files import sweep
from pyspark_sluice.tables import table_sink
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import chain
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.tables.one_batch import ROWS, STEPS, OneBatch
from pyspark_sluice.tests.tables.sinks import batch_of, ids, in_place, processes, written_batch


@pytest.fixture
def sink(tmp_path):
    return DeltaSink(str(tmp_path), {})


def rows_of(table, column="id"):
    return sorted(DeltaTable(str(table)).to_pyarrow_table(columns=[column])[column].to_pylist())


def test_a_missing_table_is_made_and_a_batch_is_added_in_one_version_however_often(tmp_path, sink):
    for number in (1, 2):
        batch = batch_of(tmp_path, number, ids(3 * number))
        for _ in range(2):
            sink.add(batch)
    assert rows_of(tmp_path) == [*range(3, 9)]
    assert DeltaTable(str(tmp_path)).version() == 1


def test_the_recipe_of_a_refused_wider_type_lets_the_batch_in(tmp_path):
    sink, table = DeltaSink(str(tmp_path), {}), str(tmp_path)
    sink.add(batch_of(tmp_path, 1, ids(0, v=pa.scalar(1, pa.int32()))))
    batch = batch_of(tmp_path, 2, ids(3, v=1 << 40))
    with pytest.raises(TableError, match="mode='overwrite', schema_mode='overwrite'"):
        sink.add(batch)
    rows = (
        DeltaTable(table).to_pyarrow_table().cast(pa.schema([(n, pa.int64()) for n in ("id", "v")]))
    )
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")
    for _ in range(2):
        sink.add(batch)
    assert rows_of(tmp_path, "v") == [1] * 3 + [1 << 40] * 3


FEATURES = (
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    *("columnMapping", "identityColumns", "deletionVectors", "rowTracking", "timestampNtz"),
    *("typeWidening", "typeWidening-preview", "domainMetadata", "v2Checkpoint", "clustering"),
    *("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "vacuumProtocolCheck"),
    *("inCommitTimestamp", "variantType", "variantType-preview", "variantShredding-preview"),
    *("allowColumnDefaults", "materializePartitionColumns", "a-feature-to-come"),
)
READ_TOO = ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint")


def with_feature(root, feature):
    """An empty table, of which a reader (or only a writer) has to know a feature."""
    DeltaTable.create(str(root), schema=pa.schema([pa.field("id", pa.int64())]))
    log = root / "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    is_read = feature.startswith(("variant", "vacuum", "catalog", *READ_TOO))
    known = {"minReaderVersion": 3 if is_read else 1, "minWriterVersion": 7}
    for action in actions:
        if "protocol" in action:
            readers = {"readerFeatures": [feature]} if is_read else {}
            action["protocol"] = {**known, **readers, "writerFeatures": [feature]}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_that_delta_rs_refuses_in_a_commit_is_refused_before(tmp_path, feature):
    with_feature(tmp_path, feature)
    table = DeltaTable(str(tmp_path))
    try:
        table.create_write_transaction([], "append", table.schema())
        is_written = True
    except CommitFailedError:
        is_written = False
    sink = DeltaSink(str(tmp_path), {})
    if is_written:
        assert sink.identity()
    else:
        with pytest.raises(TableError, match=f"with these features.*found {feature};"):
            sink.identity()


def test_rows_of_a_column_that_the_table_has_renamed_are_those_of_the_new_name(tmp_path, sink):
    write_deltalake(str(tmp_path), pa.table({"f": ["of g"], "stored": ["of f"]}))
    log = tmp_path / "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    fields = []
    for number, (name, stored) in enumerate([("f", "stored"), ("g", "f")], 1):
        mapped = {"columnMapping.id": number, "columnMapping.physicalName": stored}
        metadata = {f"delta.{key}": value for key, value in mapped.items()}
        fields.append({"name": name, "type": "string", "nullable": True, "metadata": metadata})
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            schema = {"type": "struct", "fields": fields}
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    counts = sink.rows_by(sink.opened(), "f")
    assert [values.to_pylist() for values, _ in counts] == [["of f"]]


def test_a_table_that_its_catalog_manages_is_refused_by_that_name(tmp_path, sink):
    with_feature(tmp_path, "catalogManaged")
    with pytest.raises(TableError, match=r"catalogManaged.*go through its catalog"):
        sink.columns()


def test_two_queries_may_write_to_one_table(tmp_path, sink):
    sink.add(batch_of(tmp_path, 5, ids(0), previous=NO_BATCH))
    sink.add(batch_of(tmp_path, 1, ids(3), lineage="f" * 16))
    assert rows_of(tmp_path) == [*range(6)]


def test_new_columns_are_added_and_narrower_integers_fit(tmp_path, sink):
    sink.add(batch_of(tmp_path, 1, ids(0, o={"x": 1}, n=pa.scalar(1, pa.int32()))))
    more = {"o": {"x": 1, "y": "new"}, "s": "new", "n": pa.scalar(2, pa.int16())}
    sink.add(batch_of(tmp_path, 2, ids(3, **more)))
    frame = pl.read_delta(str(tmp_path)).sort("id")
    assert frame["s"].to_list() == [None] * 3 + ["new"] * 3
    assert frame["o"].struct.field("y").to_list() == [None] * 3 + ["new"] * 3
    assert frame["n"].sum() == 9


@pytest.mark.parametrize(
    ("had", "has", "told"),
    [
        ({"x": 1}, {"x": "1"}, r"v\.x is string, and long in the table"),
        (pa.scalar(1, pa.int32()), 1 << 40, "v is long, and integer in the table"),
        (pa.scalar(1, pa.float32()), 1.5, "v is double, and float in the table"),
    ],
)
def test_a_column_of_another_or_a_wider_type_is_refused_by_name_and_nothing_is_added(
    tmp_path, sink, had, has, told
):
    sink.add(batch_of(tmp_path, 1, ids(0, v=had)))
    with pytest.raises(TableError, match=told):
        sink.add(batch_of(tmp_path, 2, ids(3, v=has, more="new")))
    assert rows_of(tmp_path) == [0, 1, 2]
    assert DeltaTable(str(tmp_path)).version() == 0


@pytest.mark.parametrize("partition_by", ["", "day"])
@pytest.mark.parametrize("append_only", [False, True])
def test_new_columns_and_their_files_are_in_one_version_that_removes_nothing(
    tmp_path, sink, partition_by, append_only
):
    sink.add(batch_of(tmp_path, 1, ids(0, day="a"), partition_by=partition_by))
    if append_only:
        DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.appendOnly": "true"})
    before = DeltaTable(str(tmp_path))
    sink.add(batch_of(tmp_path, 2, ids(3, day="a", text="new"), partition_by=partition_by))
    after = DeltaTable(str(tmp_path))
    assert after.version() == before.version() + 1
    assert {*before.file_uris()} < {*after.file_uris()}
    assert after.metadata().configuration == before.metadata().configuration
    assert pl.read_delta(str(tmp_path)).sort("id")["text"].to_list() == [None] * 3 + ["new"] * 3


def test_a_file_without_statistics_stays_when_columns_are_added(tmp_path, sink):
    first = batch_of(tmp_path, 1, ids(0))
    plain = [file.model_copy(update={"statistics": "{}"}) for file in first.files]
    sink.add(written_batch(plain))
    sink.add(batch_of(tmp_path, 2, ids(3, text="new")))
    assert rows_of(tmp_path) == [*range(6)]


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us")])
def test_a_table_with_nested_columns_only_and_of_an_older_protocol_takes_new_ones(
    tmp_path, sink, kind
):
    sink.add(batch_of(tmp_path, 1, pa.table({"o": pa.array([{"x": 1}])})))
    more = pa.struct([("x", pa.int64()), ("y", kind)])
    sink.add(batch_of(tmp_path, 2, pa.table({"o": pa.array([{"x": 2, "y": 3}], more)})))
    sink.add(
        batch_of(tmp_path, 3, pa.table({"o": pa.array([{"x": 3}]), "id": pa.array([4], kind)}))
    )
    rows = DeltaTable(str(tmp_path)).to_pyarrow_table()
    inner = rows["o"].combine_chunks()
    seen = zip(
        inner.field("x").to_pylist(),
        inner.field("y").cast(pa.int64()).to_pylist(),
        rows["id"].cast(pa.int64()).to_pylist(),
        strict=True,
    )
    assert sorted(seen) == [(1, None, None), (2, 3, None), (3, None, 4)]


def test_files_that_a_vacuum_has_taken_are_named_before_anything_is_added(tmp_path, sink):
    sink.add(batch_of(tmp_path, 1, ids(0)))
    batch = batch_of(tmp_path, 2, ids(3))
    DeltaTable(str(tmp_path)).vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)
    with pytest.raises(TableError, match=r"data files of a batch are missing.*: 1 of"):
        sink.add(batch)
    assert rows_of(tmp_path) == [0, 1, 2]


def test_partition_values_are_read_back_with_any_characters(tmp_path):
    names = ["plain", "a/b", "50%", "ü ä", "x=y", "a:b?c#d", None]
    table = pa.table({"id": range(len(names)), "who": pa.array(names)})
    DeltaSink(str(tmp_path), {}).add(batch_of(tmp_path, 1, table, partition_by="who"))
    found = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert {row["id"]: row["who"] for row in found} == dict(enumerate(names))
    assert pl.read_delta(str(tmp_path)).sort("id")["who"].to_list() == names


def test_conditions_skip_no_file_that_has_a_row(tmp_path, sink):
    for number in range(4):
        values = [Decimal(number) + Decimal("0.25"), Decimal(number)]
        table = pa.table(
            {
                "id": [2 * number, 2 * number + 1],
                "text": ["x" * 40 + str(number), "a"],
                "v": [float("nan") if number == 2 else float(number), -1.0],
                "d": pa.array(values, pa.decimal128(10, 2)),
            }
        )
        sink.add(batch_of(tmp_path, number + 1, table))
    frame = pl.scan_delta(str(tmp_path))
    assert frame.filter(pl.col("text") > "x" * 40).collect()["id"].sort().to_list() == [0, 2, 4, 6]
    assert frame.filter(pl.col("v") >= 3.0).filter(pl.col("v").is_not_nan()).collect()[
        "id"
    ].to_list() == [6]
    assert frame.filter(pl.col("d") == Decimal("3.25")).collect()["id"].to_list() == [6]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("is_lost_answer", [False, True])
def test_a_batch_that_another_writer_or_a_lost_answer_has_added_is_not_added_again(
    tmp_path, sink, monkeypatch, number, is_lost_answer
):
    late, early = sink, DeltaSink(str(tmp_path), {})
    for before in range(1, number):
        early.add(batch_of(tmp_path, before, ids(3 * before)))
    commit = late._commit

    def overtaken(table, batch):
        monkeypatch.undo()
        if is_lost_answer:
            commit(table, batch)
            raise OSError(5, "the answer is lost")
        early.add(batch)
        commit(table, batch)

    monkeypatch.setattr(late, "_commit", overtaken)
    late.add(batch_of(tmp_path, number, ids(3 * number)))
    assert rows_of(tmp_path) == [*range(3, 3 * number + 3)]


def test_a_table_in_a_bucket_takes_each_batch_once(bucket, server):
    storage = server.options
    url = f"s3://{bucket}/lake/orders"
    sink = DeltaSink(url, storage)
    for number in (1, 2, 2):
        sink.add(batch_of(url, number, ids(3 * number), storage=storage))
    found = DeltaTable(url, storage_options=sink.client_options).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == [*range(3, 9)]


def test_a_batch_that_never_gets_its_turn_is_an_error(tmp_path, sink, monkeypatch):
    def conflicts(table, batch):
        raise CommitFailedError("another writer was first")

    monkeypatch.setattr(sink, "_commit", conflicts)
    monkeypatch.setattr(table_sink, "_TRIES", 2)
    with pytest.raises(TableError, match="CommitFailedError: another writer was first, after 2"):
        sink.add(batch_of(tmp_path, 1, ids(0)))


def test_files_next_to_the_table_are_refused(tmp_path):
    with pytest.raises(TableError, match="outside the directory of its table"):
        DeltaSink(str(tmp_path / "table"), {}).add(batch_of(tmp_path / "files", 1, ids(0)))


@pytest.mark.parametrize("name", ["a:b.parquet", "a\tb.parquet", "a\nb.parquet"])
def test_a_name_that_no_reader_of_the_log_would_find_is_refused(tmp_path, name):
    with pytest.raises(TableError, match=re.escape(repr(name))):
        DeltaSink(str(tmp_path), {}).add(in_place(tmp_path / name, ids(0)))
    assert not (tmp_path / "_delta_log").exists()


def test_a_colon_below_a_folder_is_no_scheme(tmp_path):
    (tmp_path / "x").mkdir()
    DeltaSink(str(tmp_path), {}).add(in_place(tmp_path / "x/a:b.parquet", ids(0)))
    assert rows_of(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("table", ["hdfs://namenode:8020/table", "sftp://host/table"])
def test_a_place_that_deltalake_does_not_know_is_refused_by_name(table):
    with pytest.raises(OptionError, match="a Delta table cannot be written there") as error:
        DeltaSink(table, {})
    assert f"found the file system {table.partition(':')[0]!r}" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_loses_and_repeats_nothing_and_leaves_no_file(tmp_path, step):
    batch = OneBatch(tmp_path)
    chain(batch.store, 1)
    killed = processes().Process(target=batch.run, args=(step,))
    killed.start()
    killed.join(PATIENCE)
    assert killed.exitcode == -signal.SIGKILL
    for _ in range(2):
        batch.run()
        assert batch.rows() == ROWS
    found = sweep(batch.place, batch.store, delete=True)
    began_again = step in ("when the rows are in a local file", "when the file is published")
    assert (bool(found.superseded), found.undecided) == (began_again, [])
    below = str(tmp_path / "table" / "_delta_log")
    left = [path for path in batch.place.files() if not path.startswith(below)]
    assert sorted(left) == sorted(batch.files())

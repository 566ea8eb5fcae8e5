"""One query whose host changes between Spark and `pyspark_sluice.run`: nothing lost or doubled."""

import json
from collections import Counter

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.errors import StreamingQueryException

from pyspark_sluice import run, tables
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.connector.host.query import Query, keywords
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.soak import HostSoak
from pyspark_sluice.tests.spark.soak_grounds import OneMachine

SCHEMA = "id long, text string"


def options_of(lake, **more):
    return {
        "path": str(lake.source),
        "fileFormat": "json",
        "checkpointLocation": str(lake.checkpoint),
        "writeTo": str(lake.sink),
        "writeSchema": SCHEMA,
        **more,
    }


def by_spark(lake, sink=None, **more):
    options = options_of(lake, **more)
    path = options.pop("path")
    reader = lake.spark.readStream.format("sluice").options(**options)
    lake.finish(reader.load(path).writeStream.foreachBatch(sink or tables.delta(str(lake.sink))))


def embedded(lake, sink=None, **more):
    # The process of a query of Spark ends a moment after the query.
    return run(**keywords(options_of(lake, **more)), to=sink or f"delta:{lake.sink}", wait=PATIENCE)


def numbers(lake, log):
    return sorted(int(p.name) for p in (lake.checkpoint / log).iterdir() if p.name.isdecimal())


def fails(batch, _):
    batch.collect()
    message = "the table is away"
    raise RuntimeError(message)


@pytest.mark.sample("hosts0", why="the same batch, begun by the other host")
@pytest.mark.parametrize("hosts", [(by_spark, embedded), (embedded, by_spark)])
def test_a_batch_that_one_host_began_is_finished_by_the_other_without_reading_again(lake, hosts):
    first, second = hosts
    landed = lake.land("0.json", range(10))
    with pytest.raises(Exception, match="the table is away"):
        first(lake, fails)
    assert (numbers(lake, "offsets"), (lake.checkpoint / "commits" / "0").exists()) == ([0], False)
    # Its rows are in data files already.
    landed.unlink()
    second(lake)
    assert lake.in_table() == lake.landed
    lake.land("1.json", range(10, 20))
    first(lake)
    lake.land("2.json", range(20, 30))
    second(lake)
    assert lake.in_table() == lake.landed
    # One transaction a batch, numbered without a gap across hosts.
    assert numbers(lake, "offsets") == numbers(lake, "commits") == [0, 1, 2]
    assert len(DeltaTable(str(lake.sink)).history()) == 3
    # Spark keeps its settings of the query in the offsets, and the embedded host passes them on.
    (header,) = (lake.checkpoint / "offsets" / "2").read_text().splitlines()[1:2]
    assert json.loads(header)["conf"]


def test_a_checkpoint_of_a_query_that_handed_rows_to_spark_is_refused(lake):
    lake.land("0.json", range(10))
    options = options_of(lake)
    path = options.pop("path")
    del options["writeTo"], options["writeSchema"]
    reader = lake.spark.readStream.format("sluice").options(**options).schema(SCHEMA)
    with pytest.raises(StreamingQueryException, match="the table is away"):
        lake.finish(reader.load(path).writeStream.foreachBatch(fails))
    with pytest.raises(SluiceError, match="first read without writeTo"):
        embedded(lake)


@pytest.mark.thorough("hosts take turns above, and are killed alone in test_crash.py")
def test_kills_around_changes_of_the_host_lose_and_double_nothing(tmp_path):
    assert HostSoak(OneMachine(tmp_path / "root", direct=True), 6, seed=3, changes=2).run()


def test_an_iceberg_table_in_a_bucket_takes_files_with_the_credentials_that_it_is_given(
    tmp_path, bucket, server
):
    storage = server.options
    properties = {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"s3://{bucket}/lake",
        "s3.endpoint": server.url,
        "s3.region": storage["client_kwargs"]["region_name"],
        "s3.access-key-id": storage["key"],
        "s3.secret-access-key": storage["secret"],
    }
    catalog = SqlCatalog("x", **properties)
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.orders", pa.schema([("id", pa.int64())]))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]")
    (tmp_path / "in").mkdir()
    options = {"path": str(tmp_path / "in"), "fileFormat": "json", "writeSchema": SCHEMA}
    options |= {"checkpointLocation": str(tmp_path / "ck"), "writeTo": f"s3://{bucket}/rows"}
    for first in (0, 10):
        lines = [json.dumps({"id": i, "text": "x"}) + "\n" for i in range(first, first + 10)]
        (tmp_path / "in" / f"{first}.json").write_text("".join(lines))
        sink = tables.iceberg(table, storage_options=storage)
        run(**keywords({**options, "storageOptions": storage}), to=sink)
    table = catalog.load_table("lake.orders")
    rows = table.scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(20))
    assert rows.column_names == ["id", "text"]
    # The tasks wrote files of one bucket each, and nothing was written again at the commit.
    files = table.inspect.files()
    parts = Counter(part["id_bucket_2"] for part in files["partition"].to_pylist())
    assert parts == {0: 2, 1: 2}
    names = [path.rpartition("/")[2] for path in files["file_path"].to_pylist()]
    assert not [name for name in names if name.startswith("ids-")]


@pytest.mark.drivers
def test_a_run_by_spark_ends_with_the_same_line_as_one_without(tmp_path):
    query = Query(tmp_path)
    query.land("0.json", range(5))
    for said in ("run finished: 1 batch, 5 rows in 1 data file (", "1 changed file not read again"):
        code, output, errors = query.run("--spark", "local[1]", is_alone=False)
        assert code == 0, errors
        assert said in output.splitlines()[-1]
        query.land("0.json", range(7))
    assert query.in_table() == Counter(range(5))

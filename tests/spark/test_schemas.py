"""Without `.schema(...)`: inferred for every format, stored, grown when new columns come."""

from __future__ import annotations

import json
import os
from collections import Counter

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

from pyspark_sluice import run_with_evolution
from pyspark_sluice.tests.patience import PATIENCE

TABLES = (
    pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}),
    pa.table({"name": ["c"], "price": [2.5], "id": pa.array([3], pa.int64())}),
)
ROWS = [(1, "a", None, "eu"), (2, "b", None, "eu"), (3, "c", 2.5, "us")]


def _json(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _avro(table, path):
    import fastavro

    kinds = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}
    fields = [{"name": f.name, "type": kinds[f.type]} for f in table.schema]
    schema = {"type": "record", "name": "row", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), table.to_pylist())


WRITERS = {
    "json": _json,
    "csv": pa_csv.write_csv,
    "parquet": pq.write_table,
    "orc": pa_orc.write_table,
    "avro": _avro,
    "arrow": lambda table, path: pa_feather.write_feather(table, str(path)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_schema_of_every_format_is_inferred_and_merged_over_files(spark, tmp_path, name):
    for table, region in zip(TABLES, ("eu", "us"), strict=True):
        (tmp_path / f"region={region}").mkdir()
        WRITERS[name](table, tmp_path / f"region={region}" / "0")
    reader = spark.read.format("sluice").option("fileFormat", name)
    reader = reader.options(header=True) if name == "csv" else reader
    frame = reader.options(inferColumnTypes=True).load(str(tmp_path))
    types = dict(frame.dtypes)
    assert types == {"id": "bigint", "name": "string", "price": "double", "region": "string"}
    assert sorted(map(tuple, frame.select("id", "name", "price", "region").collect())) == ROWS


def land(lake, name, *rows):
    (lake.source / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def start(lake, **options):
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    reader = reader.option("checkpointLocation", str(lake.checkpoint)).options(**options)
    writer = reader.load(str(lake.source)).writeStream.trigger(availableNow=True)

    def sink(frame, batch):
        frame.write.mode("overwrite").json(str(lake.sink / f"batch={batch}"))

    return lake.run(writer.foreachBatch(sink).option("checkpointLocation", str(lake.checkpoint)))


def ingested(lake):
    rows = []
    for path in lake.sink.glob("batch=*/*.json"):
        rows += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(rows, key=lambda row: int(row["id"]))


def test_a_new_column_stops_the_query_once_and_a_restart_has_all_of_it(lake):
    land(lake, "0.json", {"id": 1, "at": {"zip": "a"}})
    start(lake).awaitTermination(PATIENCE)
    land(lake, "1.json", {"id": 2, "new": True, "at": {"zip": "b", "city": "x"}})
    land(lake, "2.json", {"id": 3, "other": [1]})
    with pytest.raises(Exception, match="SchemaEvolvedError") as caught:
        start(lake, parallelism=1).awaitTermination(PATIENCE)
    for name in ("new string", "at.city string", "other list", "version 1 of the schema"):
        assert name in str(caught.value)
    assert "run_with_evolution" in str(caught.value).split("SQLSTATE")[0]
    start(lake).awaitTermination(PATIENCE)
    assert ingested(lake) == [
        {"id": "1", "at": {"zip": "a"}},
        {"id": "2", "at": {"zip": "b", "city": "x"}, "new": "true"},
        {"id": "3", "other": ["1"]},
    ]
    assert len(list((lake.state / "schemas").iterdir())) == 2


def test_the_helper_starts_a_query_again_until_it_ends_and_only_for_new_columns(lake):
    for number in range(2):
        land(lake, f"{number}.json", {"id": number, f"column{number}": "x"})
        run_with_evolution(lambda: start(lake), timeout=PATIENCE)
    assert Counter(row["id"] for row in ingested(lake)) == Counter("01")
    (lake.source / "bad.json").write_text('{"id": 3')
    with pytest.raises(Exception, match="MalformedDataError"):
        run_with_evolution(lambda: start(lake), timeout=PATIENCE)


def test_numbers_in_csv_grow_to_double_and_to_longer_decimals(lake):
    mode = {"schemaEvolutionMode": "addNewColumnsWithTypeWidening", "header": "true"}
    hints = {"fileFormat": "csv", "schemaHints": "id int, n int, d decimal(5,2)"}
    for number, values in enumerate(("1,2.5", "1.5,12345.67", "1e3,1")):
        (lake.source / f"{number}.csv").write_text(f"id,n,d\n{number},{values}\n")
        run_with_evolution(lambda: start(lake, **mode, **hints), timeout=PATIENCE)
    assert ingested(lake) == [
        {"id": 0, "n": 1, "d": 2.5},
        {"id": 1, "n": 1.5, "d": 12345.67},
        {"id": 2, "n": 1000.0, "d": 1.0},
    ]
    frame = lake.spark.readStream.format("sluice").options(**mode, **hints)
    frame = frame.option("checkpointLocation", str(lake.checkpoint)).load(str(lake.source))
    assert dict(frame.dtypes) == {"id": "int", "n": "double", "d": "decimal(7,2)"}


def test_rescue_keeps_what_is_new_and_none_leaves_it_out(lake):
    land(lake, "0.json", {"id": 1, "at": {"zip": "a"}})
    os.utime(lake.source / "0.json", (1, 1))
    land(lake, "1.json", {"id": 2, "new": 1, "at": {"zip": "b", "city": "x"}})
    # The schema is that of the oldest file.
    start(lake, schemaEvolutionMode="rescue", inferSampleFiles=1).awaitTermination(PATIENCE)
    land(lake, "2.json", {"id": 3, "new": 1})
    start(lake, schemaEvolutionMode="none").awaitTermination(PATIENCE)
    assert ingested(lake) == [
        {"id": "1", "at": {"zip": "a"}},
        {"id": "2", "at": {"zip": "b"}, "_rescued_data": '{"new":1,"at":{"city":"x"}}'},
        {"id": "3"},
    ]

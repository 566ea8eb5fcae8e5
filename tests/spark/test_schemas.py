"""Without `.schema(...)`: a schema that is stored, and grows when new columns come."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice import run_with_evolution
from pyspark_sluice.tests.patience import PATIENCE


def land(lake, name, *rows):
    (lake.source / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def start(lake):
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    writer = reader.load(str(lake.source)).writeStream.trigger(availableNow=True)

    def sink(frame, batch):
        frame.write.mode("overwrite").json(str(lake.sink / f"batch={batch}"))

    return lake.run(writer.foreachBatch(sink).option("checkpointLocation", str(lake.checkpoint)))


def ingested(lake):
    rows = []
    for path in lake.sink.glob("batch=*/*.json"):
        rows += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.thorough("test_restart_on_evolution.py has the helper without Spark")
def test_the_helper_starts_a_query_again_with_new_columns_and_for_no_other_error(lake):
    land(lake, "0.json", {"id": 1, "at": {"zip": "a"}})
    run_with_evolution(lambda: start(lake), timeout=PATIENCE)
    land(lake, "1.json", {"id": 2, "new": True, "at": {"zip": "b", "city": "x"}})
    land(lake, "2.json", {"id": 3, "other": [1]})
    run_with_evolution(lambda: start(lake), timeout=PATIENCE)
    assert ingested(lake) == [
        {"id": "1", "at": {"zip": "a"}},
        {"id": "2", "at": {"zip": "b", "city": "x"}, "new": "true"},
        {"id": "3", "other": ["1"]},
    ]
    (lake.source / "bad.json").write_text('{"id": 3')
    with pytest.raises(Exception, match="MalformedDataError"):
        run_with_evolution(lambda: start(lake), timeout=PATIENCE)

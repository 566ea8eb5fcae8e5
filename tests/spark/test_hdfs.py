"""A query of Spark with its whole checkpoint and its data on HDFS."""

from __future__ import annotations

import json
from collections import Counter

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END


def test_a_query_with_state_data_and_sink_on_hdfs_goes_on_where_it_stopped(hdfs, spark):
    home = f"hdfs://{hdfs.authority}/spark"
    files, root = open_storage(home, {})
    landed = Counter[int]()
    for number in range(3):
        ids = range(number * 10, number * 10 + 10)
        lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
        files.create(f"{root}/in/{number} %.json", lines.encode())
        landed.update(ids)
        reader = spark.readStream.format("sluice").schema(
            "id long, _metadata struct<file_path: string>"
        )
        given = {"fileFormat": "json", "checkpointLocation": f"{home}/ck", **FOR_RUNS_THAT_END}
        given |= {"cleanSource": "archive", "sourceArchiveDir": f"{home}/archive"}
        given |= {"cleanSourceRetention": "0s", "cleanSourceWhileRetained": "true"}
        rows = reader.options(**given).load(f"{home}/in").select("id", "_metadata.file_path")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{home}/ck")
        query = writer.trigger(availableNow=True).start(f"{home}/sink")
        assert query.awaitTermination(PATIENCE)
    seen = spark.read.parquet(f"{home}/sink").collect()
    assert Counter(row.id for row in seen) == landed
    assert {row.file_path for row in seen} == {f"{home}/in/{n}%20%25.json" for n in range(3)}
    # What the first run has read was moved; what the newest batch has read may be read again.
    assert f"{root}/archive/0 %.json" in set(files.files(f"{root}/archive"))
    assert spark.read.format("sluice").option("fileFormat", "json").load(f"{home}/in").count() > 0

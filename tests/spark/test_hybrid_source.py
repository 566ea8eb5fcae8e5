"""Files, then a log, through Spark."""

from __future__ import annotations

from collections import Counter

import pytest

from pyspark_sluice.tests.connector.source.archived import Logs
from pyspark_sluice.tests.patience import PATIENCE

SCHEMA = "partition string, position long, line string"
PARTITIONS = 6


def _tuples(rows):
    return Counter((row["partition"], row["position"], row["line"]) for row in rows)


def _stream(lake, logs, trigger):
    reader = lake.spark.readStream.format("sluice").schema(SCHEMA)
    reader = reader.option(
        "source", "pyspark_sluice.examples.log_source.archived_log:ArchivedLog"
    ).option("sourceOptions", '{"slice": 20}')
    reader = reader.option("discoveryInterval", "100ms").option("maxFilesPerTrigger", "2")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    writer = reader.load(str(logs.place)).writeStream.format("parquet").trigger(**trigger)
    writer = writer.option("checkpointLocation", str(lake.checkpoint))
    return lake.run(writer, str(lake.sink))


@pytest.mark.thorough("the suite of sources reads the same source without Spark")
def test_a_run_that_ends_and_a_stream_read_files_and_log_exactly_once(lake, until):
    logs = Logs(lake.source)
    landed = [row for part in range(PARTITIONS) for row in logs.land(part, 50)]
    query = _stream(lake, logs, {"availableNow": True})
    assert query.awaitTermination(PATIENCE)

    def ingested():
        return _tuples(lake.spark.read.parquet(str(lake.sink)).collect())

    assert ingested() == _tuples(landed)
    query = _stream(lake, logs, {"processingTime": "0 seconds"})
    landed += logs.land(0, 30)
    landed += logs.land(9, 10, archived=0)
    until(lambda: ingested().total() == len(landed), "later lines")
    assert ingested() == _tuples(landed)
    assert query.lastProgress["sources"][0]["latestOffset"] is not None

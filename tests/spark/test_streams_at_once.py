"""Several streams of one session that start at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE


@pytest.mark.thorough("sees many streams start at once")
def test_streams_of_a_registered_source_write_no_new_name_into_their_shared_environment(
    spark, tmp_path
):
    # Spark has no lock there: two that add a name at once can spoil it for the whole session.
    session = spark.newSession()
    pyspark_sluice.register(session)
    sources = session._jsparkSession.sessionState().dataSourceManager()
    shared = sources.lookupDataSource("sluice").dataSourceCls().envVars()
    before = set(shared.keySet())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')

    def ingest(number):
        place = {"checkpointLocation": str(tmp_path / f"checkpoint-{number}")}
        reader = session.readStream.format("sluice").schema("id int").options(**place)
        frame = reader.option("fileFormat", "json").load(str(tmp_path / "in"))
        writer = frame.writeStream.format("parquet").options(**place).trigger(availableNow=True)
        sink = str(tmp_path / f"sink-{number}")
        assert writer.start(sink).awaitTermination(PATIENCE)
        return session.read.parquet(sink).count()

    with ThreadPoolExecutor(8) as threads:
        for first in range(0, 24, 8):
            assert list(threads.map(ingest, range(first, first + 8))) == [1] * 8
    assert set(shared.keySet()) == before >= {"SPARK_BUFFER_SIZE"}
    assert "SPARK_BUFFER_SIZE" not in spark.sparkContext.environment

"""Several streams of one session that start at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END


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
    assert before >= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE", "SPARK_LOCAL_DIRS"}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')

    def ingest(number):
        place = {"checkpointLocation": str(tmp_path / f"checkpoint-{number}")}
        reader = session.readStream.format("sluice").schema("id int")
        reader = reader.options(**place, **FOR_RUNS_THAT_END)
        frame = reader.option("fileFormat", "json").load(str(tmp_path / "in"))
        writer = frame.writeStream.format("parquet").options(**place).trigger(availableNow=True)
        sink = str(tmp_path / f"sink-{number}")
        assert writer.start(sink).awaitTermination(PATIENCE)
        return session.read.parquet(sink).count()

    # A busy machine does not start more at once in the ten seconds that Spark gives each.
    with ThreadPoolExecutor(3) as threads:
        for first in (0, 3):
            assert list(threads.map(ingest, range(first, first + 3))) == [1] * 3
    assert set(shared.keySet()) == before
    assert "SPARK_BUFFER_SIZE" not in spark.sparkContext.environment

"""What streams of one session share, which may start at the same time."""

from __future__ import annotations

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END


@pytest.mark.thorough("what streams share, not what they read")
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
    place = {"checkpointLocation": str(tmp_path / "checkpoint")}
    reader = session.readStream.format("sluice").schema("id int")
    reader = reader.options(**place, **FOR_RUNS_THAT_END)
    frame = reader.option("fileFormat", "json").load(str(tmp_path / "in"))
    query = frame.writeStream.format("noop").options(**place).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    assert sum(progress.numInputRows for progress in query.recentProgress) == 1
    assert set(shared.keySet()) == before
    assert "SPARK_BUFFER_SIZE" not in spark.sparkContext.environment

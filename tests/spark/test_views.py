"""Views of a query's state through Spark, while the query runs."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice.connector.views.catalog import VIEWS
from pyspark_sluice.tests.patience import wait_until


@pytest.mark.thorough("each view has tests without Spark")
def test_every_view_is_a_table_of_spark_next_to_the_running_query(spark, tmp_path):
    landing, checkpoint = tmp_path / "in", str(tmp_path / "ck")
    landing.mkdir()
    for at in range(3):
        (landing / f"{at}.json").write_text(json.dumps({"id": at}) + "\n")
    reader = spark.readStream.format("sluice").option("fileFormat", "json").schema("id long")
    stream = reader.option("checkpointLocation", checkpoint).load(str(landing))
    writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.start()
    try:
        wait_until(lambda: sum(p.numInputRows for p in query.recentProgress) >= 3)
        views = {name: _view(spark, checkpoint, name) for name in VIEWS}
        files = views["files"].orderBy("path").collect()
        assert [(row.path, row.state, row.rows) for row in files] == [
            (f"{landing}/{at}.json", "read", 1) for at in range(3)
        ]
        assert all(row.processed >= row.planned >= row.discovered for row in files)
        for name, frame in views.items():
            assert frame.columns == VIEWS[name].schema.names
        counts = {name: frame.count() for name, frame in views.items()}
        assert counts["splits"] == 3
        assert counts["quarantine"] == counts["skipped"] == counts["schemas"] == 0
        assert counts["checkpoints"] >= 1
        assert views["checkpoints"].where("epoch = 1").count() == counts["checkpoints"]
        assert query.isActive
        with pytest.raises(Exception, match="one of files, splits") as caught:
            _view(spark, checkpoint, "fils")
        assert "Did you mean files?" in str(caught.value)
        with pytest.raises(Exception, match="view: its columns are given"):
            _of(spark, checkpoint, "files").schema("path string").load().collect()
    finally:
        query.stop()


def _of(spark, checkpoint, name):
    reader = spark.read.format("sluice").option("checkpointLocation", checkpoint)
    return reader.option("view", name)


def _view(spark, checkpoint, name):
    return _of(spark, checkpoint, name).load()

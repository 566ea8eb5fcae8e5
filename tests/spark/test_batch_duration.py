"""Under real Spark batches come to take as long as `targetBatchDuration` says."""

from __future__ import annotations

import json
import statistics
import time

import pytest

from pyspark_sluice.tests.patience import PATIENCE

pytestmark = pytest.mark.slow

TARGET = 4.0
SECONDS_A_FILE = 0.08
"""What the sink takes, so that some fifty files are a batch."""

ROWS = 10


def land(lake, first, count):
    """Files of 50 KB, whose rows are read in no time."""
    lines = "".join(json.dumps({"id": i, "text": "x" * 5000}) + "\n" for i in range(ROWS))
    folder = lake.source.parent / f".{first}"
    folder.mkdir()
    for number in range(first, first + count):
        (folder / f"{number}.json").write_text(lines)
    folder.rename(lake.source / f"from-{first}")


def slow_sink(frame, batch_id):
    time.sleep(SECONDS_A_FILE * frame.count() / ROWS)


def start(lake, trigger, **options):
    writer = lake.frame(targetBatchDuration=f"{TARGET:.0f}s", **options).writeStream
    writer = writer.foreachBatch(slow_sink).trigger(**trigger)
    return lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))


def batches(query):
    """(files, seconds) of each batch."""
    found = [progress for progress in map(_json, query.recentProgress) if progress["numInputRows"]]
    return [(p["numInputRows"] / ROWS, p["durationMs"]["triggerExecution"] / 1000) for p in found]


def _json(progress):
    return json.loads(progress.json)


def _report(query):
    return _json(query.lastProgress)["sources"][0]["latestOffset"]["batchDuration"]


def test_batches_come_to_take_as_long_as_the_target_and_a_restart_remembers(lake, until):
    land(lake, 0, 400)
    query = start(lake, {"availableNow": True}, maxFilesPerTrigger=150)
    assert query.awaitTermination(PATIENCE)
    found = batches(query)
    assert sum(files for files, _ in found) == 400
    # The guess was far off: without the hard limit all would have been one batch.
    assert found[0][0] == 150
    settled = [seconds for _, seconds in found[3:-1]]
    assert len(settled) >= 2
    # How near exactly is tested without a machine that does other things, too.
    assert 0.65 * TARGET <= statistics.median(settled) <= 1.35 * TARGET
    report = _report(query)
    assert report["targetSeconds"] == TARGET
    assert report["batchesMeasured"] >= len(found) - 2

    land(lake, 1000, 300)
    query = start(lake, {"processingTime": "10 seconds"}, maxFilesPerTrigger=150)
    until(lambda: len(batches(query)) >= 2, "second batch", PATIENCE)
    usual = statistics.median(files for files, _ in found[3:-1])
    assert batches(query)[0][0] == pytest.approx(usual, rel=0.4), "sized by what was learned"
    until(lambda: "lastSeconds" in _report(query), "figure", PATIENCE)
    report, took = _report(query), [seconds for _, seconds in batches(query)]
    # Spark has waited for the end of its interval, which is no part of the batch.
    assert min(took) - 1.0 <= report["lastSeconds"] <= max(took) + 0.5 < 9.5
    assert report["limitedBy"] == "duration"

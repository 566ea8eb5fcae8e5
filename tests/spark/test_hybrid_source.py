"""Files, then a log, through Spark; and the whole driver killed where one becomes the other."""

from __future__ import annotations

import sys
import time
from collections import Counter

import pyarrow as pa
import pytest

from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.examples.demo.watch import Watch
from pyspark_sluice.tests.connector.source.archived import Logs
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.programs import hybrid_query

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


class Seam(Watch):
    """What the checkpoints say of the parts, read from outside."""

    def part(self, checkpoint):
        path = self._state / "checkpoints" / f"{checkpoint.name}.arrow"
        table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
        rows = table.select(["section", "state"]).to_pylist()
        return max(row["state"]["part"] for row in rows if row["section"] == "state")

    def running_part(self):
        batch = self.running()
        checkpoint = None if batch is None else self.of_batch(batch)
        return None if checkpoint is None else self.part(checkpoint)

    def files_assigned(self):
        """In batches of Spark; without checkpoints that died with their driver."""
        of_batches = [self.of_batch(batch) for batch in self.offsets()]
        return sum(len(self.assigned(of)) for of in of_batches if of and self.part(of) == 0)

    def switched(self):
        return any(self.part(checkpoint) == 1 for checkpoint in self.checkpoints())


def in_the_last_files(seam: Seam) -> bool:
    return seam.running_part() == 0 and seam.files_assigned() == PARTITIONS


def at_the_seam(seam: Seam) -> bool:
    done = seam.files_assigned() == PARTITIONS and len(seam.commits()) == len(seam.offsets())
    return done and seam.running() is None and not seam.switched()


def in_the_first_of_the_log(seam: Seam) -> bool:
    return seam.running_part() == 1


SEAM = (at_the_seam, in_the_first_of_the_log)


@pytest.mark.drivers
@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(SEAM, id="seam"),
        pytest.param(
            (in_the_last_files, *SEAM),
            id="files and seam",
            marks=pytest.mark.thorough(
                "a kill in a batch of files meets the source of files alone"
            ),
        ),
    ],
)
@pytest.mark.thorough("the suite of sources kills at each operation, the seam included")
def test_kills_around_the_seam_lose_nothing_and_double_nothing(spark, tmp_path, moments):
    (tmp_path / "logs").mkdir()
    logs = Logs(tmp_path / "logs")
    landed = [row for part in range(PARTITIONS) for row in logs.land(part, 50)]
    command = [sys.executable, hybrid_query.__file__, str(tmp_path)]
    seam = Seam(tmp_path / "checkpoint")
    for moment in moments:
        driver = Driver(command, lambda line: None)
        try:
            deadline = time.monotonic() + PATIENCE
            while not _killed(driver, seam, moment):
                assert driver.ended() is None, "\n".join(driver.tail)
                assert time.monotonic() < deadline, f"{moment.__name__} never came about"
                time.sleep(0.002)
        finally:
            driver.kill()
    landed += logs.land(1, 5)
    (tmp_path / "until").touch()
    driver = Driver(command, lambda line: None)
    try:
        assert driver.wait(PATIENCE) == 0, "\n".join(driver.tail)
    finally:
        driver.kill()
    found = spark.read.parquet(str(tmp_path / "sink")).collect()
    assert _tuples(found) == _tuples(landed)


def _killed(driver, seam, moment):
    try:
        if not moment(seam):
            return False
        driver.freeze()
        if moment(seam):
            driver.kill()
            return True
    except (OSError, pa.ArrowException):
        pass  # A file came or went while it was looked at.
    driver.thaw()
    return False

"""A format of one's own, end to end: as a class and by entry point, as a stream and as a batch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END

CLASS = "pyspark_sluice.examples.fixed_width.fixed_width:FixedWidthFormat"
SCHEMA = "id long, text string, day date, part int"


def _install(name: str) -> None:
    metadata = Path(os.environ["SLUICE_TEST_PACKAGES"]) / "fixed_width-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-width\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[pyspark_sluice.formats]\n{name} = {CLASS}\n")


@pytest.mark.thorough("a format of its own has the suite of every format without Spark")
def test_a_registered_format_is_ingested_exactly_once_with_its_options(lake):
    _install("fixedWidth")
    for part in range(3):
        folder = lake.source / f"part={part}"
        folder.mkdir()
        lines = (f"{n:08}{f'text {n}':<20}2024-01-{1 + n % 28:02}\n" for n in range(1000))
        (folder / "a.txt").write_text("".join(lines))
    options = {"fileFormat": "fixedWidth", "columns": "id 8, text 20, day 10"}
    reader = lake.spark.readStream.format("sluice").schema(SCHEMA).options(**options)
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    reader = reader.options(maxBytesPerTrigger="20k", **FOR_RUNS_THAT_END)
    writer = reader.load(str(lake.source)).writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer, str(lake.sink)).awaitTermination(PATIENCE)
    assert len(lake.batches()) == 6
    found = lake.spark.read.parquet(str(lake.sink))
    batch = (
        lake.spark.read.format("sluice").schema(SCHEMA).options(**{**options, "fileFormat": CLASS})
    )
    for rows in (found, batch.load(str(lake.source))):
        told = sorted((row.part, row.id, row.text, str(row.day)) for row in rows.collect())
        assert told == [
            (part, n, f"text {n}", f"2024-01-{1 + n % 28:02}")
            for part in range(3)
            for n in range(1000)
        ]

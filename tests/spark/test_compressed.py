"""One compressed file in several batches, a restart in its middle, and several tasks."""

from __future__ import annotations

import bz2
import gzip
import json
import random

import pytest

COUNT = 100_000


@pytest.fixture(scope="module")
def data():
    chance = random.Random(1)
    texts = (f"{chance.getrandbits(700):x}" for _ in range(COUNT))
    return "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()


@pytest.mark.parametrize("codec", ["gz", "bz2"])
@pytest.mark.thorough("compressed files are read in batches under kills without Spark")
def test_a_compressed_file_is_read_in_batches_and_goes_on_in_its_middle(lake, data, codec, until):
    stored = gzip.compress(data, 1) if codec == "gz" else bz2.compress(data, 9)
    (lake.source / f"a.json.{codec}").write_bytes(stored)
    lake.landed.update(range(COUNT))
    limits = {"maxBytesPerTrigger": "6m", "discoveryInterval": "100ms"}
    query = lake.start({"processingTime": "0 seconds"}, **limits)
    # Spark refuses to begin over an incomplete log: what is stopped has a batch behind it.
    first = lake.checkpoint / "commits" / "0"
    until(lambda: not query.isActive or first.exists(), "first batch")
    query.stop()
    assert query.exception() is None
    lake.drain(**limits)
    lake.check_exactly_once()
    assert len(lake.batches()) >= 2
    batch = lake.spark.read.format("sluice").schema("id long, text string")
    found = batch.option("fileFormat", "json").load(str(lake.source))
    assert found.rdd.getNumPartitions() == 2
    assert sorted(row.id for row in found.select("id").collect()) == list(range(COUNT))

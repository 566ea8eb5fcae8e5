"""A gzip file is cut by the driver and read in parts, with nothing shared but the state."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow

COUNT = 30_000


def test_the_parts_of_a_gzip_file_are_found_by_the_points_in_the_state(tmp_path, monkeypatch):
    monkeypatch.setattr(points_of_gzip, "SPACING", 1)
    chance = random.Random(1)
    lines = (
        json.dumps({"id": at, "text": f"{chance.getrandbits(1600):x}"}) + "\n"
        for at in range(COUNT)
    )
    query = Query(tmp_path, maxSplitBytes="1m")
    (query.data / "a.json.gz").write_bytes(gzip.compress("".join(lines).encode(), 1))
    ref = query.plan()
    (link,) = query.coordinator.assignments(query.done, ref)
    assert sum(batch.num_rows for _, batch in link.assigned) > 2
    assert len(query.store.list("points")) == 1
    assert sorted(query.read(ref)) == list(range(COUNT))
    query.coordinator.close()

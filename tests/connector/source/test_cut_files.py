"""Large files of XML and under gzip are cut by the driver and read in parts."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.connector.stream import Stream

pytestmark = pytest.mark.slow

COUNT = 30_000


def test_the_parts_of_a_gzip_file_are_found_by_the_points_in_the_state(tmp_path, monkeypatch):
    """With nothing shared but the state."""
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


@pytest.mark.thorough("a large file; XML is cut at any byte in test_all_formats.py")
def test_a_large_xml_file_comes_in_bounded_batches_with_each_row_once(tmp_path):
    options = {"fileFormat": "xml", "rowTag": "r", "maxBytesPerTrigger": "2m"}
    odd = "<!-- <r><id>-1</id></r> --><![CDATA[<r>]]>"
    rows = (f"<r><id>{n}</id><r><id>-2</id></r>{'x' * (n % 500)}</r>{odd}" for n in range(20_000))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "large.xml").write_text(f"<rs>{''.join(rows)}</rs>")
    stream = Stream(tmp_path, options)
    batches: list[list[int]] = []
    while sum(len(batch) for batch in batches) < 20_000:
        batches.append(stream.batch())
    stream.reader.stop()
    assert [row for batch in batches for row in batch] == list(range(20_000))
    assert len([batch for batch in batches if batch]) >= 3

"""A stream of XML: a file larger than a batch is cut where records begin."""

from __future__ import annotations

from pyspark_sluice.tests.connector.stream import Stream


def test_a_large_file_comes_in_bounded_batches_with_each_row_once(tmp_path):
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

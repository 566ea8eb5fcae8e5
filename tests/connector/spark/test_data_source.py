"""The options are checked by the first method that Spark calls, and all of them at once."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from pyspark_sluice import options
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.errors import OptionError

SCHEMA = StructType().add("value", "string")


@pytest.mark.parametrize(
    "call",
    [
        lambda source: source.schema(),
        lambda source: source.reader(SCHEMA).partitions(),
        lambda source: source.streamReader(SCHEMA).initialOffset(),
        lambda source: source.streamReader(SCHEMA).prepareForTriggerAvailableNow(),
    ],
    ids=["in load without a schema", "batch read", "stream", "stream with availableNow"],
)
def test_all_that_is_wrong_is_reported_at_the_first_call_and_nothing_is_claimed(call, tmp_path):
    given = {"path": "/in", "fileformat": "text", "maxfilespertriger": "5", "batchbytes": "many"}
    given["checkpointlocation"] = str(tmp_path)
    with pytest.raises(OptionError, match="did you mean maxFilesPerTrigger") as error:
        call(SluiceDataSource(given))
    assert "batchBytes: found 'many'" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_read_refuses_limits_and_reads_without_them(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    given = {"path": str(tmp_path), "fileformat": "text"}
    limited = SluiceDataSource({**given, "maxfilespertrigger": "1", "cleansource": "delete"})
    with pytest.raises(OptionError) as error:
        limited.reader(SCHEMA).partitions()
    assert "maxFilesPerTrigger: found 1 in a batch read" in str(error.value)
    assert "cleanSource: found delete in a batch read" in str(error.value)
    reader = SluiceDataSource({**given, **options(checkpointsAhead=1)}).reader(SCHEMA)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [row for batch in batches for row in batch.column("value").to_pylist()] == ["one", "two"]

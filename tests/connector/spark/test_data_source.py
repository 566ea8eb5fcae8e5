"""The options are checked by whatever Spark calls first, and all of them at once."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

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
def test_all_that_is_wrong_is_told_at_the_first_call_and_nothing_is_claimed(call, tmp_path):
    given = {"path": "/in", "fileformat": "text", "maxfilespertriger": "5", "batchbytes": "many"}
    given["checkpointlocation"] = str(tmp_path)
    with pytest.raises(OptionError, match="did you mean maxFilesPerTrigger") as error:
        call(SluiceDataSource(given))
    assert "batchBytes: found 'many'" in str(error.value)
    assert list(tmp_path.iterdir()) == []

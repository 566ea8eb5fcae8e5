"""What a batch read cannot do is refused by name, option by option."""

from __future__ import annotations

from enum import Enum

import pytest

from pyspark_sluice.connector.options.batch_validation import ONLY_STREAMS, refuse_streaming_options
from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.landing.landing_options import LandingOptions

VALUES = {
    "startingState": "/ck/sluice/source@3",
    "fileOrder": "name",
    "onOverwrite": "fail",
    "onSplitError": "return",
    "discoveryMode": "incremental",
    "cleanSource": "delete",
    "includeExistingFiles": "false",
    "ingestAgain": "true",
    "allowUnreadFirstBatch": "true",
    "cleanSourceWhileRetained": "true",
    "freshShare": "0.5",
    "minCheckpointsToRetain": "200",
    "checkpointsAhead": "3",
    "targetBatchDuration": "60000",
    "onLateFile": "quarantine",
    "maxEventTimeSkew": "60000",
    "onMissingEventTime": "mtime",
    "eventTimeUnit": "ms",
    "alignmentGroup": "shop",
}
TOGETHER = {
    "onMissingEventTime": {"fileOrder": "eventTime"},
    "eventTimeColumn": {"fileOrder": "eventTime", "fileFormat": "parquet"},
    "eventTimeUnit": {"fileOrder": "eventTime", "fileFormat": "orc", "eventTimeColumn": "at"},
    "alignmentGroup": {"fileOrder": "eventTime"},
    "alignmentIdleTimeout": {"fileOrder": "eventTime", "alignmentGroup": "shop"},
    "maxEventTimeSkew": {"fileOrder": "eventTime"},
    "onLateFile": {"fileOrder": "eventTime"},
    "maxRowsPerTrigger": {"fileFormat": "parquet"},
    "queueUrl": {"discoveryMode": "notifications", "path": "s3://bucket/in"},
    "deadLetterQueueUrl": {
        "discoveryMode": "notifications",
        "path": "s3://bucket/in",
        "queueUrl": "https://queue",
    },
}
"""Options that an option requires."""

IN_BATCHES_TOO = {
    "path", "paths", "checkpoint_location", "state_location", "source_name", "source",
    "source_options", "log_level", "fail_on_missing_path", "path_glob_filter",
    "ignored_path_segment_regex", "modified_after", "modified_before", "min_file_size",
    "max_file_age", "settle_time", "ready_marker", "full_listing_interval", "discovery_interval",
    "start_at", "end_at", "event_time_pattern", "discovery_timeout", "discovery_attempts",
    "parallelism", "max_split_bytes", "open_cost_bytes",
}  # fmt: skip
"""Which files there are, how they are spread over tasks, and what names the query."""


@pytest.mark.parametrize("name", sorted(ONLY_STREAMS))
def test_what_only_a_stream_can_do_is_refused_and_its_default_is_not(name):
    alias = str(SluiceOptions.model_fields[name].alias)
    url = "https://queue" if alias.endswith("Url") else "5"
    given = {"path": "/in", **TOGETHER.get(alias, {}), alias: VALUES.get(alias, url)}
    options = parse_options(given, streaming=False)
    with pytest.raises(OptionError, match=rf"(?i)  - {alias}: found {given[alias]} in a batch"):
        refuse_streaming_options(options)
    default = getattr(SluiceOptions(), name)
    if default is not None:
        text = default.value if isinstance(default, Enum) else str(default)
        refuse_streaming_options(parse_options({"path": "/in", alias: text}, streaming=False))


def test_each_option_is_for_streams_only_or_counts_in_batches_too():
    of_rows = ReaderOptions.model_fields.keys() | LandingOptions.model_fields.keys()
    of_rows -= {"bad_records_path"}  # Of reading, and a batch read has no commit to name them.
    assert SluiceOptions.model_fields.keys() - of_rows == ONLY_STREAMS | IN_BATCHES_TOO
    assert not ONLY_STREAMS & IN_BATCHES_TOO


def test_all_of_them_are_listed_at_once_with_the_way_out():
    given = {"path": "/in", "maxFilesPerTrigger": "5", "cloudFiles.maxBytesPerTrigger": "1m"}
    with pytest.raises(OptionError) as caught:
        refuse_streaming_options(parse_options(given, streaming=False))
    assert str(caught.value).count("\n  - ") == 2
    assert "readStream with trigger(availableNow=True)" in str(caught.value)

"""Options that do not fit, or that a batch read does not have, are reported with their names."""

import re

import pytest

from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.connector.options.rules import ONLY_STREAMS
from pyspark_sluice.connector.options.validation import refuse_streaming_options
from pyspark_sluice.connector.source.discovery import event_times, place_bounds
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.reader.files.options import ReaderOptions

NOTIFICATIONS = {"discoveryMode": "notifications"}
BY_FSSPEC = {**NOTIFICATIONS, "storageOptions": '{"client": "fsspec"}'}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxEventTimeSkew": "2h"}, "maxEventTimeSkew: found with fileOrder=mtime"),
        ({"onLateFile": "fail"}, "onLateFile: found with fileOrder=mtime"),
        ({"eventTimeColumn": "at"}, "eventTimeColumn: found with fileOrder=mtime"),
        ({"onMissingEventTime": "mtime"}, "onMissingEventTime: found with fileOrder=mtime"),
        ({"eventTimeUnit": "s"}, "eventTimeUnit: found without eventTimeColumn"),
        (
            {"fileOrder": "eventTime", "eventTimeColumn": "at", "fileFormat": "json"},
            "eventTimeColumn: found with fileFormat=json",
        ),
        (
            {"fileOrder": "eventTime", "eventTimeColumn": "at", "eventTimePattern": "{yyyy}"},
            "eventTimePattern: found, but no option uses times in paths",
        ),
        ({"onOverwrite": "appendTail", "fileFormat": "no:Format"}, "fileFormat: cannot load it"),
        ({"onOverwrite": "appendTail", "fileFormat": "xml"}, "expected fileFormat=json or"),
        ({"alignmentGroup": "shop"}, "alignmentGroup: found with fileOrder=mtime"),
        (
            {"eventTimePattern": "{yyyy}"},
            "eventTimePattern: found, but no option uses times in paths",
        ),
        ({"fileOrder": "eventTime", "eventTimePattern": "{MM}"}, "does not name a time"),
        (
            {"fileOrder": "eventTime", "freshShare": "0.5"},
            "freshShare: found with fileOrder=eventTime",
        ),
        (
            {"badRecordsPath": "/bad", "mode": "FAILFAST"},
            "found with mode=FAILFAST; expected no mode or mode=DROPMALFORMED",
        ),
        (
            {"badRecordsPath": "/bad", "columnNameOfCorruptRecord": "bad"},
            "found with columnNameOfCorruptRecord",
        ),
        ({"badRecordsPath": "/in/bad"}, "badRecordsPath: found '/in/bad'"),
        ({"startAt": "yesterday"}, "startAt: found 'yesterday'; expected a time such as"),
        ({"startAt": "yesterday"}, "or a name after path:"),
        ({"startAt": "2026-01-02", "endAt": "2026-01-02"}, "which is not after it"),
        ({"startAt": "path:b", "endAt": "path:a"}, "which is not after it"),
        (NOTIFICATIONS, "found notifications without queueUrl"),
        ({"queueUrl": "http://q"}, "queueUrl: found with discoveryMode=full; expected"),
        ({**NOTIFICATIONS, "queueUrl": "http://q"}, "s3://"),
        ({"discoveryMode": "journal"}, "found journal without queueUrl"),
        ({"discoveryMode": "journal", "queueUrl": "http://q"}, "iceberg:CATALOG.NAMESPACE.TABLE"),
        ({"discoveryMode": "journal", "queueUrl": "iceberg:a.b.c", "path": "gs://b"}, "s3://,"),
        ({**NOTIFICATIONS, "queueUrl": "iceberg:a.b.c", "path": "s3://b"}, "of a queue of SQS"),
        ({**NOTIFICATIONS, "queueUrl": "http://q", "path": "hdfs://b"}, "abfss://"),
        ({**NOTIFICATIONS, "queueUrl": "https://q?sig=abc", "path": "s3://b"}, "sas_token"),
        ({**BY_FSSPEC, "queueUrl": "http://q", "path": "s3://b"}, "obstore"),
    ],
)
def test_each_problem_is_reported_with_its_option(options, problem):
    with pytest.raises(OptionError, match=re.escape(problem)):
        parse_options({"path": "/in", **options}, streaming=False)


@pytest.mark.parametrize(
    "options",
    [
        {"fileOrder": "eventTime", "eventTimeColumn": "at", "fileFormat": "orc"},
        {
            "fileOrder": "eventTime",
            "fileFormat": "parquet",
            "eventTimeColumn": "at",
            "eventTimeUnit": "ms",
            "startAt": "2026-01-02",
            "eventTimePattern": "{yyyy}/{MM}/{dd}",
        },
        {"startAt": "2026-01-02T00:00:00+02:00", "endAt": "2026-01-02T00:00:00Z"},
        {"startAt": "path:2026/01/02/", "endAt": "path:2026/01/09"},
    ],
)
def test_options_that_fit_together_are_accepted(options):
    parse_options({"path": "/in", **options}, streaming=False)


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        ({"checkpointLocation": "IN/ck"}, "checkpointLocation: found '.*' within the input path"),
        ({"checkpointLocation": "IN"}, "checkpointLocation: found"),
        ({"checkpointLocation": "LINK/ck"}, "checkpointLocation: found"),
        ({"checkpointLocation": "CK", "stateLocation": "IN/day/../s"}, "stateLocation: found"),
        ({"path": "IN/*/*", "checkpointLocation": "IN/ck"}, "checkpointLocation: found"),
        ({"path": "LINK", "checkpointLocation": "IN/ck"}, "checkpointLocation: found"),
        ({"checkpointLocation": "CK", "writeTo": "LINK/t"}, "writeTo: found .*overlaps the input"),
        ({"checkpointLocation": "CK", "badRecordsPath": "LINK/b"}, "badRecordsPath: found"),
        (
            {"path": "s3a://B/in", "checkpointLocation": "CK", "writeTo": "s3://b/in//t/"},
            "writeTo: found",
        ),
        (
            {"checkpointLocation": "CK", "cleanSource": "archive", "sourceArchiveDir": "LINK/old"},
            "sourceArchiveDir: found .* archived files would be read again",
        ),
        (
            {"checkpointLocation": "CK", "writeTo": "T", "badRecordsPath": "T/bad"},
            "badRecordsPath: found .* within writeTo=.*, where a VACUUM",
        ),
        ({"checkpointLocation": "T/ck", "writeTo": "T"}, "checkpointLocation: found .* VACUUM"),
        ({"checkpointLocation": "T/_ck", "writeTo": "T"}, ""),
        ({"checkpointLocation": "IN/_checkpoints/q"}, ""),
        ({"checkpointLocation": "IN/ck", "pathGlobFilter": "*.csv"}, ""),
        ({"checkpointLocation": "IN/ck", "recursiveFileLookup": "false"}, ""),
        ({"path": "IN/*/landing", "checkpointLocation": "IN/ck"}, ""),
        ({"checkpointLocation": "IN-2/ck"}, ""),
    ],
)
def test_no_place_of_a_call_is_within_its_input_however_it_is_written(tmp_path, places, problem):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    values = {"IN": "in", "LINK": "link", "CK": "ck", "T": "table"}

    def written(text):
        return re.sub("^(IN|LINK|CK|T)(?=/|-|$)", lambda m: f"{tmp_path}/{values[m[1]]}", text)

    options = {"path": "IN", "fileFormat": "json", **places}
    options = {name: written(text) for name, text in options.items()}
    if problem:
        with pytest.raises(OptionError, match=problem):
            parse_options(options, streaming=True)
    else:
        parse_options(options, streaming=True)


def test_times_in_paths_are_in_the_zone_of_the_option_and_so_are_bounds():
    path = "/in/date=2026-07-01/hour=10/a"
    given = {"path": "/in", "startAt": "2026-07-01T10:00"}
    utc = parse_options(given, streaming=False)
    berlin = parse_options({**given, "timeZone": "Europe/Berlin"}, streaming=False)
    assert event_times(utc).of(path) - event_times(berlin).of(path) == 2 * 3_600_000_000
    for options in (utc, berlin):
        bounds = place_bounds(options)
        assert bounds is not None
        assert bounds.start == event_times(options).of(path)


IN_BATCHES_TOO = {
    "path", "paths", "checkpoint_location", "state_location", "source_name", "source",
    "source_options", "log_level", "fail_on_missing_path", "path_glob_filter",
    "ignored_path_segment_regex", "modified_after", "modified_before", "min_file_size",
    "max_file_age", "settle_time", "ready_marker", "full_listing_interval", "discovery_interval",
    "start_at", "end_at", "event_time_pattern", "discovery_timeout", "discovery_attempts",
    "parallelism", "max_split_bytes",
}  # fmt: skip
"""Which files there are, how they are spread over tasks, and what names the query."""


def test_each_option_is_for_streams_only_or_counts_in_batches_too():
    of_rows = ReaderOptions.model_fields.keys() | WriteOptions.model_fields.keys()
    of_rows -= {"bad_records_path"}  # Of reading, and a batch read has no commit to name them.
    assert SluiceOptions.model_fields.keys() - of_rows == ONLY_STREAMS | IN_BATCHES_TOO
    assert not ONLY_STREAMS & IN_BATCHES_TOO


def test_all_of_them_are_listed_at_once_with_the_way_out_and_no_default_is():
    defaults = {"fileOrder": "mtime", "cleanSource": "off", "checkpointsAhead": "1"}
    refuse_streaming_options(parse_options({"path": "/in", **defaults}, streaming=False))
    given = {"path": "/in", "maxFilesPerTrigger": "5", "cloudFiles.maxBytesPerTrigger": "1m"}
    with pytest.raises(OptionError) as caught:
        refuse_streaming_options(parse_options(given, streaming=False))
    assert str(caught.value).count("\n  - ") == 2
    assert "readStream with trigger(availableNow=True)" in str(caught.value)

"""What each option of a stream changes, told by the rows that come.

Options of reading have a test of their own (`reader/files/formats/test_option_support.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.errors import SluiceError, StateError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.connector.stream import LONG_AGO, Stream
from pyspark_sluice.tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parent.parent.parent

ELSEWHERE = {
    "connector/source/test_aligned_sources.py": {
        "test_a_source_waits_for_another_until_that_is_idle_and_says_so": [
            "alignmentGroup",
            "alignmentIdleTimeout",
        ],
    },
    "connector/source/test_event_time_column.py": {
        "test_what_was_remembered_of_another_column_is_not_used": [
            "eventTimeColumn",
            "eventTimeUnit",
        ],
        "test_a_file_without_statistics_comes_by_its_modification_time_and_makes_no_other_late": [
            "onMissingEventTime"
        ],
    },
    "connector/spark/test_bad_records.py": {
        "test_each_bad_record_is_recorded_once_with_its_place_and_reason": ["badRecordsPath"],
    },
    "enumerator/files/discovery/queue/test_queue_discovery.py": {
        "test_a_malformed_message_goes_to_the_dead_letters_or_stays": ["deadLetterQueueUrl"],
    },
    "spark/test_bounded.py": {
        "test_max_rows_holds_where_the_metadata_counts_rows": ["maxRowsPerTrigger"],
    },
    "spark/test_cleaning.py": {
        "test_each_mode_keeps_every_row_and_touches_only_what_is_complete": [
            "cleanSource",
            "sourceArchiveDir",
        ],
    },
    "spark/test_landing.py": {
        "test_parquet_files_that_need_no_change_become_part_of_a_table_where_they_are": [
            "landCopy"
        ],
        "test_what_shapes_rows_shapes_what_is_landed": [
            "landAt",
            "landSchema",
            "landPartitionBy",
            "landSortBy",
        ],
        "test_a_filter_and_a_function_of_the_user_s_are_applied_on_the_way": [
            "landTransform",
            "landTransformSchema",
        ],
        "test_the_form_of_the_files_is_as_the_options_say": [
            "landFormat",
            "landCompression",
            "landFileBytes",
        ],
    },
    "spark/test_log_source.py": {
        "test_slices_new_partitions_and_another_parallelism_at_restart": [
            "source",
            "sourceOptions",
        ],
    },
    "spark/test_object_store.py": {
        "test_what_a_queue_tells_of_is_ingested_once_through_a_restart": [
            "discoveryMode",
            "queueUrl",
        ],
    },
    "spark/test_protocol_in_spark.py": {
        "test_a_new_checkpoint_over_a_state_that_was_read_from_is_refused": ["ingestAgain"],
        "test_a_split_that_cannot_be_read_goes_back_and_then_into_quarantine": [
            "maxSplitAttempts",
            "onSplitError",
        ],
        "test_a_new_query_starts_from_a_retained_checkpoint_of_another": ["startingState"],
    },
    "spark/test_stream.py": {
        "test_a_large_file_is_one_file_to_the_limit_on_files": ["maxSplitBytes"],
        "test_each_batch_has_as_many_tasks_as_it_wants_after_one_that_wanted_many": [
            "openCostBytes"
        ],
    },
}
"""Options that need other files, services or more than one process: by file and test."""


@pytest.fixture
def begin(tmp_path):
    """Makes the stream; a directory has one with any options."""
    begun = []

    def made(**options):
        begun.append(Stream(tmp_path, options))
        return begun[-1]

    yield made
    for stream in begun:
        stream.reader.stop()


# What is found --------------------------------------------------------------------------------

NAMES = ["a.json", "b,c.txt", "day=1/d.json", "other/e.json", "_f.json", "xg.json"]


@pytest.mark.parametrize(
    ("option", "value", "taken"),
    [
        ("pathGlobFilter", "*.json", {0, 2, 3, 5}),
        ("ignoredPathSegmentRegex", "^x", {0, 1, 2, 3, 4}),
        ("recursiveFileLookup", "false", {0, 1, 2, 5}),
        ("path", "<in>/{a,xg}.json", {0, 5}),
        ("paths", '["<in>/b,c.txt", "<in>/other"]', {1, 3}),
        ("includeExistingFiles", "false", set()),
    ],
)
def test_files_are_chosen_by_their_names(begin, tmp_path, option, value, taken):
    value = value.replace("<in>", str(tmp_path / "in"))
    stream = begin(**{option: value}, **({"path": ""} if option == "paths" else {}))
    stream.land(*NAMES)
    assert set(stream.batch()) == taken != {0, 1, 2, 3, 5}


@pytest.mark.parametrize(
    ("option", "value", "taken"),
    [
        ("modifiedAfter", "2022-01-01T00:00:00Z", {1}),
        ("modifiedBefore", "2022-01-01T00:00:00Z", {0}),
        ("maxFileAge", "365d", {1}),
        ("settleTime", "1h", {0}),
    ],
)
def test_files_are_chosen_by_their_times(begin, option, value, taken):
    stream = begin(**{option: value})
    stream.land("old.json", at=LONG_AGO)
    stream.land("new.json")
    assert set(stream.batch()) == taken


def test_files_are_chosen_by_their_size_and_by_markers(begin, tmp_path):
    stream = begin(minFileSize="11", readyMarker="<name>.done")
    stream.land(*(f"{number}.json" for number in range(12)))
    for number in range(3, 12):
        (tmp_path / "in" / f"{number}.json.done").touch()
    # {"id": 9} and a line feed are ten bytes.
    assert set(stream.batch()) == {10, 11}


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_as_many_checkpoints_wait_while_one_runs(begin, tmp_path, ahead):
    stream = begin(checkpointsAhead=str(ahead), maxFilesPerTrigger="1")
    stream.land(*(f"{number}.json" for number in range(6)))
    stream.plan()
    checkpoints = tmp_path / "state" / "source" / "checkpoints"
    wait_until(lambda: len(list(checkpoints.glob("*.arrow"))) >= 1 + ahead)
    time.sleep(0.2)
    assert len(list(checkpoints.glob("*.arrow"))) == 1 + ahead


def test_a_missing_path_is_an_error_unless_it_is_waited_for(begin, tmp_path):
    with pytest.raises(SluiceError, match="later"):
        begin(path=str(tmp_path / "later")).batch()
    stream = begin(
        path=str(tmp_path / "in" / "later"),
        stateLocation=str(tmp_path / "other"),
        failOnMissingPath="false",
    )
    assert stream.batch() == []
    stream.land("later/a.json")
    assert stream.until(1) == [0]


def test_a_changed_file_is_read_again_on_demand(begin):
    stream = begin(onOverwrite="reprocess", fullListingInterval="100ms")
    stream.land("a.json", at=LONG_AGO)
    assert stream.batch() == [0]
    stream.land("a.json")
    assert stream.until(1) == [1]


# When it is found -----------------------------------------------------------------------------


def test_the_next_listing_comes_after_its_interval(begin):
    stream = begin(discoveryInterval="1h")
    stream.land("a.json")
    assert stream.batch() == [0]
    stream.land("b.json")
    for _ in range(10):
        time.sleep(0.1)
        assert stream.batch() == []


class Stuck(LocalFileSystem):  # type: ignore[misc]
    """A file system whose listings do not come back until they may."""

    protocol = "stuck"
    cachable = False
    may_end = threading.Event()

    def ls(self, path, detail=False, **rest):
        self.may_end.wait(PATIENCE)
        return super().ls(path, detail=detail, **rest)


def test_the_first_listing_is_waited_for_as_long_as_is_said(begin, tmp_path):
    fsspec.register_implementation("stuck", Stuck, clobber=True)
    stream = begin(path=f"stuck://{tmp_path}/in", discoveryTimeout="300ms")
    try:
        with pytest.raises(SluiceError, match="timed out waiting for the first listing"):
            stream.batch()
    finally:
        Stuck.may_end.set()


class Failing(LocalFileSystem):  # type: ignore[misc]
    """A file system that cannot be listed."""

    protocol = "failing"
    cachable = False
    listings = 0

    def ls(self, path, detail=False, **rest):
        Failing.listings += 1
        raise OSError("no answer")


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_listing_is_tried_so_often(begin, tmp_path, attempts):
    fsspec.register_implementation("failing", Failing, clobber=True)
    Failing.listings = 0
    stream = begin(path=f"failing://{tmp_path}/in", discoveryAttempts=str(attempts))
    with pytest.raises(SluiceError, match="no answer"):
        stream.batch()
    assert Failing.listings == attempts


@pytest.mark.parametrize("limit", ["10", "1000"])
def test_listing_rests_while_enough_is_pending(begin, limit):
    stream = begin(maxPendingFiles=limit, maxFilesPerTrigger="1")
    stream.land(*(f"{number}.json" for number in range(30)))
    rows = stream.batch()
    stream.land(*(f"{number}.json" for number in range(30, 40)))
    deadline = time.monotonic() + (1.0 if limit == "10" else PATIENCE)
    while (waiting := _outstanding(stream)) < 38 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (waiting < 30) == (limit == "10")
    rows += stream.until(39)
    assert sorted(rows) == list(range(40))


def _outstanding(stream):
    return int(stream.reader.reportLatestOffset()["filesOutstanding"])


# Batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"maxFilesPerTrigger": "3"}, [0, 1, 2]),
        ({"maxBytesPerTrigger": "20"}, [0, 1]),
        ({"targetBatchDuration": "1ms"}, [0]),
        ({"maxFilesPerTrigger": "3", "fileOrder": "name"}, [5, 4, 3]),
        ({"maxFilesPerTrigger": "3", "fileOrder": "newestFirst"}, [5, 4, 3]),
        ({"maxFilesPerTrigger": "4", "freshShare": "0.5"}, [0, 1, 4, 5]),
    ],
)
def test_a_batch_is_of_so_many_files_in_this_order(begin, options, first):
    stream = begin(parallelism="1", **options)
    for number in range(6):
        stream.land(f"{9 - number}.json", at=LONG_AGO + number)
    assert sorted(stream.batch()) == sorted(first)
    assert len(stream.until(6 - len(first))) == 6 - len(first)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"maxEventTimeSkew": "0"}, [3]),
        ({"maxEventTimeSkew": "1h"}, [2, 3]),
        ({"maxEventTimeSkew": "1d"}, [0, 1, 2, 3]),
        ({"maxEventTimeSkew": "0", "eventTimePattern": "{yyyy}-{MM}-{dd}"}, [0, 1, 2, 3]),
        ({"maxEventTimeSkew": "1h", "startAt": "2026-01-02T02"}, [1, 2]),
        ({"maxEventTimeSkew": "1d", "endAt": "2026-01-02T03"}, [2, 3]),
        ({"maxEventTimeSkew": "1d", "endAt": "path:date=2026-01-02/hour=02"}, [3]),
    ],
)
def test_a_batch_is_of_such_event_times(begin, options, first):
    stream = begin(fileOrder="eventTime", **options)
    stream.land(*(f"date=2026-01-02/hour={hour:02}/a.json" for hour in (4, 3, 2, 1)))
    assert sorted(stream.batch()) == first


@pytest.mark.parametrize(("policy", "read"), [("read", [1]), ("quarantine", [])])
def test_a_late_file_is_read_or_goes_into_quarantine(begin, policy, read):
    stream = begin(fileOrder="eventTime", onLateFile=policy)
    stream.land("date=2026-01-02/a.json")
    assert stream.until(1) == [0]
    stream.land("date=2026-01-01/late.json")
    stream.land("date=2026-01-03/b.json")
    assert stream.until(len(read) + 1) == [*read, 2]
    quarantined = stream.reader.reportLatestOffset()["quarantinedSplits"]
    assert quarantined == (policy == "quarantine")


@pytest.mark.parametrize("readers", [1, 3])
def test_a_batch_has_so_many_tasks(begin, readers):
    stream = begin(parallelism=str(readers))
    stream.land(*(f"{number}.json" for number in range(9)))
    _, partitions = stream.plan()
    assert len(partitions) == readers


# State ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"stateLocation": "{root}/mine"}, "mine/source"),
        ({"checkpointLocation": "{root}/ck", "stateLocation": ""}, "ck/sluice/source"),
        (
            {"checkpointLocation": "{root}/ck", "stateLocation": "", "sourceName": "one"},
            "ck/sluice/one",
        ),
    ],
)
def test_the_state_is_where_the_options_say(begin, tmp_path, options, place):
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "metadata").write_text('{"id": "as Spark writes it first"}')
    stream = begin(**{name: text.format(root=tmp_path) for name, text in options.items()})
    stream.land("a.json")
    assert stream.plan()[1]
    assert list((tmp_path / place / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"retainCheckpointsFor": "1h"}, True),
        ({"minCheckpointsToRetain": "1000"}, True),
    ],
)
def test_so_many_checkpoints_are_kept_for_so_long(begin, tmp_path, options, kept):
    stream = begin(maxFilesPerTrigger="1", **options)
    checkpoints = tmp_path / "state" / "source" / "checkpoints"
    stream.land(*(f"{number}.json" for number in range(220)))
    stream.until(1)
    first = min(checkpoints.glob("0*.arrow"))  # Not one that is being written.
    stream.until(219)
    # Old state goes in the background, after a batch has ended.
    more, deadline = 0, time.monotonic() + PATIENCE
    while first.exists() and more < (30 if kept else 10_000) and time.monotonic() < deadline:
        stream.land(f"more-{more}.json")
        stream.until(1)
        more += 1
    assert first.exists() == kept


def test_a_batch_that_nobody_read_is_looked_for_as_long_as_is_said(begin):
    stream = begin(maxFilesPerTrigger="1", acknowledgementTimeout="4s")
    stream.land("a.json", "b.json")
    stream.until(1)
    stream.at, partitions = stream.plan()
    assert len(partitions) == 1
    began = time.monotonic()
    stream.plan()
    assert time.monotonic() - began >= 4.0, "by default three seconds"


def test_a_first_batch_that_nobody_read_is_an_error_unless_permitted(begin):
    stream = begin()
    stream.land("a.json")
    stream.at, _ = stream.plan()
    for _ in range(2):
        with pytest.raises(StateError, match="no reader ran in the first batch"):
            stream.plan()


def test_a_first_batch_that_nobody_read_may_be_permitted(begin):
    stream = begin(allowUnreadFirstBatch="true")
    stream.land("a.json")
    stream.at, _ = stream.plan()
    assert stream.plan() == (stream.at, [])


def test_old_files_that_count_as_seen_do_not_hide_a_first_batch_that_nobody_read(begin):
    stream = begin(includeExistingFiles="false")
    # An empty batch, which says that what is there counts as seen.
    deadline = time.monotonic() + PATIENCE
    while stream.at["checkpoint"] == 0 and time.monotonic() < deadline:
        stream.at, partitions = stream.plan()
        assert not partitions
    stream.land("a.json")
    while True:
        end, partitions = stream.plan()
        if partitions:
            break
    stream.at = end
    with pytest.raises(StateError, match="no reader ran in the first batch"):
        stream.plan()


@pytest.mark.parametrize(("retention", "left"), [("0ms", 2), ("1h", 4)])
def test_files_that_were_read_stay_as_long_as_is_said(begin, tmp_path, retention, left):
    stream = begin(
        cleanSource="delete",
        cleanSourceWhileRetained="true",
        cleanSourceRetention=retention,
        maxFilesPerTrigger="1",
    )
    stream.land(*(f"{number}.json" for number in range(4)))
    stream.until(4)
    deadline = time.monotonic() + (1 if left == 4 else PATIENCE)
    while len(list((tmp_path / "in").iterdir())) > left and time.monotonic() < deadline:
        time.sleep(0.05)
        stream.batch()
    found = len(list((tmp_path / "in").iterdir()))
    assert found == 4 if left == 4 else found <= left


@pytest.mark.parametrize(("level", "told"), [("info", True), ("error", False)])
def test_so_much_is_logged(begin, caplog, monkeypatch, level, told):
    monkeypatch.setattr(logging.getLogger("pyspark_sluice"), "level", logging.NOTSET)
    stream = begin(logLevel=level)
    stream.land("a.json")
    stream.batch()
    assert bool([line for line in caplog.records if line.levelno == logging.INFO]) == told


# That none is missing -------------------------------------------------------------------------


def test_every_option_is_shown_to_have_an_effect():
    own = Path(__file__).read_text(encoding="utf-8").partition("@pytest.fixture")[2]
    fields = SluiceOptions.model_fields
    missing = {str(fields[name].alias) for name in set(fields) - set(ReaderOptions.model_fields)}
    missing -= {name for name in missing if f'"{name}"' in own or f"{name}=" in own}
    for path, tests in ELSEWHERE.items():
        text = (TESTS / path).read_text(encoding="utf-8")
        for test, options in tests.items():
            assert f"def {test}(" in text, test
            assert all(option in text for option in options), options
            missing -= set(options)
    assert not missing

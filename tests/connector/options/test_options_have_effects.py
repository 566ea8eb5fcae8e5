"""What options of a stream change, told by the rows that come.

Options that need other files, services or more than one process have their tests elsewhere, with
the marker `effect_of`; those of reading are in `reader/files/formats/test_registry.py`.
"""

from __future__ import annotations

import ast
import logging
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.connector.query import driver
from pyspark_sluice.connector.source import file_source
from pyspark_sluice.errors import SluiceError, StateError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.connector.stream import LONG_AGO
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("ahead", [0, 3])
def test_as_many_checkpoints_wait_while_one_runs(begin, tmp_path, ahead):
    stream = begin(checkpointsAhead=str(ahead), maxFilesPerTrigger="1")
    stream.land(*(f"{number}.json" for number in range(6)))
    stream.plan()
    checkpoints = tmp_path / "state" / "source" / "checkpoints"
    wait_until(lambda: len(list(checkpoints.glob("*.arrow"))) >= 1 + ahead)
    # Nothing would tell that no more comes: time for several turns of the background.
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


def test_the_next_listing_comes_after_its_interval(begin):
    stream = begin(discoveryInterval="1h")
    stream.land("a.json")
    assert stream.batch() == [0]
    stream.land("b.json")
    # Each question without news waits for some; a listing would be news.
    for _ in range(10):
        assert stream.batch() == []


class Stuck(LocalFileSystem):  # type: ignore[misc]
    """A file system whose listings do not come back until they may."""

    protocol = "stuck"
    cachable = False
    may_end = threading.Event()

    def ls(self, path, detail=False, **rest):
        self.may_end.wait(PATIENCE)
        return super().ls(path, detail=detail, **rest)


def test_the_first_listing_times_out_after_the_discovery_timeout(begin, tmp_path):
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


def test_a_listing_that_fails_is_tried_as_often_as_the_option_says(begin, tmp_path):
    fsspec.register_implementation("failing", Failing, clobber=True)
    stream = begin(path=f"failing://{tmp_path}/in", discoveryAttempts="2")
    with pytest.raises(SluiceError, match="no answer"):
        stream.batch()
    assert Failing.listings == 2


def test_listing_pauses_while_the_maximum_of_files_is_pending(begin, monkeypatch):
    monkeypatch.setattr(file_source, "_MAX_PENDING", 10)
    stream = begin(maxFilesPerTrigger="1")
    stream.land(*(f"{number}.json" for number in range(20)))
    rows = stream.batch()
    stream.land(*(f"{number}.json" for number in range(20, 25)))
    # Time for several listings, each of which would find them.
    time.sleep(0.5)
    assert stream.reader.reportLatestOffset()["backlogFiles"] < 20
    rows += stream.until(24)
    assert sorted(rows) == list(range(25))


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


@pytest.mark.parametrize(("options", "kept"), [({}, False), ({"retainCheckpointsFor": "1h"}, True)])
def test_checkpoints_are_retained_by_their_number_and_their_age(
    begin, tmp_path, monkeypatch, options, kept
):
    few = partial(driver.CoordinatorSettings, retained_checkpoints=2, deltas_per_base=2)
    monkeypatch.setattr(driver, "CoordinatorSettings", few)
    stream = begin(maxFilesPerTrigger="1", **options)
    checkpoints = tmp_path / "state" / "source" / "checkpoints"
    stream.land("a.json")
    stream.until(1)
    first = min(checkpoints.glob("0*.arrow"))  # Not one that is being written.
    # Old state goes in the background, after a batch has ended.
    more, deadline = 0, time.monotonic() + PATIENCE
    while first.exists() and more < (30 if kept else 10_000) and time.monotonic() < deadline:
        stream.land(f"more-{more}.json")
        stream.until(1)
        more += 1
    assert first.exists() == kept


def test_a_first_batch_that_nobody_read_may_be_permitted(begin):
    stream = begin(allowUnreadBatches="true")
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
    stream.await_plan()
    with pytest.raises(StateError, match="no reader ran in a batch that Spark has completed"):
        stream.plan()


def test_a_split_that_cannot_be_read_is_given_up_after_its_attempts(begin, tmp_path):
    stream = begin(onSplitError="return", maxSplitAttempts="2")
    (tmp_path / "in" / "bad.json").write_text('{"id": 1, "te')
    tries, deadline = 0, time.monotonic() + PATIENCE
    while not stream.reader.reportLatestOffset().get("quarantinedSplits"):
        assert time.monotonic() < deadline
        stream.at, partitions = stream.plan()
        tries += len(partitions)
        assert [batch for part in partitions for batch in stream.reader.read(part)] == []
    assert tries == 2


@pytest.mark.parametrize(
    ("mode", "retention", "left"),
    [("delete", "0ms", 2), ("archive", "0ms", 2), ("delete", "1h", 4)],
)
def test_files_that_were_read_go_after_the_cleaning_retention(
    begin, tmp_path, mode, retention, left
):
    archive = {"sourceArchiveDir": str(tmp_path / "old")} if mode == "archive" else {}
    stream = begin(
        **archive,
        cleanSource=mode,
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
    archived = len(list((tmp_path / "old").rglob("*.json")))
    assert archived == (4 - found if archive else 0)


@pytest.mark.parametrize(("level", "told"), [("info", True), ("error", False)])
def test_info_is_logged_unless_the_log_level_is_error(begin, caplog, monkeypatch, level, told):
    monkeypatch.setattr(logging.getLogger("pyspark_sluice"), "level", logging.NOTSET)
    stream = begin(logLevel=level)
    stream.land("a.json")
    stream.batch()
    assert bool([line for line in caplog.records if line.levelno == logging.INFO]) == told


def test_every_option_is_shown_to_have_an_effect():
    fields = SluiceOptions.model_fields
    missing = {str(fields[name].alias) for name in set(fields) - set(ReaderOptions.model_fields)}
    # Their tests pass options to a stream, and rows tell the effect.
    paths = (Path(__file__), Path(__file__).with_name("test_batches.py"))
    cases = "".join(path.read_text(encoding="utf-8") for path in paths)
    missing -= {name for name in missing if f'"{name}"' in cases or f"{name}=" in cases}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for option in _marked(text) if "effect_of" in text else ():
            assert text.count(option) > 1, f"{path} has nothing about {option} but the marker"
            missing.discard(option)
    assert not missing


def _marked(text: str) -> Iterator[str]:
    """The options that tests say to show, with the marker `effect_of`."""
    for node in ast.walk(ast.parse(text)):
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.effect_of":
                yield from map(ast.literal_eval, mark.args)

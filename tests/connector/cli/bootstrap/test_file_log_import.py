"""`sluice import-spark`: nothing is read again, and nothing is missed."""

import json
import os
from urllib.parse import quote

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.documents.query_records import find_seed
from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.cli.bootstrap.imports import (
    ODD,
    imported,
    landed,
    rows_of,
    written,
)
from pyspark_sluice.tests.connector.queries import drained


class SparkLog:
    """The log of Spark's file source as Spark writes it, byte by byte as of 4.3."""

    def __init__(self, root, compact_interval=10):
        self.root = root
        self.interval = compact_interval
        self.entries = []

    def batch(self, number, paths, *, offset=True, commit=True):
        new = [
            {
                "path": "file://" + quote(str(path), safe="/=+&;,ünï"),
                "timestamp": path.stat().st_mtime_ns // 1_000_000,
                "batchId": number,
            }
            for path in paths
        ]
        self.entries += new
        compacts = (number + 1) % self.interval == 0
        self.write(f"sources/0/{number}{'.compact' * compacts}", self.entries if compacts else new)
        if offset:
            self.write(f"offsets/{number}", [{"batchWatermarkMs": 0}, {"logOffset": number}])
        if commit:
            self.write(f"commits/{number}", [{"nextBatchWatermarkMs": 0}])

    def write(self, name, documents):
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(d, ensure_ascii=False, separators=(",", ":")) for d in documents]
        target.write_text("\n".join(["v1", *lines]))


def from_spark(root, capsys, *arguments, code=0):
    places = (root / "old", root / "data", root / "new")
    return imported(root, capsys, "import-spark", *places, *arguments, code=code)


def test_what_spark_has_read_is_not_read_again_under_any_name(tmp_path, capsys):
    paths = landed(tmp_path, ODD)
    log = SparkLog(tmp_path / "old")
    for number, path in enumerate(paths):
        log.batch(number, [path])
    told, new = from_spark(tmp_path, capsys, "--yes")
    assert told["counts"] == {
        "listed": len(ODD), "matched": len(ODD), "changed": 0, "gone": 0, "unfinished": 0,
        "not_listed": 0,
    }  # fmt: skip
    new.land("later.json", rows=1)
    assert drained(new) == [0]
    seed = find_seed(new.store)
    assert seed.purpose == "import-spark"
    assert seed.origin["log_offset"] == len(ODD) - 1
    assert main(["verify", new.state]) == 0


def test_a_log_that_was_compacted_counts_once_and_whole(tmp_path, capsys):
    paths = landed(tmp_path, [f"{at}.json" for at in range(8)])
    log = SparkLog(tmp_path / "old", compact_interval=3)
    for number, path in enumerate(paths[:7]):
        log.batch(number, [path])
    for gone in ("0", "1", "2.compact", "3", "4"):
        (tmp_path / "old" / "sources" / "0" / gone).unlink()
    (tmp_path / "old" / "sources" / "0" / ".6.crc").write_bytes(b"\0")
    told, new = from_spark(tmp_path, capsys, "--yes")
    assert told["counts"]["matched"] == 7
    assert told["not_listed"] == [str(paths[7])]
    assert drained(new) == [7]


@pytest.mark.parametrize("offset", [True, False])
def test_a_batch_that_was_not_committed_is_pending_and_said(tmp_path, capsys, offset):
    paths = landed(tmp_path, ["a.json", "b.json", "c.json"])
    log = SparkLog(tmp_path / "old")
    log.batch(0, paths[:1])
    log.batch(1, paths[1:2], offset=offset, commit=False)
    told, new = from_spark(tmp_path, capsys, "--yes")
    assert told["unfinished"] == [str(paths[1])]
    assert told["not_listed"] == [str(paths[2])]
    assert drained(new) == [1, 2]


def test_a_gap_in_the_log_is_refused_by_name(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json", "c.json"])
    log = SparkLog(tmp_path / "old")
    for number, path in enumerate(paths):
        log.batch(number, [path])
    (tmp_path / "old" / "sources" / "0" / "1").unlink()
    assert "sources/0/1" in from_spark(tmp_path, capsys, "--yes", code=3)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [("v2\n{}", "version 'v2'"), ('v1\n{"x": 1}', "an entry with path"), ("", "version ''")],
)
def test_what_is_no_log_of_a_file_source_is_refused(tmp_path, capsys, text, said):
    landed(tmp_path, ["a.json"])
    assert "there is no log" in from_spark(tmp_path, capsys, code=3)
    (tmp_path / "old" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "old" / "sources" / "0" / "0").write_text(text)
    assert said in from_spark(tmp_path, capsys, code=3)


def test_of_several_sources_one_has_to_be_named(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    log = SparkLog(tmp_path / "old")
    log.batch(0, paths[:1])
    log.write("sources/1/0", [{"path": f"file://{paths[1]}", "timestamp": 2**45, "batchId": 0}])
    log.write("offsets/0", [{"batchWatermarkMs": 0}, {"logOffset": 0}, {"logOffset": 0}])
    assert "--source" in from_spark(tmp_path, capsys, code=3)
    told, new = from_spark(tmp_path, capsys, "--source", "1", "--yes")
    assert told["not_listed"] == [str(paths[0])]
    assert drained(new) == [0]


def test_a_source_that_occurs_twice_in_the_plan_has_the_offset_that_all_lines_agree_on(
    tmp_path, capsys
):
    paths = landed(tmp_path, ["a.json", "b.json"])
    log = SparkLog(tmp_path / "old")
    log.batch(0, paths[:1])
    log.batch(1, paths[1:], commit=False)
    # frame.union(frame) has a line for each occurrence, and one folder in sources/.
    log.write("offsets/0", [{"batchWatermarkMs": 0}, {"logOffset": 0}, {"logOffset": 0}])
    _, new = from_spark(tmp_path, capsys, "--yes")
    assert drained(new) == [1]


def test_offsets_that_could_belong_to_several_sources_are_refused_by_name(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json", "c.json", "d.json"])
    log = SparkLog(tmp_path / "old")
    for number, path in enumerate(paths[:3]):
        log.batch(number, [path])
    log.write("sources/1/0", [{"path": f"file://{paths[3]}", "timestamp": 2**45, "batchId": 0}])
    # a.union(a).union(b): b is the source 1, and has the third line.
    lines = [{"logOffset": 2}, {"logOffset": 2}, {"logOffset": 0}]
    log.write("offsets/2", [{"batchWatermarkMs": 0}, *lines])
    for source in ("0", "1"):
        said = from_spark(tmp_path, capsys, "--source", source, "--yes", code=3)
        assert "3 offsets for 2 sources" in said
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "arguments", "ids"),
    [({}, (), []), ({"onOverwrite": "reprocess"}, (), [7]), ({}, ("--read-changed",), [7])],
)
def test_a_file_that_has_changed_since_is_what_on_overwrite_says(
    tmp_path, capsys, options, arguments, ids
):
    paths = landed(tmp_path, ["a.json", "b.json"])
    SparkLog(tmp_path / "old").batch(0, paths)
    later = paths[0].stat().st_mtime_ns + 5_000_000_000
    paths[0].write_text('{"id": 7}\n')
    os.utime(paths[0], ns=(later, later))
    told, new = from_spark(tmp_path, capsys, *arguments, "--yes")
    assert told["changed"] == [str(paths[0])]
    new.options |= options
    assert drained(new) == ids


def test_a_file_that_is_gone_and_comes_back_is_known(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    SparkLog(tmp_path / "old").batch(0, paths)
    paths[0].rename(tmp_path / "kept")
    told, new = from_spark(tmp_path, capsys, "--yes")
    assert told["counts"]["gone"] == 1
    (tmp_path / "kept").rename(paths[0])
    assert drained(new) == []


def test_a_list_of_other_files_is_refused_unless_they_have_moved(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    SparkLog(tmp_path / "old").batch(0, paths[:1])
    (tmp_path / "data").rename(tmp_path / "moved")
    places = (tmp_path / "old", tmp_path / "moved", tmp_path / "new")
    said = imported(tmp_path, capsys, "import-spark", *places, "--yes", code=2)
    assert "no file of the list exists" in said
    rewrite = f"file://{tmp_path}/data=file://{tmp_path}/moved"
    told, _ = imported(tmp_path, capsys, "import-spark", *places, "--rewrite", rewrite)
    assert (told["counts"]["matched"], told["written"]) == (1, False)
    assert not (tmp_path / "new").exists()


def test_lists_may_be_on_file_systems_that_no_state_could_be_kept_on(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    SparkLog(tmp_path / "old").batch(0, paths[:1])
    export = written(tmp_path, rows_of(paths, paths[:1]), ".csv")
    memory = fsspec.filesystem("memory")
    for path in [export, *(p for p in (tmp_path / "old").rglob("*") if p.is_file())]:
        memory.pipe_file(f"/lists/{path.relative_to(tmp_path).as_posix()}", path.read_bytes())
    places = (tmp_path / "data", tmp_path / "new")
    told, _ = imported(tmp_path, capsys, "import-spark", "memory://lists/old", *places)
    assert told["counts"]["matched"] == 1
    for place in ("memory://lists/export.csv", "memory://lists"):
        told, _ = imported(tmp_path, capsys, "import-auto-loader", place, *places)
        assert told["counts"]["matched"] == 1
    assert main(["import-spark", str(tmp_path / "old"), str(places[0]), "memory://x"]) == 3


def test_options_say_which_files_there_are(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.csv"])
    SparkLog(tmp_path / "old").batch(0, paths[:1])
    told, _ = from_spark(tmp_path, capsys, "--option", "pathGlobFilter=*.json")
    assert told["counts"]["not_listed"] == 0
    assert "pathGlobFiler" in from_spark(tmp_path, capsys, "--option", "pathGlobFiler=*", code=2)


@pytest.fixture
def ended(tmp_path):
    """A query that has ended after two batches; a third file has landed since."""
    paths = landed(tmp_path, ["a.json", "b.json", "c.json"])
    log = SparkLog(tmp_path / "old")
    for number, path in enumerate(paths[:2]):
        log.batch(number, [path])
    (tmp_path / "old" / "metadata").write_text('{"id":"the-old-query"}')
    return log


def test_a_continued_query_has_the_old_one_s_id_and_batch(tmp_path, capsys, ended):
    told, new = from_spark(tmp_path, capsys, "--continue-query", "--yes")
    assert told["continues"] == {"query": "the-old-query", "batch": 1}
    assert find_seed(new.store).origin["continues"] == told["continues"]
    root = tmp_path / "new"
    for name in ("metadata", "commits/1"):
        assert (root / name).read_bytes() == (tmp_path / "old" / name).read_bytes()
    for name in ("offsets/0", "offsets/1"):
        assert (root / name).read_text().splitlines()[-1] == "-"
    assert drained(new) == [2]


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (lambda log: log.write("offsets/2", [{}, {}]), 2, "not ended with a committed batch"),
        (lambda log: log.write("offsets/1", [{}, {"logOffset": 1}, {}]), 2, "several"),
        (lambda log: log.write("state/0/0/1.delta", [{}]), 2, "is stateful"),
        (lambda log: (log.root / "metadata").unlink(), 3, "metadata"),
        (lambda log: log.write("metadata", [{}]), 3, "metadata"),
        (lambda log: [path.unlink() for path in (log.root / "commits").iterdir()], 2, "none in"),
    ],
)  # fmt: skip
def test_what_cannot_be_continued_is_refused_by_name(tmp_path, capsys, ended, spoil, code, said):
    spoil(ended)
    assert said in from_spark(tmp_path, capsys, "--continue-query", "--yes", code=code)
    assert not (tmp_path / "new").exists()


def test_a_query_that_goes_on_meanwhile_is_not_continued(tmp_path, capsys, ended, monkeypatch):
    publish = StorageStateStore.publish

    def meanwhile(store, name, data):
        publish(store, name, data)
        if name == "metadata":
            ended.batch(2, [tmp_path / "data" / "c.json"])

    monkeypatch.setattr(StorageStateStore, "publish", meanwhile)
    said = from_spark(tmp_path, capsys, "--continue-query", "--yes", code=2)
    assert "the old query has continued in the meantime" in said
    assert not (tmp_path / "new" / "sluice" / "source" / "seed.json").exists()


def test_a_place_that_spark_uses_is_not_taken_for_a_continued_query(tmp_path, capsys, ended):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "metadata").write_text('{"id":"another"}')
    said = from_spark(tmp_path, capsys, "--continue-query", "--yes", code=2)
    assert "the target directory is not empty" in said

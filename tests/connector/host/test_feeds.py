"""Several feeds in one process: what fails alone, what others see, and what signals do."""

import json
import signal
import socket
import time

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.host.feeds import Feeds
from pyspark_sluice.tests.patience import wait_until

STORAGE = """
[feed.{name}.options.storageOptions]
endpoint = "http://127.0.0.1:{port}"
aws_access_key_id = "a-test-key"
aws_secret_access_key = "a-test-secret"
region = "us-east-1"
retry_config = {{ max_retries = 0 }}
"""


@pytest.fixture
def dead_port():
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_each_feed_is_read_into_its_table_and_lines_and_documents_name_it(feeds):
    for number, name in enumerate(feeds.names):
        feeds.land(name, "1.json", number)
    code, out, errors = feeds.run()
    assert (code, errors) == (0, "")
    assert [feeds.ids(name) for name in feeds.names] == [[0], [1], [2]]
    assert "b: batch 0: 1 split, 1 row in 1 data file" in out
    assert "b: run finished: 1 batch" in out
    feeds.land("b", "2.json", 7)
    documents = [json.loads(line) for line in feeds.run("--json", "--only", "b")[1].splitlines()]
    assert [(each["feed"], "run" in each) for each in documents] == [("b", False), ("b", True)]
    assert feeds.ids("b") == [1, 7]
    assert feeds.run("--dry-run")[1].count("nothing new") == 3


ONLY_TO_READ = {
    "numpy.ma",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pydantic_settings",
    "pyspark_sluice.reader.files.reader",
}


def test_a_run_with_nothing_new_imports_nothing_that_only_reading_and_variables_need(
    feeds, monkeypatch
):
    feeds.land("a", "1.json", 1)
    assert feeds.run()[0] == 0
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with feeds.started() as process:
        lines = process.communicate()[1].splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert process.returncode == 0
    assert "pyarrow.lib" in imported
    assert not imported & ONLY_TO_READ


def test_a_feed_that_fails_is_named_and_the_others_are_read(feeds):
    feeds.land("a", "1.json", 1)
    (feeds.directory("b") / "1.json").write_text("{broken\n")
    feeds.land("c", "1.json", 3)
    code, _, errors = feeds.run()
    assert code == 1
    assert errors.startswith("b: MalformedDataError: ")
    assert errors.count("\n") == 1
    assert [feeds.ids(name) for name in feeds.names] == [[1], [], [3]]


def test_a_call_that_names_no_feed_takes_the_file_of_the_directory(feeds, monkeypatch, capsys):
    feeds.land("a", "1.json", 1)
    monkeypatch.chdir(feeds.root)
    assert main(["check"]) == 0
    assert main(["run", "--only", "a"]) == 0
    assert feeds.ids("a") == [1]
    assert main(["run", "in/a"]) == 2
    assert "no --to, --checkpoint" in capsys.readouterr().err


def test_two_processes_run_feeds_of_one_file_and_a_second_start_of_one_ends_with_75(feeds):
    feeds.land("a", "1.json", 1)
    with feeds.started("--only", "a", "--every", "1s") as process:
        wait_until(lambda: feeds.ids("a") == [1])
        feeds.land("b", "1.json", 2)
        assert feeds.run("--only", "b")[0] == 0
        code, _, errors = feeds.run()
        assert (code, errors.count("\n")) == (75, 1)
        assert errors.startswith("a: QueryRunningError: ")
        # A person is needed for one feed, and not for the other.
        (feeds.directory("c") / "1.json").write_text("{broken\n")
        assert feeds.run()[0] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert feeds.ids("b") == [2]


@pytest.mark.slow
def test_a_feed_whose_state_was_taken_over_ends_and_its_process_with_75(feeds):
    feeds.land("a", "1.json", 1)
    with feeds.started("--only", "a", "--every", "1s") as process:
        assert process.stdout.readline().startswith("a: batch 0")
        assert main(["take-over", str(feeds.root / "checkpoint/a"), "--yes"]) == 0
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.startswith("a: FencedError: ")) == (75, True), errors


def test_a_store_that_does_not_answer_is_75_for_a_run_and_for_a_check(feeds, dead_port):
    storage = STORAGE.format(name="b", port=dead_port)
    feeds.write(b=storage)
    text = feeds.file.read_text().replace('path = "in/b"', 'path = "s3://bucket/b"')
    feeds.file.write_text(text)
    feeds.land("a", "1.json", 1)
    began = time.monotonic()
    code, _, errors = feeds.run()
    assert time.monotonic() - began < 60
    assert (code, errors.count("\n")) == (75, 1), errors
    assert "a-test-secret" not in errors
    assert feeds.ids("a") == [1]
    code, out, _ = feeds.call("check")
    assert code == 75
    assert "b: path: failed: " in out
    assert "a: to: ok: " in out


def test_check_leaves_no_trace_and_tells_a_place_that_refuses(feeds):
    before = feeds.names_below()
    code, out, _ = feeds.call("check")
    assert code == 0
    assert "a: path: ok: no files yet" in out
    assert feeds.names_below() == before
    (feeds.root / "checkpoint").write_text("a file where a directory should be")
    feeds.directory("c").rmdir()
    before = feeds.names_below()
    code, out, _ = feeds.call("check", "--json")
    findings = {(each["feed"], each["place"]): each["code"] for each in json.loads(out)}
    assert code == 1
    assert findings["a", "checkpoint"] == findings["c", "path"] == 1
    assert findings["a", "path"] == findings["c", "to"] == 0
    assert feeds.names_below() == before


@pytest.mark.parametrize("schema", ['schema = "id long"', ""])
def test_check_tells_a_table_that_cannot_do_what_the_options_ask_for(feeds, schema):
    options = '[feed.b.options]\nonOverwrite = "replace"\nwriteFileColumn = "file"'
    feeds.write(b=options)
    text = feeds.file.read_text().replace('to = "delta:table/b"', 'to = "parquet:table/b"')
    feeds.file.write_text(text.replace('schema = "id long"', schema))
    code, out, _ = feeds.call("check")
    assert code == 1
    assert "b: to: failed: TableError: rows of files cannot be replaced or removed" in out
    assert "a: to: ok: " in out


@pytest.mark.slow
def test_hangup_begins_new_feeds_and_ends_those_that_are_gone(feeds):
    feeds.land("a", "1.json", 1)
    feeds.write('every = "1s"')
    with feeds.started() as process:
        wait_until(lambda: feeds.ids("a") == [1])
        feeds.names = ("b", "c")
        feeds.write('every = "1s"', d="")
        process.send_signal(signal.SIGHUP)
        feeds.land("d", "1.json", 4)
        wait_until(lambda: feeds.ids("d") == [4])
        # Another process may have the feed that is gone.
        assert Feeds(feeds.root).run("--only", "a")[0] == 0
        feeds.file.write_text("[feed.b]\npath = 3")
        process.send_signal(signal.SIGHUP)
        feeds.land("b", "1.json", 2)
        wait_until(lambda: feeds.ids("b") == [2])
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "a: run stopped: 1 batch" in out
    assert "feed.b.path: found 3; expected a text" in errors
    assert "The feeds run on as they were." in errors

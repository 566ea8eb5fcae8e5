"""The commands that look: what they print is what was ingested, as text and as JSON; and help."""

import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from importlib.metadata import version

import pyarrow.parquet as pq
import pytest
import typer

import pyspark_sluice
from pyspark_sluice.connector.cli.answer import Exit
from pyspark_sluice.connector.cli.app import app_of, main
from pyspark_sluice.connector.cli.commands.status import status_lines
from pyspark_sluice.connector.views.state_view import matching_pattern
from pyspark_sluice.tests.connector.cli.command_line import run
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow

COMMANDS = typer.main.get_command(app_of()).commands


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    made = Query(tmp_path_factory.mktemp("query"))
    made.land("a.json", "b.json", rows=3)
    made.batch()
    made.land("c.json", rows=2)
    made.batch()
    yield made
    made.coordinator.close()


def told(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    return capsys.readouterr()


def test_the_status_tells_who_what_and_how_much(query, capsys):
    status = run(capsys, "status", str(query.location))
    assert status["state"] == query.state
    assert status["owner"] == {
        "epoch": 1,
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "runs": "running",
    }
    assert (status["newest"]["checkpoint"], status["files_seen"]) == (2, 3)
    assert status["pending"] == {"splits": 0, "bytes": 0, "oldest_modified_seconds": None}
    assert (status["rate"]["rows"], status["rate"]["checkpoints"]) == (8, 2)
    assert status["rate"]["rows_per_second"] > 0
    text = told(capsys, "status", str(query.location)).out
    assert "2 of epoch 1" in text
    assert "it runs" in text
    assert "bad records" not in text
    status["rate"]["dropped_records"] = 2
    assert status_lines(status, "")["bad records"] == (
        "2 in the last 2 checkpoints, 20.0% of the records"
    )


def test_the_status_names_the_schema_of_data_files(tmp_path, capsys):
    made = Query(tmp_path, writeTo=str(tmp_path / "table"))
    made.land("a.json")
    (path,) = made.batch()
    made.coordinator.close()
    written_schema = run(capsys, "status", str(made.location))["written_schema"]
    kinds = {field["name"]: field["type"] for field in written_schema["fields"]}
    assert kinds == {"id": "long"}
    assert pq.read_schema(path).names == [*kinds]
    assert "id long" in told(capsys, "status", str(made.location)).out


def test_files_are_filtered_by_state_and_pattern(query, capsys):
    rows = run(capsys, "files", query.state)
    assert {row["path"].rpartition("/")[2] for row in rows} == {"a.json", "b.json", "c.json"}
    (row,) = run(capsys, "files", query.state, "--matching", "*/c.*")
    assert (row["state"], row["rows"]) == ("read", 2)
    assert run(capsys, "files", query.state, "--in-state", "pending") == []
    assert len(run(capsys, "files", query.state, "--limit", "2")) == 2
    assert "c.json" in told(capsys, "files", query.state, "--view", "splits").out
    error = told(capsys, "files", query.state, "--view", "schemas", "--in-state", "x", code=2).err
    assert "--in-state does not apply to this view; found schemas" in error


def test_a_pattern_means_what_the_shell_means_by_it():
    paths = ("/in/a.json", "/in/[b].json", "/in/deep/c.json", "/in/a.json\n", "s3://b/a.json")
    for pattern in ("*.json", "/in/?.json", "/in/[[]b].json", "/in/*", "*[!a].json", "", "*"):
        found = [path for path in paths if re.search(matching_pattern(pattern), path)]
        # A name that ends with a line break is the one thing that `$` takes for its end here.
        assert [p for p in found if "\n" not in p] == [
            p for p in paths if fnmatchcase(p, pattern) and "\n" not in p
        ]


def test_a_checkpoint_is_shown_whole(query, capsys):
    details = run(capsys, "inspect", query.state, "1")
    assert (details["state"], details["header"]["assigned_splits"]) == ("complete", 2)
    assert sum(row["rows"] for row in details["splits"]) == 6
    assert run(capsys, "inspect", query.state, "1-1") == details
    text = told(capsys, "inspect", query.state, "2").out
    assert "2 of epoch 1: in flight" in text
    assert "c.json" in text
    error = told(capsys, "inspect", query.state, "9", code=2).err
    assert "found '9'; expected an id from 1 to 2" in error


def test_the_difference_of_two_checkpoints_is_what_lies_between(query, capsys):
    for pair in (("1", "2"), ("2", "1")):
        rows = run(capsys, "diff", query.state, *pair)
        assert {(row["change"], row["path"].rpartition("/")[2]) for row in rows} == {
            ("assigned", "c.json")
        } | {(row["change"], "c.json") for row in rows}
    assert run(capsys, "diff", query.state, "2", "2") == []


def test_watching_ends_after_as_many_looks_as_were_asked_for(query, capsys):
    lines = told(capsys, "watch", query.state, "--count", "2", "--interval", "0.1", "--json").out
    assert [json.loads(line)["files_seen"] for line in lines.splitlines()] == [3, 3]
    assert "100%" in told(capsys, "watch", query.state, "--count", "1").out


def test_where_there_is_no_state_the_places_that_were_looked_at_are_named(tmp_path, capsys):
    found = told(capsys, "status", str(tmp_path), code=3)
    assert found.out == ""
    assert f"nothing at {tmp_path}, {tmp_path}/sluice/source" in found.err
    assert "Traceback" not in found.err


def test_storage_options_that_do_not_parse_are_not_repeated(query, capsys):
    error = told(capsys, "status", query.state, "--storage-options", "{secret", code=2).err
    assert "a JSON object" in error
    assert "secret" not in error


def test_it_starts_without_spark(query):
    program = (
        "import sys; from pyspark_sluice.connector.cli.app import main; "
        f"code = main(['status', {query.state!r}, '--json']); "
        "sys.exit(code or 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_state_that_no_row_is_ever_in_is_refused(query, capsys):
    for command in ("files", "requeue"):
        assert main([command, str(query.location), "--in-state", "pendng"]) == 2
        assert "found pendng; expected done, read, " in capsys.readouterr().err
    assert main(["files", str(query.location), "--in-state", "pending"]) == 0
    assert main(["files", str(query.location), "--view", "readers", "--in-state", "gone"]) == 2
    assert "assigned, read, abandoned" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pyspark-sluice {version('pyspark-sluice')}\n"
    assert pyspark_sluice.__version__ == version("pyspark-sluice")


def test_a_path_that_cannot_be_written_is_named_in_one_message(query, capsys):
    error = told(capsys, "fork", query.state, "/proc/xx", "--yes", code=Exit.FAILED).err
    assert error.count("\n") == 1
    assert ": /proc/xx; found " in error


def test_the_list_of_commands_has_a_whole_sentence_for_each(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Read:\n")
    lines = [line for line in listed.splitlines() if line.startswith("  ")]
    assert len(lines) == len(COMMANDS)
    assert [line for line in lines if "..." in line or not line.endswith(".")] == []


def test_each_command_has_an_example_that_parses():
    for name, command in COMMANDS.items():
        words = shlex.split(command.epilog.removeprefix("Example: sluice "))
        assert words[0] == name
        command.make_context(name, words[1:])


def test_a_table_fits_the_screen_and_breaks_no_word(query, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for command in (["files", query.state], ["inspect", query.state, "1"], ["orders", query.state]):
        lines = told(capsys, *command).out.splitlines()
        # A path is a word.
        assert [line for line in lines if len(line) > 100 and "/" not in line] == []
    rows = run(capsys, "files", query.state)
    printed = told(capsys, "files", query.state).out.split()
    assert {row["path"] for row in rows} <= {*printed}
    # In a pipe a row is a line, whatever is said of the width of a screen.
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert len(told(capsys, "files", query.state).out.splitlines()) == len(rows) + 2


def test_the_runbook_is_a_page_in_pipes_and_a_document_for_programs(capsys, monkeypatch):
    text = told(capsys, "runbook", "FencedError").out
    assert text.startswith("#")
    assert run(capsys, "runbook", "FencedError") == {"sections": text.rstrip("\n") + "\n"}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    shown = told(capsys, "runbook", "FencedError").out
    assert "#" not in shown
    assert "FencedError" in shown

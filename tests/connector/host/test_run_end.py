"""The line at the end of a run, the same as JSON, and what `sluice status` says of it later."""

import json
import os
import signal

import pytest

from pyspark_sluice import run
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


def end_of(query, *more, code=0):
    """The last line of a run, and the same of a run with `--json` right after it."""
    answer, output, _ = query.run_here(*more, schema="")
    assert answer == code
    again, documents, _ = query.run_here(*more, "--json", schema="")
    assert again == code
    assert not any("rows" in line for line in documents.splitlines() if '"run"' in line)
    return output.splitlines()[-1], json.loads(documents.splitlines()[-1])["run"]


def status_of(query, capsys, code):
    assert main(["status", str(query.checkpoint), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_end_says_what_was_read_and_everything_that_was_not(query, capsys):
    query.land("0.json", range(3))
    # Of 256 changes one is not counted: with fixed times it is none or always this one.
    os.utime(query.source / "0.json", (1e9, 1e9))
    query.land("1.json", range(3, 5))
    line, _ = end_of(query)
    assert line.startswith("run finished: 1 batch, 5 rows in 2 data files (")
    assert end_of(query)[0] == "run finished: nothing new"
    query.land("0.json", range(90, 95))  # replaced: other content under a known name
    os.utime(query.source / "0.json", (1e9, 1e9 + 1))
    query.landed.subtract(range(90, 95))
    notes = query.source / "notes.txt"
    notes.write_text("1\n")
    query.land("2.json", range(5, 6), client=7)
    line, document = end_of(query, "--option", "pathGlobFilter=*.json")
    assert line.endswith(
        "; 1 changed file not read again (onOverwrite=ignore); 1 file (pathGlobFilter) left out"
        "; schema: + client long"
    )
    assert document["left_out"] == {"onOverwrite": 1, "pathGlobFilter": 1}
    assert (document["end"], document["batches"], document["new_columns"]) == ("finished", 0, [])
    notes.unlink()
    query.land("3.json", range(6, 7))
    line, document = end_of(query, "--option", "settleTime=1h")
    assert "1 file (settleTime) not read yet" in line
    assert document["left_out"]["settleTime"] == 1
    status = status_of(query, capsys, 0)
    assert (status["last_run"], status["attention"]) == (document, [])
    assert query.run_here(schema="")[0] == 0
    assert query.in_table() == +query.landed


def test_a_run_that_failed_or_was_killed_is_no_run_that_is_done(query, tmp_path, capsys):
    query.land("0.json", range(3))
    assert query.run_here()[0] == 0
    assert main(["status", str(query.checkpoint)]) == 0
    assert "last run     ended 0 s ago, finished: 1 batch, 3 rows" in capsys.readouterr().out
    bad = query.source / "1.json"
    bad.write_text('{"id": oops}\n')
    code, output, _ = query.run_here()
    assert (code, output) == (1, "run failed: no batch\n")
    status = status_of(query, capsys, 1)
    assert status["attention"] == [
        "batch 1 was begun and is not finished, and no query runs",
        "the last run failed",
    ]
    assert status["last_run"]["error"].startswith("MalformedDataError: malformed record: ")
    assert main(["status", str(query.checkpoint)]) == 1
    assert "\nlast error   MalformedDataError" in capsys.readouterr().out
    quarantine = ("--option", "onSplitError=return", "--option", "maxSplitAttempts=1")
    assert "1 split in quarantine" in query.run(*quarantine)[1]
    assert status_of(query, capsys, 1)["attention"] == ["1 split in quarantine"]
    bad.write_text('{"id": 3, "text": "row 3"}\n')
    query.landed[3] += 1
    assert main(["requeue", str(query.checkpoint), "--quarantined", "--yes"]) == 0
    assert query.run_here()[0] == 0
    capsys.readouterr()
    assert status_of(query, capsys, 0)["attention"] == []

    (tmp_path / "stuck.py").write_text("import time\ndef wait(_):\n    time.sleep(600)\n")
    query.land("2.json", range(4, 6))
    transform = ("writeTransform=stuck:wait", "writeTransformSchema=id long, text string")
    options = [f"--option={option}" for option in transform]
    process = query.start(*options, variables={"PYTHONPATH": str(tmp_path)})
    wait_until(lambda: len(query.logged("offsets")) > len(query.logged("commits")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    status = status_of(query, capsys, 1)
    number = query.logged("offsets")[-1]
    assert status["attention"] == [
        f"batch {number} was begun and is not finished, and no query runs"
    ]
    assert query.run_here()[0] == 0
    assert status_of(query, capsys, 0)["batch"] == {"number": number, "is_finished": True}
    assert query.in_table() == query.landed


def test_a_refusal_before_the_claim_is_the_last_error_too(query, capsys):
    query.land("0.json", range(3))
    assert query.run_here(schema="")[0] == 0
    query.source.rename(query.source.with_name("moved"))
    code, _, errors = query.run_here(schema="")
    assert (code, errors.startswith("MissingPathError")) == (1, True)
    status = status_of(query, capsys, 1)
    assert status["last_run"]["error"].startswith("MissingPathError")
    assert status["attention"] == ["the last run failed"]
    query.source.with_name("moved").rename(query.source)
    assert query.run_here(schema="")[0] == 0
    status_of(query, capsys, 0)


def test_without_pyspark_the_error_names_the_extra(query):
    query.land("0.json", range(3))
    code, output, errors = query.run("--spark", "local[1]")
    assert (code, output, ".[spark]" in errors) == (2, "", True)
    assert "Traceback" not in errors


def test_errors_name_options_as_the_host_takes_them(tmp_path):
    query = Query(tmp_path)
    (query.source / "1.csv").write_text("b,a\n1,2\n")
    columns, to = "a long, b long", f"delta:{query.table}"
    with pytest.raises(SchemaMismatchError, match=r"Correct schema, or set enforceSchema"):
        run(
            str(query.source),
            checkpoint=str(tmp_path / "other"),
            format="csv",
            to=to,
            schema=columns,
            header=True,
        )
    more = ("--format", "csv", "--option", "header=true")
    code, output, errors = query.run_here(*more, "--json", schema=columns)
    (report,) = map(json.loads, output.splitlines())
    assert code == 1
    for text in (errors, report["run"]["error"]):
        assert "Correct --schema, or set enforceSchema" in text


def test_the_last_run_is_the_newest_one_after_a_clock_was_set_back(query, capsys):
    query.land("0.json", range(3))
    end_of(query)
    for number, record in enumerate(sorted(query.checkpoint.glob("sluice/source/runs/*"))):
        # As if these had ended in the year 2100.
        record.rename(record.with_name(f"{4_102_444_800_000_000 + number:020d}.json"))
    query.land("1.json", range(3, 8))
    assert query.run_here(schema="")[0] == 0
    assert status_of(query, capsys, 0)["last_run"]["row_count"] == 5

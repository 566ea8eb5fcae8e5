"""`sluice run` without PySpark and Java: batches, exit codes, signals, two hosts, a dry run."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice import run
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.host import worker_pool
from pyspark_sluice.connector.host.embedded_query import EmbeddedRun
from pyspark_sluice.connector.host.run import checked_with_target
from pyspark_sluice.connector.host.worker_pool import WorkerPool
from pyspark_sluice.connector.views.amounts import run_text
from pyspark_sluice.errors import FencedError, OptionError, SluiceError, StateError, TableError
from pyspark_sluice.examples.demo.driver import descendants
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


def test_rows_are_in_the_table_once_without_pyspark_and_java(query):
    for number in range(4):
        query.land(f"{number}.json", range(number * 10, number * 10 + 10))
    limit = ("--option", "maxFilesPerTrigger=2")
    code, output, errors = query.run(*limit)
    assert (code, errors) == (0, "")
    *batches, end = output.splitlines()
    assert [line.split(" splits, ")[1].split(" in ")[0] for line in batches] == ["20 rows"] * 2
    assert end.startswith("run finished: 2 batches, 40 rows in ")
    assert query.run_here(*limit)[:2] == (0, "run finished: nothing new\n")
    query.land("late.json", range(40, 50))
    assert query.run_here(*limit)[0] == 0
    assert query.in_table() == query.landed
    assert query.logged("offsets") == query.logged("commits") == [0, 1, 2]


def test_a_wrong_call_ends_with_2_and_a_failure_with_1(query):
    query.land("0.json", range(3))
    code, _, errors = query.run_here("--option", "maxFilesPerTriger=2")
    assert (code, "maxFilesPerTrigger" in errors) == (2, True)
    assert query.run_here("--once", "--every", "5s")[0] == 2
    assert query.logged("offsets") == []
    (query.source / "1.json").write_text("not json\n")
    code, _, errors = query.run_here("--option", "mode=FAILFAST")
    assert (code, errors.startswith("MalformedDataError")) == (1, True)
    assert "Traceback" not in errors


def test_a_dry_run_shows_the_first_batch_and_leaves_no_trace(query):
    query.land("0.json", range(3))
    before = sorted(query.source.parent.rglob("*"))
    code, output, _ = query.run_here("--dry-run")
    assert (code, output.startswith("batch 0 would read 1 split (")) == (0, True)
    assert sorted(query.source.parent.rglob("*")) == before
    assert query.run_here()[0] == 0
    assert query.run_here("--dry-run")[1] == "nothing new\n"


def test_without_a_schema_an_empty_directory_is_nothing_new_until_a_file_is_there(query):
    assert query.run_here("--dry-run", schema="")[:2] == (0, "nothing new\n")
    assert query.run(schema="")[:2] == (0, "run finished: nothing new\n")
    with query.start("--every", "1s", schema="") as process:
        assert f"{query.source}: no file with content is there yet" in process.stderr.readline()
        query.land("0.json", range(10))
        assert process.stdout.readline().startswith("batch 0: 1 split, 10 rows")
        process.terminate()
        assert process.wait(60) == 0
    assert query.in_table() == query.landed


def test_sigterm_ends_after_the_batch_and_a_waiting_run_at_once(query):
    query.land("0.json", range(10))
    process = query.start("--every", "1s")
    wait_until(lambda: query.logged("commits") == [0])
    query.land("1.json", range(10, 20))
    wait_until(lambda: query.logged("commits") == [0, 1])
    os.kill(process.pid, signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[2].startswith("run stopped: 2 batches, 20 rows in ")
    assert query.in_table() == query.landed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.thorough("waits until the processes of tasks are ended")
def test_a_waiting_run_gives_memory_back_and_reads_on(query):
    query.land("0.json", range(10))
    process = query.start("--every", "1s", "--workers", "2")
    wait_until(lambda: query.logged("commits") == [0])
    wait_until(lambda: len(descendants(process.pid)) == 0, "the end of the workers", 60)
    wait_until(lambda: resident(process.pid) < 100 << 20, lambda: resident(process.pid), 10)
    query.land("1.json", range(10, 20))
    wait_until(lambda: query.logged("commits") == [0, 1])
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == ""
    assert query.in_table() == query.landed


def resident(process):
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return 1024 * int(rollup.split("Rss:")[1].split()[0])


@pytest.mark.parametrize("command", [[], ["take-over", "--yes"]], ids=["flag", "command"])
def test_of_two_hosts_the_older_one_stops_with_an_error(query, command):
    query.land("0.json", range(10))
    older = query.batches(every=0.1)
    assert next(older).rows == 10
    query.land("1.json", range(10, 20))
    if command:
        assert main([*command, str(query.checkpoint)]) == 0
    assert query.run_here(*([] if command else ["--take-over"]))[0] == 0
    query.land("2.json", range(20, 30))
    with pytest.raises(FencedError, match="another query"):
        list(older)
    assert query.run_here()[0] == 0
    assert query.in_table() == query.landed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_end_with_a_host_that_is_killed_while_it_sends_a_task(query):
    for number in range(2):
        query.land(f"{number}.json", range(number * 10, number * 10 + 10))
    # A task that is larger than a pipe, and processes that do not read it.
    schema = ", ".join(["id long", *(f"{'column' * 5}{n} long" for n in range(2500))])
    process = query.start("--workers", "2", schema=schema)
    workers: set[int] = set()

    def are_stopped():
        workers.update(descendants(process.pid))
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        return len(workers) == 2

    wait_until(are_stopped)
    time.sleep(3)  # By now the host waits in the middle of its write.
    process.kill()
    for worker in workers:
        os.kill(worker, signal.SIGCONT)
    process.communicate(timeout=60)
    wait_until(lambda: not any(map(is_alive, workers)), lambda: workers)


def is_alive(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_worker_that_hangs_is_named_and_ended_after_the_bound(query, monkeypatch, caplog):
    monkeypatch.setattr(worker_pool, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(worker_pool, "_FIRST_LINE", 0.2)
    query.land("0.json", range(10))
    others, stopped = set(descendants(os.getpid())), []
    attempts = []

    def stop_the_first():
        wait_until(lambda: set(descendants(os.getpid())) - others)
        (worker,) = set(descendants(os.getpid())) - others
        os.kill(worker, signal.SIGSTOP)
        stopped.append(worker)

    with ThreadPoolExecutor(1) as threads:
        attempts.append(threads.submit(stop_the_first))
        call = keywords(query.options())
        (report,) = run(**call, to=f"delta:{query.table}", workers=1, task_timeout=15.0).batches
        attempts[0].result()
    assert report.rows == 10
    lines = [r.getMessage() for r in caplog.records if "has had its task for" in r.getMessage()]
    assert f"reader 0: process {stopped[0]} has had its task for" in lines[0]
    assert query.in_table() == query.landed


@pytest.mark.thorough("starts many processes; one that dies between tasks is replaced below")
def test_a_worker_that_always_dies_is_an_error(query, tmp_path, monkeypatch):
    # A module that the processes import as the user's own.
    (tmp_path / "fatal.py").write_text("import os\ndef die(_):\n    os.kill(os.getpid(), 9)\n")
    monkeypatch.syspath_prepend(tmp_path)
    query.land("0.json", range(10))
    transform = {"writeTransform": "fatal:die", "writeTransformSchema": "id long, text string"}
    with pytest.raises(SluiceError, match=r"died each time it ran.*signal 9, signal 9"):
        run(**keywords(query.options(**transform)), to=f"delta:{query.table}", workers=1)
    assert query.in_table() == {}


def test_a_batch_that_another_host_has_begun_is_refused(query):
    query.land("0.json", range(10))
    batches = query.batches(every=0.1)
    assert next(batches).rows == 10
    (query.checkpoint / "offsets" / "1").write_text("v1\n{}\n-")
    query.land("1.json", range(10, 20))
    with pytest.raises(FencedError, match="has taken over this checkpoint"):
        next(batches)


def test_a_worker_that_dies_between_two_tasks_is_replaced(query):
    query.land("0.json", range(10))
    query.land("1.json", range(10, 20))
    others = set(descendants(os.getpid()))
    call = checked_with_target(query.options(maxFilesPerTrigger="1"), f"delta:{query.table}")
    with WorkerPool(1) as pool:
        one = EmbeddedRun(*call, pool, every=None)
        batches = one.batches()
        assert next(batches).rows == 10
        (worker,) = set(descendants(os.getpid())) - others
        os.kill(worker, signal.SIGKILL)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
        assert [batch.rows for batch in batches] == [10]
    assert query.in_table() == query.landed
    # The run ends well, and does not keep it to itself.
    assert one.summary is not None
    assert "1 worker died and was replaced (signal 9)" in run_text(one.summary)


def test_other_libraries_take_the_rows_of_a_batch_and_a_notebook_shows_the_report(query, tmp_path):
    query.land("0.json", range(10))
    taken = []

    def sink(batch, _):
        with duckdb.connect() as connection:
            ((total,),) = connection.execute("SELECT sum(id) FROM batch").fetchall()
        frames = pl.DataFrame(batch), batch.reader().read_pandas()
        taken.extend([pa.table(batch).num_rows, *map(len, frames), int(total)])

    options = query.options(writeTo=str(tmp_path / "files"))
    report = run(**keywords(options), to=sink)
    assert taken == [10, 10, 10, 45]
    html = report._repr_html_()
    assert "run finished: 1 batch, 10 rows" in html
    # A batch without rows has no data file, and so no columns.
    query.land("1.json", range(3))
    run(**keywords({**options, "filter": "id > 5"}), to=lambda batch, _: taken.append(batch))
    assert [taken[-1].reader().read_all().num_rows, len(pl.DataFrame(taken[-1]))] == [0, 0]
    assert "<td>10</td>" in html


@pytest.mark.parametrize(("cause", "expected"), [(ConnectionError, True), (ValueError, False)])
def test_the_error_of_a_run_says_whether_the_same_call_may_succeed_later(
    query, tmp_path, cause, expected
):
    query.land("0.json", range(10))

    def sink(*_):
        raise TableError("the table is away") from cause()

    with pytest.raises(TableError) as error:
        run(query.options(writeTo=str(tmp_path / "files")), to=sink)
    assert error.value.may_pass is expected


def test_a_function_gets_the_data_files_and_a_reader_of_their_rows(query, tmp_path):
    query.land("0.json", range(10))
    batches = []

    def sink(batch, number):
        rows = batch.reader().read_all()
        batches.append(
            (number, len(batch.files), sorted(rows["id"].to_pylist()), rows.schema.names)
        )

    options = query.options(writeTo=str(tmp_path / "files"), writePartitionBy="text")
    assert run(**keywords(options), to=sink).rows == 10
    assert batches == [(0, 10, list(range(10)), ["id", "text"])]


def test_a_new_column_and_a_wider_type_start_the_query_again_by_themselves(query, tmp_path):
    widens = ("--option", "schemaEvolutionMode=addNewColumnsWithTypeWidening")
    query.land("0.json", range(2))
    assert query.run_here(schema="")[::2] == (0, "")
    (query.source / "1.json").write_text('{"id": 2, "text": "row 2", "note": "new"}\n')
    assert query.run_here(schema="")[::2] == (0, "")
    rows = DeltaTable(str(query.table)).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["note"]) for row in rows] == [(0, None), (1, None), (2, "new")]
    (query.source / "2.json").write_text('{"id": 2.5, "text": "row 2"}\n')
    elsewhere = {"schema": "", "to": f"parquet:{tmp_path}/files"}
    assert query.run_here(*widens, "--new-table", **elsewhere)[::2] == (0, "")
    assert query.logged("commits") == [0, 1, 2]


def test_a_terminal_shows_the_tasks_of_the_running_batch(query, tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text(
        "import time\ndef wait(rows):\n    time.sleep(0.2)\n    return rows\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for number in range(4):
        query.land(f"{number}.json", range(number * 10, number * 10 + 10))
    transform = ("writeTransform=slow:wait", "writeTransformSchema=id long, text string")
    terminal, end = pty.openpty()
    options = [f"--option={each}" for each in (*transform, "parallelism=4")]
    process = query.start(*options, stderr=end)
    os.close(end)
    output, _ = process.communicate(timeout=120)
    shown = os.read(terminal, 100_000).decode()
    assert (process.returncode, output[:26]) == (0, "batch 0: 4 splits, 40 rows")
    assert "tasks of the batch" in shown
    assert "25%" in shown


def test_a_link_within_the_input_that_leads_to_the_table_is_refused(query):
    query.land("a.json", range(3))
    assert run(**keywords(query.options()), to=f"delta:{query.table}").rows == 3
    (query.source / "all").symlink_to(query.table.parent)
    (query.source / "out").symlink_to(query.table)
    with pytest.raises(OptionError, match="a link below the input path leads to a directory of"):
        run(**keywords(query.options()), to=f"delta:{query.table}")
    (query.source / "out").unlink()
    with pytest.raises(SluiceError, match=r"form a cycle|a link below the input path"):
        run(**keywords(query.options()), to=f"delta:{query.table}")


@pytest.mark.parametrize("to", ["delta:", "parquet:"])
def test_a_table_whose_store_ignores_conditions_is_refused_before_the_state_is_claimed(
    server, bucket, query, to
):
    """Two queries into it would lose commits, although the state is elsewhere."""
    server.fault = lambda environ, _: environ.pop("HTTP_IF_NONE_MATCH", None) and None
    query.land("a.json", range(3))
    # Whether a bucket is well is tried once for each client.
    storage = {**server.options, "timeout": "59s" if to == "delta:" else "58s"}
    with pytest.raises(StateError, match=r"of 4 learned .* expected a create that fails if"):
        run(**keywords(query.options(storageOptions=storage)), to=f"{to}s3://{bucket}/table")
    assert server.keys(bucket) == []
    assert not (query.checkpoint / "sluice").exists()
    server.fault = None
    assert (
        run(**keywords(query.options(storageOptions=storage)), to=f"{to}s3://{bucket}/table").rows
        == 3
    )

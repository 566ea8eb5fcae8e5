"""A batch that the sink does not have: given back, and read again under other options."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.host.batch_log import BatchLog
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.connector.cli.command_line import run as command
from pyspark_sluice.tests.connector.host.landing import STEPS, Landing
from pyspark_sluice.tests.tables.sinks import files_of


@pytest.fixture
def landing(tmp_path, ended_driver):
    return Landing(tmp_path)


def refuse(*_):
    raise TableError("the table takes nothing today", "table", "a batch", "none", "Wait.")


@pytest.fixture
def refused(landing, monkeypatch):
    """The second batch: its reader has committed, and the table has refused it."""
    landing.json("1.json", {"id": 1, "v": "a"})
    landing.run()
    landing.json("2.json", {"id": 2, "v": "b"}, {"id": 3, "v": None})
    with monkeypatch.context() as patched:
        patched.setattr(DeltaSink, "_commit", refuse)
        with pytest.raises(TableError):
            landing.run()
    return landing


def state_of(landing):
    return str(landing.checkpoint / "sluice" / "source")


def reread(landing, *more):
    return main(["reread", str(landing.checkpoint), "--yes", *more])


def commits_of(landing):
    store = open_store(state_of(landing))
    commits = ReaderCommits(store)
    batch = CheckpointHistory(store).load(CheckpointRef(2, 2)).identity
    return commits.find(batch, 0), [*commits.replaced(batch, 0)]


def in_table(landing):
    return sorted(row["id"] for row in landing.rows())


def check_exact(landing, ids, *, left=0):
    """The rows are right, and `left` data files are there that the table does not name."""
    assert in_table(landing) == ids
    named = {Path(uri).name for uri in DeltaTable(str(landing.table)).file_uris()}
    assert len(files_of(landing.table) - named) == left
    assert named <= files_of(landing.table)
    assert main(["verify", state_of(landing)]) == 0


def test_options_help_only_a_batch_that_was_given_back(refused, capsys):
    wanted = {"filter": "v IS NOT NULL"}
    report = command(capsys, "reread", str(refused.checkpoint))
    assert (report["rows"], report["data_files"], report["written"]) == (2, 1, False)
    assert reread(refused, "--reason", "nulls") == 0
    refused.run(**wanted)
    check_exact(refused, [1, 2])
    counted, (replaced,) = commits_of(refused)
    assert (sum(counted.rows), sum(replaced.rows)) == (1, 2)
    capsys.readouterr()
    (order,) = command(capsys, "orders", str(refused.checkpoint))
    assert (order["action"], order["state"], order["reason"]) == ("reread", "done", "nulls")
    # Once: the next batches are read under their own options, and no other one is in flight.
    refused.json("3.json", {"id": 4, "v": None})
    refused.run()
    check_exact(refused, [1, 2, 4])
    assert reread(refused) == 2
    assert "no batch is in flight" in capsys.readouterr().err


def test_without_an_order_the_commits_of_the_readers_count(refused):
    refused.run(filter="v IS NOT NULL")
    check_exact(refused, [1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_the_rows_of_the_new_options_once(refused, step, is_done):
    assert reread(refused) == 0
    refused.die(step, is_done)
    refused.run(filter="v IS NOT NULL")
    # What an attempt that was killed had written stays until retention sweeps.
    check_exact(refused, [1, 2], left=(step, is_done) == ("commit", False))


def test_under_spark_s_calls_the_batch_is_read_again_as_well(refused):
    assert reread(refused) == 0
    options = refused.call(writeTo=str(refused.table), filter="v IS NOT NULL")
    source = SluiceDataSource({name.lower(): text for name, text in options.items()})
    start, end = (
        json.loads((refused.checkpoint / "offsets" / name).read_text().splitlines()[2])
        for name in ("0", "1")
    )
    schema = source.schema()
    assert isinstance(schema, StructType)
    reader = source.streamReader(schema)
    try:
        # Spark's first call after a crash between its two logs.
        (partition,) = reader.partitions(start, end)
        (batch,) = reader.read(partition)
    finally:
        reader.stop()
    assert batch.to_pydict()["rows"] == [1]
    # The other host goes on: it finds the commit that was made under the order.
    refused.run()
    check_exact(refused, [1, 2])


def test_an_executor_that_does_not_know_of_the_order_changes_nothing(refused):
    assert reread(refused) == 0
    old, _ = commits_of(refused)
    refused.run(filter="v IS NOT NULL")
    store = open_store(state_of(refused))
    # It writes the same commit again, late.
    assert ReaderCommits(store, rereads={}).publish(old) == old
    counted, _ = commits_of(refused)
    assert sum(counted.rows) == 1


def test_a_batch_that_the_sink_has_is_refused_and_an_order_about_it_has_no_effect(
    refused, monkeypatch, capsys
):
    # The order is written, and then another process, which was only asleep, adds the batch.
    assert reread(refused) == 0
    orders = Path(state_of(refused), "orders")
    (order,) = [path.rename(path.with_suffix(".hidden")) for path in orders.iterdir()]
    with monkeypatch.context() as patched:
        patched.setattr(BatchLog, "end", refuse)
        with pytest.raises(TableError):
            refused.run()
    capsys.readouterr()
    assert reread(refused) == 5
    assert "the table has the batch already" in capsys.readouterr().err
    order.rename(order.with_suffix(".json"))
    refused.run(filter="v IS NOT NULL")
    check_exact(refused, [1, 2, 3])


def test_a_sink_that_cannot_be_asked_has_to_be_named_or_checked(landing, capsys):
    landing.json("1.json", {"id": 1})
    elsewhere = {"writeTo": str(landing.data.parent / "files")}
    with pytest.raises(TableError):
        landing.run(refuse, **elsewhere)
    assert reread(landing) == 2
    assert "add --not-in-sink" in capsys.readouterr().err
    assert reread(landing, "--to", f"delta:{landing.table}") == 0
    assert reread(landing, "--not-in-sink") == 0
    batches = []
    landing.run(lambda batch, _: batches.append(batch.reader().read_all().to_pylist()), **elsewhere)
    assert batches[0] == [{"id": 1}]


def test_a_batch_that_no_reader_has_committed_needs_no_order(landing, capsys):
    landing.json("1.json", {"id": 1})
    landing.run()
    landing.json("2.json", {"id": "x"})
    with pytest.raises(Exception, match="malformed record"):
        landing.run()
    capsys.readouterr()
    assert reread(landing) == 1
    assert "the next start reads it under its options anyway" in capsys.readouterr().out


def test_manifests_are_found_next_to_the_data_files(landing, monkeypatch, capsys):
    target = f"parquet:{landing.table}"
    landing.json("1.json", {"id": 1})
    landing.run(target)
    landing.json("2.json", {"id": 2}, {"id": 3})
    with monkeypatch.context() as patched:
        patched.setattr(BatchLog, "end", refuse)
        with pytest.raises(TableError):
            landing.run(target)
    assert reread(landing) == 5
    assert "the table has the batch already" in capsys.readouterr().err
    max((landing.table / "_sluice" / "manifests").iterdir()).unlink()
    assert reread(landing) == 0
    landing.run(target, filter="id < 3")
    assert len(files_of(landing.table)) == 2

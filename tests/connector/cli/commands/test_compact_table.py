"""`sluice compact-table`: few large files with the same rows, also while a query adds batches."""

import json
import signal
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.table import TableOptimizer

from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.layout import EPOCHS, numbered
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.delta_changes import check_library
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.tables.sinks import batch_of, compact_until, files_of, ids, processes

PARTITIONS = "abcd"


def add(table, number, **more):
    """Three rows into one partition of four."""
    rows = ids(3 * number, who=PARTITIONS[number % 4], **more)
    DeltaSink(str(table), {}).add(batch_of(table, number, rows, partition_by="who"))


@pytest.fixture
def table(tmp_path):
    """Eight batches, the last four with one more column."""
    for number in range(1, 9):
        add(tmp_path / "table", number, **({"v": 1.5} if number > 4 else {}))
    return tmp_path / "table"


def test_a_compaction_excludes_another_one_that_works_and_no_dead_one(table, capsys):
    store = open_store(f"{table}/_sluice_compaction")
    claim_epoch(store)
    assert compact(table)
    assert "another compaction of the table is at work" in capsys.readouterr().err
    assert contents(table) == expected(8)
    store.delete(numbered(EPOCHS, 1))
    dead = processes().Process(target=claim_epoch, args=(store,))
    dead.start()
    dead.join(PATIENCE)
    assert compact(table) == 0
    assert contents(table) == expected(8)
    assert store.list("epochs") == []


def test_a_library_that_lets_a_second_compaction_pass_is_refused(monkeypatch):
    monkeypatch.setattr(TableOptimizer, "compact", lambda *_, **__: {})
    with pytest.raises(TableError, match="doubles rows if two compactions meet"):
        check_library.__wrapped__()


def contents(table):
    rows = DeltaTable(str(table)).to_pyarrow_table().sort_by("id").to_pylist()
    return [(row["id"], row["who"], row["v"]) for row in rows]


def expected(batches):
    return [
        (n, PARTITIONS[n // 3 % 4], 1.5 if n >= 15 else None) for n in range(3, 3 * batches + 3)
    ]


def compact(table, *more):
    return main(["compact-table", f"delta:{table}", *more])


def test_each_partition_has_one_file_and_a_repeated_batch_adds_nothing(table, capsys):
    assert compact(table, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"files_removed": 8, "files_added": 4}
    assert len(DeltaTable(str(table)).file_uris()) == 4
    # The files of the batch are gone by then.
    repeated = batch_of(table, 8, ids(24, who="a", v=1.5), partition_by="who")
    DeltaTable(str(table)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert not Path(repeated.files[0].path).exists()
    DeltaSink(str(table), {}).add(repeated)
    add(table, 9, v=1.5)
    assert contents(table) == expected(9)
    assert compact(table) == 0
    assert "files removed" in capsys.readouterr().out


def test_files_stay_small_if_the_target_is_and_a_target_has_to_parse(table, capsys):
    assert compact(table, "--target-bytes", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"files_removed": 0, "files_added": 0}
    assert compact(table, "--target-bytes", "much") == 2
    assert "--target-bytes does not parse" in capsys.readouterr().err


def test_a_batch_that_is_added_meanwhile_stays_and_one_with_a_new_column_is_named(
    table, capsys, monkeypatch
):
    def overtaken(number, **more):
        earlier = DeltaTable(str(table))
        add(table, number, **more)
        with monkeypatch.context() as patch:
            patch.setattr(DeltaSink, "opened", lambda _: earlier)
            return compact(table)

    assert overtaken(9, v=1.5) == 0
    assert contents(table) == expected(9)
    assert overtaken(10, v=1.5, new="x") == 5
    assert "run the command again" in " ".join(capsys.readouterr().err.split())
    assert contents(table) == expected(10)
    assert compact(table) == 0
    assert contents(table) == expected(10)


def test_tables_of_other_kinds_are_refused_by_name(tmp_path, capsys):
    assert main(["compact-table", "iceberg:lake.orders"]) == 2
    assert "pyiceberg cannot rewrite" in " ".join(capsys.readouterr().err.split())
    assert compact(tmp_path) == 5
    assert "the table was not compacted" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, "committed"])
def test_a_kill_at_any_step_keeps_each_row_once_and_the_next_run_ends(table, step):
    is_last = step == "committed"
    arguments, more = (str(table), 4 if is_last else step), {"has_committed": is_last}
    killed = processes().Process(target=compact_until, args=arguments, kwargs=more)
    killed.start()
    killed.join(PATIENCE)
    assert killed.exitcode == -signal.SIGKILL
    assert contents(table) == expected(8)
    add(table, 9, v=1.5)
    assert compact(table) == 0
    assert contents(table) == expected(9)
    assert len(DeltaTable(str(table)).file_uris()) == 4
    DeltaTable(str(table)).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(files_of(table)) == 4

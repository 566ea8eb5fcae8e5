"""Table and checkpoint apart, after one was restored: the commands make the rows exact again."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from pyspark_sluice import tables
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.tables.iceberg_lake import catalog_in

pytestmark = pytest.mark.slow


class Pipeline:
    """A landing directory, a checkpoint and a table."""

    def __init__(self, kind, folder, monkeypatch):
        self.folder, self.kind, self.options = folder, kind, []
        self.to = f"{kind}:{folder}/table"
        if kind == "iceberg":
            catalog_in(folder, monkeypatch)
            self.to = "iceberg:lake.db.orders"

    def run(self, *numbers, checkpoint="ck", refused=""):
        query = Query(self.folder, checkpoint)
        for number in numbers:
            (query.source / f"{number}.json").write_text(json.dumps({"id": number}))
        options = [word for option in self.options for word in ("--option", option)]
        code, _, errors = query.run_here(*options, schema="id BIGINT", to=self.to)
        assert refused in " ".join(errors.split())
        assert bool(code) == bool(refused), errors

    def command(self, name, *more, checkpoint="ck"):
        return main([name, str(self.folder / checkpoint), *more, "--yes"])

    def rows(self):
        if self.kind == "iceberg":
            return sorted(self.catalog.load_table("db.orders").scan().to_arrow()["id"].to_pylist())
        if self.kind == "delta":
            return sorted(
                DeltaTable(str(self.folder / "table")).to_pyarrow_table()["id"].to_pylist()
            )
        paths = tables.manifest(str(self.folder / "table/_sluice")).paths()
        return sorted(i for path in paths for i in pq.read_table(path)["id"].to_pylist())

    def take_back(self):
        """Take the table back by one batch, with the library's own call."""
        if self.kind == "delta":
            table = DeltaTable(str(self.folder / "table"))
            table.restore(table.version() - 1)
        else:
            table = self.catalog.load_table("db.orders")
            with table.manage_snapshots() as manage:
                manage.rollback_to_snapshot(table.current_snapshot().parent_snapshot_id)

    def compact(self):
        """Rewrite all rows as one file, as other writers do."""
        if self.kind == "delta":
            DeltaTable(str(self.folder / "table")).optimize.compact()
        else:
            table = self.catalog.load_table("db.orders")
            table.overwrite(table.scan().to_arrow())

    @property
    def catalog(self):
        return load_catalog("lake")

    @property
    def log(self):
        """What says which files are in the table."""
        names = {"delta": "table/_delta_log", "parquet": "table/_sluice", "iceberg": "c.db"}
        return self.folder / names[self.kind]


def copy(source, target):
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


@pytest.fixture(params=["delta", "iceberg", "parquet"])
def pipeline(request, tmp_path, monkeypatch):
    return Pipeline(request.param, tmp_path, monkeypatch)


def test_batches_that_a_restored_checkpoint_lacks_are_removed_and_read_again(pipeline, capsys):
    pipeline.run(1)
    copy(pipeline.folder / "ck", pipeline.folder / "backup")
    pipeline.run(2)
    pipeline.run(3)
    copy(pipeline.folder / "backup", pipeline.folder / "ck")
    pipeline.run(refused="which must still be there")
    assert pipeline.command("remove-batches", pipeline.to) == 0
    assert "also by cleanSource, or their rows are lost" in capsys.readouterr().out
    assert pipeline.rows() == [1]
    pipeline.run(4)
    assert pipeline.rows() == [1, 2, 3, 4]


def test_batches_that_a_restored_table_lacks_are_added_from_their_data_files(pipeline):
    pipeline.run(1)
    copy(pipeline.log, pipeline.folder / "backup")
    pipeline.run(2)
    pipeline.run(3)
    copy(pipeline.folder / "backup", pipeline.log)
    pipeline.run(4, refused="sluice add-batches")
    assert pipeline.command("add-batches", pipeline.to) == 0
    pipeline.run()
    assert pipeline.rows() == [1, 2, 3, 4]


def test_batches_whose_data_files_are_gone_are_read_again_by_the_fork_that_the_error_names(
    pipeline, capsys
):
    pipeline.run(1)
    copy(pipeline.log, pipeline.folder / "backup")
    written = {*pipeline.folder.rglob("*.parquet")}
    pipeline.run(2)
    copy(pipeline.folder / "backup", pipeline.log)
    for file in {*pipeline.folder.rglob("*.parquet")} - written:
        file.unlink()
    assert pipeline.command("add-batches", pipeline.to) == 5
    errors = " ".join(capsys.readouterr().err.split())
    assert "sluice reread" not in errors
    assert f"NEW_CHECKPOINT --at-table {pipeline.to} --yes`" in errors
    new = str(pipeline.folder / "new")
    assert pipeline.command("fork", new, "--at-table", pipeline.to) == 0
    pipeline.run(3, checkpoint="new")
    assert pipeline.rows() == [1, 2, 3]


def test_a_fork_at_the_table_reads_again_what_a_restored_table_lacks(pipeline):
    pipeline.run(1)
    copy(pipeline.log, pipeline.folder / "backup")
    pipeline.run(2)
    copy(pipeline.folder / "backup", pipeline.log)
    new = str(pipeline.folder / "new")
    assert pipeline.command("fork", new, "--at-table", pipeline.to) == 0
    pipeline.run(3, checkpoint="new")
    assert pipeline.rows() == [1, 2, 3]


@pytest.mark.parametrize("pipeline", ["parquet"], indirect=True)
def test_a_fork_at_the_table_begins_after_a_batch_that_the_log_does_not_have_yet(pipeline):
    pipeline.run(1)
    pipeline.run(2)
    # As a kill between the table and the log leaves it.
    (pipeline.folder / "ck/commits/1").unlink()
    assert pipeline.command("fork", str(pipeline.folder / "new"), "--at-table", pipeline.to) == 0
    pipeline.run(3, checkpoint="new")
    assert pipeline.rows() == [1, 2, 3]


@pytest.mark.parametrize("pipeline", ["delta", "iceberg"], indirect=True)
def test_batches_that_replaced_rows_are_added_again_and_not_removed_by_their_files(pipeline):
    pipeline.options = ["onOverwrite=replace", "writeFileColumn=file"]
    changed = pipeline.folder / "in/1.json"
    pipeline.run(1, 2)
    copy(pipeline.folder / "ck", pipeline.folder / "backup of ck")
    copy(pipeline.log, pipeline.folder / "backup of log")
    changed.write_text('{"id": 10}\n{"id": 11}\n')
    pipeline.run()
    changed.write_text('{"id": 100}\n{"id": 101}\n{"id": 102}\n')
    pipeline.run()
    assert pipeline.rows() == [2, 100, 101, 102]
    copy(pipeline.folder / "ck", pipeline.folder / "newer")
    copy(pipeline.folder / "backup of ck", pipeline.folder / "ck")
    pipeline.run(refused="sluice remove-batches")
    # The rows that they replaced are in no file that could stay.
    assert pipeline.command("remove-batches", pipeline.to) > 0
    assert pipeline.rows() == [2, 100, 101, 102]
    copy(pipeline.folder / "newer", pipeline.folder / "ck")
    copy(pipeline.folder / "backup of log", pipeline.log)
    pipeline.run(3, refused="sluice add-batches")
    new = str(pipeline.folder / "new")
    assert pipeline.command("fork", new, "--at-table", pipeline.to) == 0
    assert pipeline.command("add-batches", pipeline.to) == 0
    assert pipeline.rows() == [2, 100, 101, 102]
    pipeline.run()
    assert pipeline.rows() == [2, 3, 100, 101, 102]


@pytest.mark.parametrize("pipeline", ["iceberg"], indirect=True)
def test_a_table_that_its_catalog_does_not_have_is_a_wrong_call(pipeline):
    pipeline.to = "iceberg:lake.db.none"
    pipeline.run(1, refused="OptionError: to: cannot open the table")


@pytest.mark.parametrize("pipeline", ["delta", "iceberg"], indirect=True)
def test_a_table_that_was_taken_back_gets_its_batches_from_their_data_files(pipeline):
    pipeline.run(1)
    pipeline.run(2)
    pipeline.take_back()
    # Also without a new file.
    pipeline.run(refused="the table is behind the checkpoint")
    pipeline.run(3, refused="sluice add-batches")
    assert pipeline.command("add-batches", pipeline.to) == 0
    pipeline.run(4)
    assert pipeline.rows() == [1, 2, 3, 4]


@pytest.mark.parametrize("has_batch", [False, True], ids=["no batch", "a batch"])
def test_a_fork_knows_the_batches_of_the_query_that_it_continues(pipeline, has_batch):
    pipeline.run(1)
    copy(pipeline.log, pipeline.folder / "backup")
    pipeline.run(2)
    assert pipeline.command("fork", str(pipeline.folder / "new"), "--at-table", pipeline.to) == 0
    if has_batch:
        pipeline.run(3, checkpoint="new")
        assert pipeline.rows() == [1, 2, 3]
    copy(pipeline.folder / "backup", pipeline.log)
    pipeline.run(4, checkpoint="new", refused="the table is behind the checkpoint")
    old = pipeline.folder / "ck"
    old.rename(pipeline.folder / "away")
    assert pipeline.command("add-batches", pipeline.to, checkpoint="new") > 0
    assert pipeline.rows() == [1]
    (pipeline.folder / "away").rename(old)
    assert pipeline.command("add-batches", pipeline.to, checkpoint="new") == 0
    pipeline.run(5, checkpoint="new")
    assert pipeline.rows() == [1, 2, *([3] if has_batch else []), 4, 5]


@pytest.mark.parametrize("pipeline", ["delta"], indirect=True)
def test_a_fork_adds_its_own_batches_if_the_table_has_all_of_the_query_that_it_replaces(pipeline):
    pipeline.run(1)
    assert pipeline.command("fork", str(pipeline.folder / "new"), "--at-table", pipeline.to) == 0
    shutil.rmtree(pipeline.folder / "ck")
    (pipeline.folder / "new").rename(pipeline.folder / "ck")
    pipeline.run(2)
    pipeline.take_back()
    pipeline.run(refused="the table is behind the checkpoint")
    assert pipeline.command("add-batches", pipeline.to) == 0
    assert pipeline.rows() == [1, 2]


@pytest.mark.parametrize("pipeline", ["delta"], indirect=True)
def test_a_fork_before_the_end_of_its_table_is_refused_until_later_batches_are_removed(pipeline):
    pipeline.run(1)
    assert pipeline.command("fork", str(pipeline.folder / "new"), "--at-table", pipeline.to) == 0
    pipeline.run(2)
    pipeline.run(checkpoint="new", refused="the table is ahead of the checkpoint")
    assert pipeline.command("remove-batches", pipeline.to, checkpoint="new") == 0
    pipeline.run(3, checkpoint="new")
    assert pipeline.rows() == [1, 2, 3]


@pytest.mark.parametrize("pipeline", ["parquet"], indirect=True)
def test_a_batch_that_was_read_again_after_a_restore_replaces_the_one_in_the_table(pipeline):
    pipeline.run(1)
    pipeline.run(2)
    state = pipeline.folder / "ck"
    # As a backup that was made while the batch ran.
    (state / "commits/1").unlink()
    shutil.rmtree(max((state / "sluice/source/readers").iterdir()))
    pipeline.run(refused="with other files")
    assert pipeline.command("remove-batches", pipeline.to) == 0
    pipeline.run(3)
    assert pipeline.rows() == [1, 2, 3]


@pytest.mark.parametrize("pipeline", ["delta", "iceberg"], indirect=True)
@pytest.mark.parametrize("compacted", ["the kept batch", "a batch to be removed"])
def test_batches_are_removed_as_they_were_added_or_not_at_all(pipeline, compacted):
    pipeline.run(1)
    pipeline.run(2)
    copy(pipeline.folder / "ck", pipeline.folder / "backup")
    if compacted == "the kept batch":
        pipeline.compact()
    pipeline.run(3)
    if compacted != "the kept batch":
        pipeline.compact()
    pipeline.run(4)
    copy(pipeline.folder / "backup", pipeline.folder / "ck")
    pipeline.run(refused="sluice remove-batches")
    code = pipeline.command("remove-batches", pipeline.to)
    if compacted == "the kept batch":
        assert (code, pipeline.rows()) == (0, [1, 2])
        pipeline.run(5)
        # The mark of the removal is the newest one; those of removed batches count no more.
        copy(pipeline.folder / "backup", pipeline.folder / "ck")
        assert pipeline.command("remove-batches", pipeline.to) == 0
        pipeline.run()
        assert pipeline.rows() == [1, 2, 3, 4, 5]
    else:
        assert (code > 0, pipeline.rows()) == (True, [1, 2, 3, 4])

"""A directory that a job writes again: old files out, new files in, in one commit."""

import os
import shutil
import time

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

from pyspark_sluice import tables
from pyspark_sluice.enumerator.files import rewrites
from pyspark_sluice.enumerator.files.discovery.local.local_tree import LocalTree
from pyspark_sluice.tests.connector.host.landing import STEPS
from pyspark_sluice.tests.connector.host.restores import catalog_at

pytestmark = pytest.mark.slow

REWRITES = {
    "onOverwrite": "replace",
    "onDelete": "retract",
    "readyMarker": "_SUCCESS",
    "writeFileColumn": "file",
    "writeSchema": "v long",
    "discoveryAttempts": "1",
}


class Job:
    """Writes directories, as Spark does: names that never come again, then the marker."""

    def __init__(self, landing):
        self.landing, self.number = landing, 0

    def write(self, directory, *values, marks=True):
        place = self.landing.data / directory
        place.mkdir(exist_ok=True)
        for value in values:
            self.number += 1
            self.landing.json(f"{directory}/part-{self.number}.json", {"v": value})
        if marks:
            self.mark(directory)

    def mark(self, directory):
        (self.landing.data / directory / "_SUCCESS").touch()

    def rewrite(self, directory, *values, marks=True):
        shutil.rmtree(self.landing.data / directory)
        self.write(directory, *values, marks=marks)


@pytest.fixture
def job(landing):
    job = Job(landing)
    job.write("one", 1, 2)
    job.write("two", 3)
    landing.run(**REWRITES)
    return job


def seen(landing):
    """The rows of each version of the table, one after the other, without repetitions."""
    newest = DeltaTable(str(landing.table)).version()
    versions = []
    for number in range(newest + 1):
        table = DeltaTable(str(landing.table), version=number).to_pyarrow_table()
        rows = sorted(row["v"] for row in table.to_pylist())
        if rows not in versions[-1:]:
            versions.append(rows)
    return versions


@pytest.mark.parametrize("limits", [{}, {"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1"}])
def test_a_directory_is_rewritten_in_one_commit_whatever_the_limits_are(landing, job, limits):
    before = seen(landing)
    job.rewrite("one", 10, 20, 30)
    landing.run(**REWRITES, **limits)
    assert seen(landing) == [*before, [3, 10, 20, 30]]
    # Both directories at once, one after the other where a limit is reached.
    job.rewrite("one", 100)
    job.rewrite("two", 300, 400)
    landing.run(**REWRITES, **limits)
    last = [100, 300, 400]
    between = [[3, 100]] if limits else []
    assert seen(landing) == [*before, [3, 10, 20, 30], *between, last]


def test_a_directory_is_rewritten_in_one_transaction_of_an_iceberg_catalog(landing, job, tmp_path):
    catalog = SqlCatalog("lake", **catalog_at(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.orders", Schema())
    landing.checkpoint = tmp_path / "iceberg ck"
    options = {**REWRITES, "writeTo": f"{tmp_path}/table/data"}
    landing.run(tables.iceberg(catalog.load_table("db.orders")), **options)
    before = catalog.load_table("db.orders")
    job.rewrite("one", 10, 20)
    landing.run(tables.iceberg(before), **options, maxFilesPerTrigger="1")
    after = catalog.load_table("db.orders")
    assert sorted(after.scan().to_arrow().column("v").to_pylist()) == [3, 10, 20]
    # Each commit has a metadata file, which names those before it.
    log = [entry.metadata_file for entry in after.metadata.metadata_log]
    assert log[-1] == before.metadata_location


def test_without_its_marker_a_directory_keeps_its_rows_and_does_not_get_others(landing, job):
    before = seen(landing)
    job.rewrite("one", 10, 20, marks=False)
    landing.run(**REWRITES, retractAfter="1s")
    time.sleep(1.1)
    # By now what is gone is gone for long enough, but the job is not done.
    landing.run(**REWRITES, retractAfter="1s")
    assert seen(landing) == before
    job.mark("one")
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [3, 10, 20]]


def test_a_marker_that_is_older_than_new_files_counts_after_the_delay(landing, job):
    before = seen(landing)
    for old in (landing.data / "one").glob("part-*"):
        old.unlink()
    job.write("one", 10, marks=False)
    landing.run(**REWRITES)
    assert seen(landing) == before
    job.write("one", 20, marks=False)
    job.write("new", 4)
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [1, 2, 3, 4]]
    time.sleep(1.1)
    landing.run(**REWRITES, retractAfter="1s")
    assert seen(landing) == [*before, [1, 2, 3, 4], [3, 4, 10, 20]]


def test_files_that_are_added_or_replaced_wait_for_the_marker_with_the_others(landing, job):
    before = seen(landing)
    (kept, changed) = sorted((landing.data / "one").glob("part-*"))
    kept.unlink()
    landing.json(f"one/{changed.name}", {"v": 20})
    job.write("one", 30, marks=False)
    landing.run(**REWRITES)
    assert seen(landing) == before
    job.mark("one")
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [3, 20, 30]]
    # A directory to which a job adds files is not rewritten.
    job.write("two", 4)
    landing.run(**REWRITES)
    assert seen(landing)[-1] == [3, 4, 20, 30]


def test_a_file_that_comes_while_the_pass_goes_on_is_not_left_to_another_commit(landing, job):
    before = seen(landing)
    job.rewrite("one", 10)
    listed = LocalTree.list_files

    def late(*arguments):
        yield from listed(*arguments)
        job.write("one", 20)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalTree, "list_files", late)
        landing.run(**REWRITES)
    assert seen(landing) == before
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [3, 10, 20]]


def test_a_directory_without_any_file_that_replaces_others_loses_its_rows_after_the_delay(
    landing, job
):
    before = seen(landing)
    shutil.rmtree(landing.data / "one")
    landing.run(**REWRITES)
    assert seen(landing) == before
    time.sleep(1.1)
    landing.run(**REWRITES, retractAfter="1s")
    assert seen(landing) == [*before, [3]]


def test_two_rewrites_of_which_the_first_was_not_read_are_one_commit(landing, job, monkeypatch):
    before = seen(landing)
    job.rewrite("one", 10, 20)
    with monkeypatch.context() as patch:
        patch.setattr(*STEPS["log"], lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            landing.run(**REWRITES)
    job.rewrite("one", 100)
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [3, 10, 20], [3, 100]]


def test_more_new_files_than_are_held_back_are_read_at_once(landing, job, monkeypatch):
    monkeypatch.setattr(rewrites, "_MOST", 0)
    job.rewrite("one", 10)
    landing.run(**REWRITES)
    assert seen(landing)[-1] == [3, 10]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("give back", "delete")])
def test_a_kill_at_any_step_leaves_a_directory_old_or_new(landing, job, step, is_done):
    before = seen(landing)
    job.rewrite("one", 10, 20)
    options = {**REWRITES, "maxFilesPerTrigger": "1"}
    landing.die(step, is_done, **options)
    for _ in range(2):
        landing.run(**options)
        assert seen(landing) == [*before, [3, 10, 20]]


def test_a_marker_in_a_directory_that_a_link_leads_to_counts(landing, job, tmp_path):
    place = tmp_path / "elsewhere"
    shutil.move(landing.data / "one", place)
    os.symlink(place, landing.data / "one")
    landing.run(**REWRITES)
    before = seen(landing)
    for old in place.glob("*"):
        old.unlink()
    job.write("one", 10)
    landing.run(**REWRITES)
    assert seen(landing) == [*before, [3, 10]]


def test_a_directory_whose_time_has_passed_is_rewritten_in_one_commit(landing, job):
    options = {**REWRITES, "fileOrder": "eventTime", "onLateFile": "quarantine"}
    for day in (1, 2):
        job.write(f"date=2026-01-0{day}", day)
    shutil.rmtree(landing.data / "one")
    shutil.rmtree(landing.data / "two")
    landing.checkpoint, landing.table = landing.data.parent / "ck2", landing.data.parent / "t2"
    landing.run(**options)
    before = seen(landing)
    assert before[-1] == [1, 2]
    job.rewrite("date=2026-01-01", 10)
    landing.run(**options)
    assert seen(landing) == [*before, [2, 10]]

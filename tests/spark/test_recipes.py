"""The recipes of docs/sinks.md run unchanged: every row is there once, also after a crash.

The crash is in the worst place: behind the write, before Spark knows of it. Spark then repeats the
batch under the same number. All of it runs in one session.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.exceptions import CommitFailedException
from pyspark.errors import StreamingQueryException

from pyspark_sluice.examples.database import database
from pyspark_sluice.examples.delta import delta
from pyspark_sluice.examples.iceberg import iceberg
from pyspark_sluice.examples.parquet_table import parquet_table
from pyspark_sluice.examples.spark_readers import spark_readers
from pyspark_sluice.tests.patience import PATIENCE

LATE = 3
"""Row of the second file that is older than the one of the first."""


def event(number: int, *, day: int = 1) -> dict[str, object]:
    return {"id": number, "at": f"2026-01-{day:02} 10:00:00", "name": f"row {number} day {day}"}


def land(folder: Path, name: str, events: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in events))


def land_books(folder: Path, name: str, years: range) -> None:
    folder.mkdir(exist_ok=True)
    books = "".join(f"<book><title>t{year}</title><year>{year}</year></book>" for year in years)
    (folder / name).write_text(f"<books>{books}</books>")


class Crash(Exception):
    """The driver ends here."""


def then_crash(write):
    """`write`, and then the end."""

    def written_and_dead(*arguments):
        write(*arguments)
        raise Crash

    return written_and_dead


class Runs:
    """Runs of recipes, each with a table and a checkpoint of its own."""

    def __init__(self, spark, home: Path, monkeypatch) -> None:
        self.spark, self.home, self.monkeypatch = spark, home, monkeypatch
        self.landing, self.books = home / "landing", home / "books"
        (home / "checkpoints").mkdir()

    def table(self, recipe) -> Path:
        return self.home / recipe.__name__.rpartition(".")[2]

    def run(self, recipe) -> None:
        """To its end; raises what ended it."""
        table = self.table(recipe)
        landing = self.books if recipe is spark_readers else self.landing
        query = recipe.start(
            self.spark, str(landing), str(table), str(self.home / "checkpoints" / table.name)
        )
        assert query.awaitTermination(PATIENCE), "the run did not end in time"

    def crash(self, recipe, function: str) -> None:
        """A run that ends right behind its first write."""
        with self.monkeypatch.context() as patch:
            patch.setattr(recipe, function, then_crash(getattr(recipe, function)))
            with pytest.raises(StreamingQueryException, match="Crash"):
                self.run(recipe)


@pytest.fixture
def runs(spark, tmp_path, monkeypatch) -> Runs:
    made = Runs(spark, tmp_path, monkeypatch)
    land(made.landing, "1.json", [event(number, day=2) for number in range(10)])
    land_books(made.books, "odd {a,b} [1]*?\\ 50% ü.xml", range(2000, 2005))
    return made


def more(runs: Runs) -> None:
    """What lands between the crash and the restart: a batch of its own."""
    land(runs.landing, "2.json", [event(number) for number in (LATE, *range(10, 15))])
    land_books(runs.books, "second.xml", range(2005, 2008))


EXPECTED = Counter([*range(15), LATE])


def rows_of(table: str | Path) -> Counter[int]:
    return Counter(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())


@pytest.mark.thorough("the sink of the package is killed at each step, in tables/test_delta.py")
def test_a_repeated_batch_is_in_the_delta_table_once(runs):
    runs.crash(delta, "append")
    more(runs)
    runs.run(delta)
    assert rows_of(runs.table(delta)) == EXPECTED


@pytest.mark.thorough("the same guard as that of Delta")
def test_a_repeated_batch_is_in_the_iceberg_table_once(runs):
    runs.crash(iceberg, "append")
    more(runs)
    runs.run(iceberg)
    lake = iceberg.open_catalog(str(runs.table(iceberg))).load_table(iceberg.TABLE)
    assert Counter(lake.scan().to_arrow()["id"].to_pylist()) == EXPECTED


@pytest.mark.thorough("the same guard as that of Delta")
def test_a_repeated_batch_is_in_the_parquet_table_once(runs):
    runs.crash(parquet_table, "replace")
    # What an attempt that died half-way leaves: a file that belongs to nothing.
    (first,) = runs.table(parquet_table).glob("query=*/batch=0/part-*.parquet")
    shutil.copy(first, first.with_name("part-of-a-dead-attempt.parquet"))
    more(runs)
    runs.run(parquet_table)
    rows = runs.spark.read.parquet(str(runs.table(parquet_table))).collect()
    assert Counter(row.id for row in rows) == EXPECTED
    assert {row.batch for row in rows} == {0, 1}


@pytest.mark.thorough("a recipe for one kind of sink")
def test_the_newest_row_of_each_id_is_in_the_database(runs):
    runs.crash(database, "upsert")
    more(runs)
    runs.run(database)
    with closing(sqlite3.connect(runs.table(database))) as connection:
        newest = dict(connection.execute("SELECT id, name FROM newest"))
    assert newest == {id_: f"row {id_} day {2 if id_ < 10 else 1}" for id_ in range(15)}


@pytest.mark.thorough("a recipe for one kind of reader")
def test_spark_s_own_readers_read_each_file_once(runs):
    runs.crash(spark_readers, "replace")
    more(runs)
    runs.run(spark_readers)
    rows = runs.spark.read.parquet(str(runs.table(spark_readers))).collect()
    assert Counter((row.title, row.year) for row in rows) == Counter(
        (f"t{year}", year) for year in range(2000, 2008)
    )


@pytest.mark.thorough("a guard over many batches")
def test_a_guard_belongs_to_one_query_and_outlives_the_snapshots(spark, tmp_path):
    home, batch = str(tmp_path), spark.range(3)
    for recipe, place in ((delta, f"{home}/delta"), (iceberg, home)):
        for query in ("one", "one", "another"):
            # A new checkpoint counts its batches from nought again: they are others.
            recipe.append(batch, 0, place, query)
    assert sum(rows_of(f"{home}/delta").values()) == 6
    lake = iceberg.open_catalog(home).load_table(iceberg.TABLE)
    stale = iceberg.open_catalog(home).load_table(iceberg.TABLE)
    lake.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
    iceberg.append(batch, 0, home, "one")
    iceberg.append(batch, 1, home, "one")
    assert lake.refresh().scan().to_arrow().num_rows == 9
    with pytest.raises(CommitFailedException):
        stale.append(batch.toArrow())

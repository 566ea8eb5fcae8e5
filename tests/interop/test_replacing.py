"""Replaced and withdrawn files, in tables that Spark's connectors change and read as streams."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from pyspark_sluice.tests.interop.conftest import Feed, row, rows
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = [
    pytest.mark.drivers,
    pytest.mark.thorough("needs Maven, and a Spark that both connectors know: `make interop`"),
]

FOLLOWING = {
    "onOverwrite": "replace",
    "onDelete": "retract",
    "retractAfter": "1s",
    "writeFileColumn": "file",
    "discoveryAttempts": "1",
    # Rows of several files are in one data file.
    "parallelism": "1",
}
COLUMNS = "(id bigint, name string, day date)"


class Deliveries:
    """Three files in one table; one is delivered again, and one is withdrawn."""

    def __init__(self, feed: Feed, run: Callable[[], Any]) -> None:
        self.feed, self.run = feed, run
        feed.options |= FOLLOWING
        for name, *ids in (("a", 1, 2, 3), ("b", 4, 5, 6), ("c", 9)):
            self._put(name, *ids)
        run()

    def _put(self, name: str, *ids: int) -> None:
        lines = "".join(json.dumps(row(number)) + "\n" for number in ids)
        (self.feed.landing / f"{name}.json").write_text(lines)

    def replace(self) -> None:
        self._put("a", 10, 11)
        self.run()

    def retract(self) -> None:
        (self.feed.landing / "b.json").unlink()
        self.run()
        time.sleep(1.1)
        self.run()


def ids(frame: Any) -> list[int]:
    return [one["id"] for one in rows(frame)]


def seen_by(
    lake: Any, feed: Feed, source: str, table: str, options: Mapping[str, str]
) -> list[Any] | str:
    """What a stream of the table gets that it has not had yet; or its error."""
    columns = ["id", "_change_type"] if "readChangeFeed" in options else ["id"]
    got: list[Any] = []

    def take(batch: Any, _: int) -> None:
        got.extend(tuple(each) for each in batch.select(columns).collect())

    stream = lake.readStream.format(source).options(**options).load(table)
    checkpoint = str(feed.root / "-".join(["stream", *options]))
    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(PATIENCE)
    except StreamingQueryException as error:
        return str(error)
    return sorted(got) if len(columns) > 1 else sorted(number for (number,) in got)


def changes(table: DeltaTable, after: int) -> list[tuple[int, str]]:
    """The change data feed behind a version, as delta-rs reads it."""
    read = table.load_cdf(starting_version=after + 1, ending_version=table.version())
    feed = read.read_all()
    return sorted(zip(feed["id"].to_pylist(), feed["_change_type"].to_pylist(), strict=True))


REPLACED = [(10, "insert"), (11, "insert")]


@pytest.mark.parametrize("deleted", [[], [1, 4]], ids=["", "deletion vectors"])
def test_a_delta_table_and_its_change_feed_have_each_file_once(lake, feed, deleted):
    path = str(feed.root / "table")
    vectors = f"'delta.enableDeletionVectors' = '{str(bool(deleted)).lower()}'"
    cdf = "'delta.enableChangeDataFeed' = 'true'"
    lake.sql(f"CREATE TABLE delta.`{path}` {COLUMNS} USING delta TBLPROPERTIES ({vectors}, {cdf})")
    deliveries = Deliveries(feed, lambda: feed.run(f"delta:{path}"))
    if deleted:
        lake.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 4)")
        log = (feed.root / "table/_delta_log").glob("*.json")
        assert any('"deletionVector":{' in each.read_text() for each in log)
    table = DeltaTable(path)
    before = table.version()
    deliveries.replace()
    # No row that Spark has deleted comes back with what is written again.
    kept = [number for number in (4, 5, 6, 9) if number not in deleted]
    assert ids(lake.read.format("delta").load(path)) == [*kept, 10, 11]
    table.update_incremental()
    replaced = [(n, "delete") for n in (1, 2, 3) if n not in deleted]
    assert changes(table, before) == [*replaced, *REPLACED]
    before = table.version()
    deliveries.retract()
    assert ids(lake.read.format("delta").load(path)) == [9, 10, 11]
    table.update_incremental()
    gone = [(n, "delete") for n in (4, 5, 6) if n not in deleted]
    assert changes(table, before) == gone
    of_spark = lake.read.format("delta").option("readChangeFeed", "true")
    after = of_spark.option("startingVersion", before + 1).load(path)
    assert sorted(map(tuple, after.select("id", "_change_type").collect())) == gone


UPDATE = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
DELTA_STREAMS: dict[str, tuple[dict[str, str], Any, Any]] = {
    "as it is": ({}, UPDATE, UPDATE),
    "skipChangeCommits": ({"skipChangeCommits": "true"}, [], []),
    # All rows of the data files that were written again, old and new.
    "ignoreChanges": ({"ignoreChanges": "true"}, [4, 5, 6, 9, 10, 11], [9, 10, 11]),
    "ignoreDeletes": ({"ignoreDeletes": "true"}, UPDATE, UPDATE),
    "change data feed": (
        {"readChangeFeed": "true"},
        [*((n, "delete") for n in (1, 2, 3)), *REPLACED],
        [(n, "delete") for n in (4, 5, 6)],
    ),
}


@pytest.mark.parametrize(
    ("options", "replaced", "retracted"), DELTA_STREAMS.values(), ids=DELTA_STREAMS
)
def test_what_a_stream_of_a_delta_table_sees(lake, feed, options, replaced, retracted):
    path = str(feed.root / "table")
    cdf = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    lake.sql(f"CREATE TABLE delta.`{path}` {COLUMNS} USING delta {cdf}")
    deliveries = Deliveries(feed, lambda: feed.run(f"delta:{path}"))
    assert len(seen_by(lake, feed, "delta", path, options)) == 7
    for step, expected in ((deliveries.replace, replaced), (deliveries.retract, retracted)):
        step()
        seen = seen_by(lake, feed, "delta", path, options)
        assert expected in seen if isinstance(expected, str) else seen == expected


OVERWRITE = "Cannot process overwrite snapshot"
SKIPS = {"streaming-skip-overwrite-snapshots": "true", "streaming-skip-delete-snapshots": "true"}
ICEBERG_STREAMS: dict[str, tuple[dict[str, str], Any, Any]] = {
    "as it is": ({}, OVERWRITE, OVERWRITE),
    # The new rows, and never that old ones are gone.
    "skip": (SKIPS, [10, 11], []),
}


@pytest.mark.parametrize(
    ("options", "replaced", "retracted"), ICEBERG_STREAMS.values(), ids=ICEBERG_STREAMS
)
@pytest.mark.parametrize("deleted", [[], [1, 4]], ids=["", "position deletes"])
def test_an_iceberg_table_has_each_file_once_and_what_a_stream_of_it_sees(
    lake, feed, catalog, deleted, options, replaced, retracted
):
    name = f"r_{uuid.uuid4().hex}"
    table = f"lake.db.{name}"
    mode = "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    lake.sql(f"CREATE TABLE {table} {COLUMNS} USING iceberg {mode}")
    deliveries = Deliveries(feed, lambda: feed.run_into(catalog.load_table(f"db.{name}")))
    assert len(seen_by(lake, feed, "iceberg", table, options)) == 7
    if deleted:
        lake.sql(f"DELETE FROM {table} WHERE id IN (1, 4)")
        assert lake.sql(f"SELECT * FROM {table}.delete_files").count()
        replaced = "Cannot process delete snapshot" if replaced == OVERWRITE else replaced
        retracted = "Cannot process delete snapshot" if retracted == OVERWRITE else retracted
    kept = [number for number in (4, 5, 6, 9) if number not in deleted]
    for step, expected, left in (
        (deliveries.replace, replaced, [*kept, 10, 11]),
        (deliveries.retract, retracted, [9, 10, 11]),
    ):
        step()
        assert ids(lake.table(table)) == left
        seen = seen_by(lake, feed, "iceberg", table, options)
        assert expected in seen if isinstance(expected, str) else seen == expected
    view = (
        f"CALL lake.system.create_changelog_view(table => 'db.{name}', changelog_view => '{name}')"
    )
    if not deleted:
        lake.sql(view)
        log = lake.sql(f"SELECT id, _change_type FROM {name} WHERE _change_ordinal > 0").collect()
        gone = [(n, "DELETE") for n in (1, 2, 3, 4, 5, 6)]
        assert sorted(map(tuple, log)) == [*gone, (10, "INSERT"), (11, "INSERT")]

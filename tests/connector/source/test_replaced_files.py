"""A file that is replaced before it was read, with onOverwrite=reprocess: the new version, once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.stream import LONG_AGO, Stream
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow

Begin = Callable[..., Stream]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    begun = []

    def made(**options: str) -> Stream:
        usual = {"onOverwrite": "reprocess", "fullListingInterval": "20ms"}
        begun.append(Stream(tmp_path, {**usual, **options}))
        return begun[-1]

    yield made
    for stream in begun:
        stream.reader.stop()


def land(stream: Stream, name: str, ids: list[int], at: float = LONG_AGO) -> None:
    hidden = stream.data / f".{name}"
    hidden.write_text("".join(json.dumps({"id": each}) + "\n" for each in ids))
    os.utime(hidden, (at, at))
    hidden.rename(stream.data / name)


def backlog(stream: Stream) -> dict[str, Any]:
    return dict(stream.reader.reportLatestOffset() or {})


def await_backlog(stream: Stream, holds: Callable[[dict[str, Any]], bool]) -> None:
    wait_until(lambda: holds(backlog(stream)), lambda: backlog(stream))


def await_listings(stream: Stream) -> None:
    """Two whole listings, so that what is there now was found."""
    listings = [backlog(stream).get("lastListing")]
    for _ in range(2):
        await_backlog(stream, lambda found: found.get("lastListing") not in (None, listings[-1]))
        listings.append(backlog(stream)["lastListing"])


def read(stream: Stream, partitions: list[Any]) -> list[int]:
    parts = [batch for part in partitions for batch in stream.reader.read(part)]
    return [row for batch in parts for row in batch.column("id").to_pylist()]


def drained(stream: Stream) -> list[int]:
    """All that comes, until listings bring nothing more."""
    rows, quiet = [], 0
    while quiet < 3:
        new = stream.batch()
        rows += new
        quiet = 0 if new else quiet + 1
        if not new:
            await_listings(stream)
    return rows


@pytest.mark.parametrize("most", ["1g", "16"])
def test_a_file_that_is_replaced_while_it_waits_is_read_once(begin: Begin, most: str) -> None:
    stream = begin(maxFilesPerTrigger="1", maxSplitBytes=most)
    land(stream, "a.json", [0])
    land(stream, "b.json", [1], LONG_AGO + 1)
    land(stream, "c.json", list(range(10, 20)), LONG_AGO + 2)
    # One file is this batch's, one the next one's, and the third waits.
    end, partitions = stream.plan()
    await_backlog(stream, lambda found: found["backlogBytes"] == 110)
    land(stream, "c.json", list(range(30, 45)), LONG_AGO + 3)
    await_backlog(stream, lambda found: found["backlogBytes"] in (165, 275))
    rows = read(stream, partitions)
    stream.reader.commit(end)
    stream.at = end
    assert rows == [0]
    assert sorted(drained(stream)) == [1, *range(30, 45)]


@pytest.mark.parametrize("found_first", [True, False])
def test_a_file_that_is_replaced_after_it_was_given_to_a_reader_is_read_once(
    begin: Begin, found_first: bool
) -> None:
    stream = begin(**({} if found_first else {"discoveryInterval": "1h"}))
    land(stream, "a.json", [0])
    end, partitions = stream.plan()
    land(stream, "a.json", [1, 2], LONG_AGO + 1)
    if found_first:
        await_listings(stream)
    rows = read(stream, partitions)
    stream.reader.commit(end)
    stream.at = end
    assert rows == [], "it is another file's content"
    if found_first:
        assert drained(stream) == [1, 2]
    else:
        assert stream.batch() == [1, 2], "no listing has to find what a reader has met"
        assert stream.batch() == []


def test_what_replaced_a_file_is_not_forgotten_by_a_restart(begin: Begin) -> None:
    stream = begin(discoveryInterval="1h")
    land(stream, "a.json", [0])
    end, partitions = stream.plan()
    land(stream, "a.json", [1, 2], LONG_AGO + 1)
    assert read(stream, partitions) == []
    stream.reader.stop()
    again = begin()
    again.at = end
    # As Spark does it after a crash: the batch again, then the next ones.
    replayed = list(again.reader.partitions(again.reader.initialOffset(), end))
    assert read(again, replayed) == []
    assert drained(again) == [1, 2]


def test_what_is_put_in_place_of_a_file_is_read_as_it_is_where_versions_do_not_matter(
    begin: Begin,
) -> None:
    stream = begin(onOverwrite="ignore")
    land(stream, "a.json", [0])
    end, partitions = stream.plan()
    land(stream, "a.json", [1, 2], LONG_AGO + 1)
    assert read(stream, partitions) == [1, 2]
    stream.reader.commit(end)
    stream.at = end
    assert drained(stream) == []


def lines_of(ids: list[int]) -> bytes:
    return "".join(json.dumps({"id": each}) + "\n" for each in ids).encode()


@pytest.mark.sample("s3-False", why="the same with a checksum")
@pytest.mark.parametrize("found_first", [True, False])
def test_an_object_that_is_replaced_between_its_listing_and_its_reading_is_read_once(
    begin: Begin, any_server: FaultyServer, any_bucket: str, found_first: bool
) -> None:
    any_server.put(any_bucket, "in/a.json", lines_of([0]))
    storage = as_json(any_server.options)
    stream = begin(path=f"{any_server.scheme}://{any_bucket}/in", storageOptions=storage)
    end, partitions = stream.plan()
    any_server.put(any_bucket, "in/a.json", lines_of([7, 8]))
    if found_first:
        await_listings(stream)
    rows = read(stream, partitions)
    stream.reader.commit(end)
    stream.at = end
    assert sorted(rows + drained(stream)) == [7, 8]

"""The order of the log of the embedded host: offsets, tasks, sink, commit."""

import pytest

import pyspark_sluice
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.host.batch_log import BatchLog
from pyspark_sluice.errors import StateCorruptError

OLDER = ("offsets", "1")
"""What a listing does not say yet."""


def numbers(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_batch_is_in_the_log_before_its_sink_has_it_and_committed_after_that(tmp_path):
    """Of a kill or a failure in between the next run repeats the batch."""
    place, seen, rows = tmp_path / "ck", [], []
    (tmp_path / "in").mkdir()
    options = {
        "path": str(tmp_path / "in"),
        "fileFormat": "json",
        "writeTo": str(tmp_path / "table"),
        "writeSchema": "id long",
        "checkpointLocation": str(place),
    }

    def fails(batch, number):
        raise RuntimeError("killed before the table has it")

    def writes(batch, number):
        seen.append((number, numbers(place / "offsets"), numbers(place / "commits")))
        rows.extend(row["id"] for row in batch.reader().read_all().to_pylist())

    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        with pytest.raises(RuntimeError, match="killed before"):
            pyspark_sluice.run(options, to=fails, workers=0)
        pyspark_sluice.run(options, to=writes, workers=0)
    assert seen == [(0, ["0"], []), (1, ["0", "1"], ["0"])]
    assert rows == [0, 1]
    assert numbers(place / "commits") == ["0", "1"]


def test_a_batch_that_the_sink_has_was_begun_whatever_an_older_listing_says(tmp_path, monkeypatch):
    store = open_store(str(tmp_path / "ck"))
    log = BatchLog(store)
    for number in range(2):
        log.begin({"checkpoint": number})
        log.end()
    listed = store.list
    # As a store answers that lists objects some time after they are there.
    monkeypatch.setattr(
        store, "list", lambda name: [each for each in listed(name) if (name, each) != OLDER]
    )
    log = BatchLog(store)
    assert (log.newest, log.committed, log.offset) == (1, 1, {"checkpoint": 1})
    store.delete("offsets/1")
    with pytest.raises(StateCorruptError, match="offsets/1; found no such object"):
        BatchLog(store)

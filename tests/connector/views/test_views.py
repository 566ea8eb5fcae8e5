"""Views of the state: true of what was really ingested, on a state that is being worked on."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.commands.status import status_of
from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.connector.views import files as files_view
from pyspark_sluice.connector.views.catalog import VIEWS, table_of
from pyspark_sluice.connector.views.view_reader import view_options
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.errors import OptionError, SluiceError, StateCorruptError, StateMissingError
from pyspark_sluice.tests.connector.queries import Query, in_memory
from pyspark_sluice.tests.patience import PATIENCE


def by_name(store, view="files"):
    rows = table_of(store, view).to_pylist()
    found = {row["path"].rpartition("/")[2]: row for row in rows}
    assert len(found) == len(rows)
    return found


def states(store):
    return {name: row["state"] for name, row in by_name(store).items()}


@pytest.fixture
def query(tmp_path):
    made = Query(tmp_path)
    yield made
    made.coordinator.close()


def test_a_file_goes_from_assigned_to_read_to_committed(query):
    query.land("a.json", "b.json", rows=3)
    before = datetime.now(UTC)
    ref = query.plan()
    assert states(query.store) == {"a.json": "assigned", "b.json": "assigned"}
    assert query.read(ref) == [0, 1, 2, 0, 1, 2]
    row = by_name(query.store)["a.json"]
    assert (row["state"], row["rows"], row["bytes"], row["checkpoint"]) == ("read", 3, 30, 1)
    assert row["committed"] is None
    query.done = ref
    query.land("c.json", rows=1)
    query.batch()
    row = by_name(query.store)["a.json"]
    assert (row["state"], row["rows"], row["size"], row["reader"] in (0, 1)) == (
        "read",
        3,
        30,
        True,
    )
    for name in ("discovered", "planned", "processed", "committed"):
        assert before - timedelta(seconds=1) < row[name] < datetime.now(UTC), name
    assert row["planned"] <= row["processed"] <= row["committed"]
    stat = (query.data / "a.json").stat()
    assert row["modified"].timestamp() == pytest.approx(stat.st_mtime, abs=1e-5)


def test_what_a_batch_had_no_room_for_is_pending(tmp_path):
    query = Query(tmp_path, settings={"limits": BatchLimits(files=1)})
    query.land(*(f"{at}.json" for at in range(6)))
    query.batch()
    query.plan()
    rows = by_name(query.store)
    # One more may have been cut ahead.
    found = sorted(row["state"] for row in rows.values())
    assert (found[0], found[-1], found.count("read")) == ("assigned", "read", 1)
    pending = next(row for row in rows.values() if row["state"] == "pending")
    assert (pending["pending_bytes"], pending["checkpoint"], pending["rows"]) == (30, None, None)
    assert pending["discovered"] is not None
    query.coordinator.close()


def test_skipped_returned_and_quarantined_say_why(tmp_path):
    attempts = {"max_split_attempts": 2}
    query = Query(tmp_path, settings=attempts, onSplitError="return", mode="FAILFAST")
    query.land("good.json")
    query.land("bad.json", text='{"id": "\n')
    query.batch()
    row = by_name(query.store)["bad.json"]
    assert row["state"] == "returned"
    assert row["reason"]
    query.batch()
    assert query.batch() == [], "which makes durable what was given up on"
    query.land("next.json")
    query.batch()
    rows = by_name(query.store)
    assert {name: row["state"] for name, row in rows.items()} == {
        "good.json": "read",
        "bad.json": "quarantined",
        "next.json": "read",
    }
    (given_up,) = table_of(query.store, "quarantine").to_pylist()
    assert given_up["path"] == str(query.data / "bad.json") == rows["bad.json"]["path"]
    assert (given_up["attempts"], given_up["start"], given_up["end"]) == (2, 0, 9)
    assert given_up["reason"] == rows["bad.json"]["reason"]
    assert given_up["modified"] == rows["bad.json"]["modified"]
    query.coordinator.close()


def test_a_file_that_vanished_is_in_the_view_of_what_was_skipped(tmp_path):
    query = Query(tmp_path, ignoreMissingFiles="true")
    query.land("a.json", "b.json")
    ref = query.plan()
    (query.data / "b.json").unlink()
    query.read(ref)
    (skipped,) = table_of(query.store, "skipped").to_pylist()
    assert skipped["path"].endswith("b.json")
    assert skipped["reason"] == by_name(query.store)["b.json"]["reason"] != ""
    assert states(query.store) == {"a.json": "read", "b.json": "skipped"}
    query.coordinator.close()


def test_a_reader_that_spark_went_on_without_is_abandoned(query):
    query.land("a.json", "b.json")
    ref = query.plan()
    query.read(ref, readers=(0,))
    query.done = ref
    query.land("c.json")
    query.batch()
    found = states(query.store)
    assert sorted(found.values()) == ["abandoned", "read", "read"]
    rows = table_of(query.store, "readers").to_pylist()
    assert [(r["checkpoint"], r["reader"], r["state"]) for r in rows][-2:] == [
        (1, 0, "read"),
        (1, 1, "abandoned"),
    ]


def test_files_whose_checkpoints_are_gone_are_done_and_still_known(tmp_path):
    query = Query(tmp_path, settings={"deltas_per_base": 2, "retained_checkpoints": 1})
    # When a base is written, and with it what may go, is the background's affair.
    names, retained, deadline = list[str](), {1}, time.monotonic() + PATIENCE
    while 1 in retained:
        assert time.monotonic() < deadline, "nothing was pruned"
        names.append(f"{len(names)}.json")
        query.land(names[-1])
        query.batch()
        query.coordinator.commit(query.done)
        retained = {row["checkpoint"] for row in table_of(query.store, "checkpoints").to_pylist()}
    rows = by_name(query.store)
    assert rows.keys() == set(names)
    assert (rows["0.json"]["state"], rows["0.json"]["checkpoint"]) == ("done", None)
    assert rows["0.json"]["discovered"] is not None
    assert rows[names[-1]]["state"] == "read"
    query.coordinator.close()


def test_checkpoints_say_what_has_finished_and_what_spark_never_took_up(query):
    query.land("a.json")
    query.batch()
    query.land("b.json")
    query.plan()
    query.restart()
    query.land("c.json")
    query.batch()
    rows = table_of(query.store, "checkpoints").to_pylist()
    assert [(r["checkpoint"], r["epoch"], r["state"]) for r in rows] == [
        (2, 2, "in flight"),
        (2, 1, "orphan"),
        (1, 1, "complete"),
    ]
    assert [r["rows"] for r in rows] == [6, None, 3]
    assert [r["commits"] for r in rows][1:] == [0, 1]
    splits = table_of(query.store, "splits").to_pylist()
    assert len(splits) == 3
    assert {s["state"] for s in splits} == {"read"}


def test_looking_writes_nothing_and_claims_nothing(query, tmp_path):
    query.land("a.json")
    query.batch()

    def everything():
        return {p: p.stat().st_mtime_ns for p in (tmp_path / "ck").rglob("*") if p.is_file()}

    before = everything()
    for view in VIEWS:
        table_of(query.store, view)
    assert everything() == before


class Pruned(MemoryStateStore):
    """A query deletes a checkpoint between the listing and the reading."""

    gone = 1

    def read(self, name):
        if name.startswith("checkpoints/") and self.gone:
            self.gone -= 1
            raise FileNotFoundError(name)
        return super().read(name)


def test_what_goes_while_it_is_read_is_looked_for_again(query):
    query.land("a.json")
    query.batch()
    store = Pruned()
    store.objects = in_memory(query).objects
    assert states(store) == {"a.json": "read"}
    store.gone = 100
    with pytest.raises(StateMissingError, match="checkpoint 1 of epoch 1"):
        table_of(store, "files")


def test_rows_that_are_not_asked_for_are_left_out_before_they_are_grouped(query, monkeypatch):
    query.land(*(f"{n}.json" for n in range(30)))
    query.batch()
    query.land("31.json")
    query.plan()
    sizes, grouped = [], files_view._grouped

    def counted(*tables):
        sizes.append(sum(table.num_rows for table in tables))
        return grouped(*tables)

    monkeypatch.setattr(files_view, "_grouped", counted)
    (row,) = table_of(query.store, "files", "*/17.json").to_pylist()
    assert (row["path"].rpartition("/")[2], row["state"]) == ("17.json", "read")
    # As a file that was seen, and as a range that was assigned.
    assert sizes == [2]


def test_damage_is_an_error_by_name_and_no_smaller_table(query):
    query.land("a.json")
    query.batch()
    (path,) = (query.location / "sluice/source/checkpoints").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateCorruptError, match=re.escape(str(path))):
        table_of(query.store, "files")


def test_a_base_whose_index_is_damaged_is_done_without_as_a_restore_does(tmp_path):
    query = Query(tmp_path, settings={"deltas_per_base": 2})
    landed = 0
    # A base begins when a batch ends, and not while another is written.
    while len(query.store.list("bases")) < 2:
        query.land(f"{landed}.json")
        query.batch()
        landed += 1
        assert landed < 500
    query.coordinator.close()
    before = by_name(query.store)
    index = query.location / "sluice" / "source" / "index"
    newest = max(index.glob("*.keys.arrow"))
    newest.write_bytes(newest.read_bytes()[:-1])
    after = by_name(query.store)
    assert {name: row["state"] for name, row in after.items()} == dict.fromkeys(before, "read")
    assert status_of(query.store)["files_seen"] == landed


def test_a_place_without_a_state_and_an_unknown_view_are_refused_by_name(tmp_path):
    query = Query(tmp_path)
    with pytest.raises(StateMissingError, match=re.escape(query.state)):
        table_of(query.store, "files")
    with pytest.raises(OptionError, match=r"'file'; expected one of files, .*Did you mean files"):
        table_of(MemoryStateStore(), "file")


def test_options_that_a_view_does_not_take_are_refused_all_at_once():
    given = {"view": "files", "maxFilesPerTrigger": "1", "sourcname": "x", "sourceName": "../x"}
    with pytest.raises(OptionError) as caught:
        view_options(given)
    text = str(caught.value)
    assert "maxFilesPerTrigger: unknown option of a view" in text
    assert "sourcname: unknown option of a view; did you mean sourceName?" in text
    assert "checkpointLocation: found nothing" in text
    assert "sourceName: found '../x'" in text


def test_a_view_cannot_be_read_as_a_stream(tmp_path):
    source = SluiceDataSource({"view": "files", "checkpointlocation": str(tmp_path)})
    with pytest.raises(SluiceError, match="a view cannot be read as a stream"):
        source.streamReader(StructType()).initialOffset()

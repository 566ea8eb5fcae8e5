"""Two queries begin on one state at the same instant: no row is delivered by both."""

import pytest

from pyspark_sluice.enumerator.coordinator import coordinator as coordinators
from pyspark_sluice.errors import FencedError, ProtocolError, StateError


@pytest.fixture
def older(begin):
    query = begin(parallelism="1")
    query.land("a.json")
    return query


def test_the_older_one_s_tasks_fail_where_the_newer_one_has_planned_the_same_rows(begin, older):
    _, first = older.plan()
    newer = begin(parallelism="1")
    _, second = newer.plan()
    for _ in range(2):
        with pytest.raises(FencedError, match="another query has taken over"):
            older.read(first)
    assert newer.read(second) == [0]


@pytest.mark.parametrize("claims_first", [True, False])
def test_a_commit_and_a_claim_at_the_same_instant_see_one_another(
    begin, older, claims_first, monkeypatch
):
    _, first = older.plan()
    claim = coordinators.claim_epoch
    delivered = []

    def meanwhile(store, **more):
        if not claims_first:
            delivered.extend(older.read(first))
        epoch = claim(store, **more)
        if claims_first:
            with pytest.raises(FencedError):
                older.read(first)
        return epoch

    monkeypatch.setattr(coordinators, "claim_epoch", meanwhile)
    with pytest.raises(StateError, match="everything would be ingested again"):
        begin().plan()
    assert delivered == ([] if claims_first else [0])


def test_later_batches_do_not_look_for_claims(older):
    older.batch()
    older.land("b.json")
    assert [partition.value.claim for partition in older.await_plan()] == [0]


def test_an_attempt_that_ends_after_its_checkpoint_was_deleted_fails(older, tmp_path):
    _, (partition,) = older.plan()
    batches = older.reader.read(partition)
    assert next(batches).num_rows == 1
    # Retention deletes checkpoints before their commits, whose names are free afterwards.
    for path in (tmp_path / "state").rglob("checkpoints/*.arrow"):
        path.unlink()
    with pytest.raises(ProtocolError, match="after the checkpoint that it read was deleted"):
        list(batches)

"""State in the object stores on loopback: lost answers, and two coordinators at once."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.epochs import (
    FORMAT_DOCUMENT,
    claim_epoch,
    open_format,
)
from pyspark_sluice.checkpoint_meta.stores.open_store import (
    open_store,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def lost(any_server, any_bucket):
    """Opens a state on each of the stores, which does the next PUT and loses its answer."""

    def opened(name):
        store = open_store(f"{any_server.scheme}://{any_bucket}/{name}", any_server.options)
        any_server.fail_next(any_server.lose_answer, kind="PUT")
        return store

    return opened


def test_a_put_whose_answer_was_lost_is_our_own_success(any_server, lost):
    store = lost("lost")
    puts = any_server.counted(lambda: store.publish("readers/1/00000.json", b"mine"))["PUT"]
    assert puts >= 2, "the client did not repeat the request"
    assert store.read("readers/1/00000.json") == b"mine"
    with pytest.raises(FileExistsError):
        store.publish("readers/1/00000.json", b"theirs")


def test_a_create_that_only_met_another_one_is_tried_again(any_server, any_bucket):
    store = open_store(f"{any_server.scheme}://{any_bucket}/state", any_server.options)
    conflict = any_server.refuse("409 Conflict", "ConditionalRequestConflict")
    any_server.fail_next(conflict, times=2, kind="PUT")
    open_format(store)
    assert store.read("FORMAT") == FORMAT_DOCUMENT
    any_server.fail_next(conflict, times=2, kind="PUT")
    assert claim_epoch(store) == 1

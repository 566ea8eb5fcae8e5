"""State in the object stores on loopback: lost answers, and two coordinators at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.epochs import (
    FORMAT_DOCUMENT,
    claim_epoch,
    open_format,
)
from pyspark_sluice.checkpoint_meta.stores.open_store import (
    StorageStateStore,
    open_store,
)
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import NumberSource

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


def test_fsspec_s_client_of_s3_retries_silently_and_takes_our_own_object_for_another_s(
    server, bucket
):
    """What the test above relies on: without a comparison this would be a lost race."""
    store = StorageStateStore(f"s3://{bucket}/silence", {**server.options, "client": "fsspec"})
    server.fail_next(server.lose_answer, kind="PUT")
    with pytest.raises(FileExistsError):
        store.publish("1", b"mine")


def test_a_create_that_only_met_another_one_is_tried_again(any_server, any_bucket):
    store = open_store(f"{any_server.scheme}://{any_bucket}/state", any_server.options)
    conflict = any_server.refuse("409 Conflict", "ConditionalRequestConflict")
    any_server.fail_next(conflict, times=2, kind="PUT")
    open_format(store)
    assert store.read("FORMAT") == FORMAT_DOCUMENT
    any_server.fail_next(conflict, times=2, kind="PUT")
    assert claim_epoch(store) == 1


def test_a_claim_whose_answer_was_lost_is_not_claimed_again(lost):
    store = lost("claims")
    assert claim_epoch(store) == 1
    assert store.list("epochs") == ["0000000001.json"]


def test_of_two_coordinators_that_start_at_once_on_a_bucket_one_stops(any_server, any_bucket):
    url = f"{any_server.scheme}://{any_bucket}/two"
    coordinators = [
        Coordinator(
            NumberSource([0, 1]),
            open_store(url, any_server.options),
            CoordinatorSettings(parallelism=1, commit_patience=0),
        )
        for _ in range(2)
    ]
    both = threading.Barrier(2)

    def begin(coordinator):
        both.wait(PATIENCE)
        try:
            return coordinator.latest(NO_CHECKPOINT)
        except FencedError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(begin, coordinators))
    epochs = sorted(coordinator.epoch for coordinator in coordinators)
    assert epochs == [1, 2]
    older, newer = sorted(coordinators, key=lambda coordinator: coordinator.epoch)
    reference = outcomes[coordinators.index(newer)]
    assert reference.epoch == 2
    with pytest.raises(FencedError, match="epoch 2 claimed"):
        older._opened.background()
    older.close()
    newer.close()

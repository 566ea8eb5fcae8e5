"""Who owns a state directory, and in which format it is."""

from __future__ import annotations

import json
import os
import threading

import pytest

from pyspark_sluice.checkpoint_meta.epochs import check_not_fenced, claim_epoch, open_format
from pyspark_sluice.checkpoint_meta.testing import Fault, FaultyStateStore, MemoryStateStore
from pyspark_sluice.errors import FencedError, StateCorruptError, StateVersionError


@pytest.fixture
def store():
    return MemoryStateStore("/ck/sluice")


def test_a_new_directory_gets_its_format_and_an_old_one_keeps_it(store):
    for _ in range(2):
        open_format(store)
        assert store.objects == {"FORMAT": b'{"format": 1}\n'}


def test_a_directory_of_a_newer_release_is_refused_with_both_versions_named(store):
    store.publish("FORMAT", b'{"format": 4}\n')
    with pytest.raises(StateVersionError, match=r"found format version 4; expected at most .* 1"):
        open_format(store)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b'{"format": "x"}', b"\xff"])
def test_a_damaged_format_is_named(store, content):
    store.publish("FORMAT", content)
    with pytest.raises(StateCorruptError, match="/ck/sluice/FORMAT"):
        open_format(store)


def test_epochs_count_from_one_and_say_who_claimed_them(store):
    assert [claim_epoch(store) for _ in range(3)] == [1, 2, 3]
    owner = json.loads(store.read("epochs/0000000003.json"))
    assert owner["pid"] == os.getpid()
    assert owner["epoch"] == 3


def test_an_epoch_is_claimed_by_one_only(store):
    claimed: list[int] = []
    threads = [
        threading.Thread(target=lambda: claimed.append(claim_epoch(store))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(claimed) == list(range(1, 9))


def test_the_newest_is_not_fenced_and_every_other_is_with_both_epochs_named(store):
    first = claim_epoch(store)
    check_not_fenced(store, first)
    second = claim_epoch(store)
    check_not_fenced(store, second)
    with pytest.raises(FencedError, match=r"found epoch 2 claimed by process \d+ on .*epoch 1"):
        check_not_fenced(store, first)


def test_a_claim_whose_answer_was_lost_claims_the_next_epoch(store):
    faulty = FaultyStateStore(store)
    faulty.fault = Fault("error after", verb="publish")
    with pytest.raises(OSError, match="no answer"):
        claim_epoch(faulty)
    assert claim_epoch(faulty) == 2

"""Who owns a state directory that is restored, emptied, or taken over while somebody runs."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened

SETTINGS = CoordinatorSettings(BatchLimits(files=2), parallelism=2, discovery_timeout=0.0)


def batch(query, ref):
    end = query.coordinator.latest(ref)
    query.coordinator.assignments(ref, end)
    query.acknowledge_all(end)
    return end


def test_a_driver_whose_directory_was_restored_under_it_is_fenced_whatever_the_numbers():
    old = Harness(range(100), SETTINGS)
    at_backup = batch(old, NO_CHECKPOINT)
    backup = dict(old.state.objects)
    old.restart()
    ref = batch(old, at_backup)
    old.restart()
    ref = batch(old, ref)
    old.state.objects.clear()
    old.state.objects.update(backup)
    new = Harness(range(100), SETTINGS, old.state)
    for _ in range(2):
        # The second time it has the number of the old one.
        new.restart()
        newest = batch(new, at_backup)
    assert new.coordinator.epoch == old.coordinator.epoch
    before = dict(new.state.objects)
    with pytest.raises(FencedError, match="another query has taken over"):
        old.coordinator.latest(ref)
    with pytest.raises(FencedError):
        opened(old.coordinator).upkeep._retention._delete(f"checkpoints/{newest.name}.arrow", 1)
    assert new.state.objects == before
    batch(new, newest)


def test_a_driver_whose_directory_was_emptied_writes_nothing_more():
    query = Harness(range(100), SETTINGS)
    ref = batch(query, NO_CHECKPOINT)
    query.state.objects.clear()
    with pytest.raises(FencedError, match="claim is no longer in the state directory"):
        query.coordinator.latest(ref)
    assert not query.state.objects


def test_a_superseded_driver_does_not_hand_out_what_it_has_cut_ahead():
    old = Harness(range(20), SETTINGS)
    first = old.coordinator.latest(NO_CHECKPOINT)
    old.acknowledge_all(first)
    second = old.coordinator.latest(first)
    old.calls.tick()
    assert opened(old.coordinator).flight.ahead
    new = Harness(range(20), SETTINGS, old.state)
    new.coordinator.assignments(first, second)
    new.acknowledge_all(second)
    new.coordinator.latest(second)
    with pytest.raises(FencedError, match="another query has taken over"):
        old.coordinator.latest(second)

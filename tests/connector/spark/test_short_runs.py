"""Runs of a single batch keep the state as small as long ones do."""

from __future__ import annotations

import time

import pytest

from pyspark_sluice.checkpoint_meta.stores.open_store import LocalStateStore
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.tests.connector.queries import Query

RUNS = 20


class SlowBases(LocalStateStore):
    """Writes a base more slowly than a run of one batch takes."""

    def publish(self, name, data):
        if name.startswith("bases/"):
            time.sleep(0.1)
        super().publish(name, data)


@pytest.mark.parametrize("store", [LocalStateStore, SlowBases])
def test_old_state_goes_however_late_a_base_is_written(tmp_path, store):
    query = Query(tmp_path)
    query.store = store(query.state)
    query.settings |= {
        "limits": BatchLimits(files=1),
        "retained_checkpoints": 3,
        "deltas_per_base": 2,
    }
    most = 0
    for at in range(RUNS):
        query.restart()
        query.coordinator.prepare_available_now()
        query.land(f"{at:02}.json", text=f'{{"id": {at}}}\n')
        assert query.batch() == [at]
        # Spark says so when it looks for the next batch, which does not exist.
        query.coordinator.commit(query.done)
        assert query.coordinator.latest(query.done) == query.done
        most = max(most, len(query.store.list("checkpoints")))
    query.coordinator.close()
    assert most < RUNS - 6

"""A process that is killed at any step on the way into a table, and what comes after it."""

from __future__ import annotations

import signal

import pytest

from pyspark_sluice.reader.direct_write.unreferenced_files import sweep
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import chain
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.tables.one_batch import ROWS, STEPS, OneBatch
from pyspark_sluice.tests.tables.sinks import processes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_loses_and_repeats_nothing_and_leaves_no_file(tmp_path, step):
    batch = OneBatch(tmp_path)
    chain(batch.store, 1)
    killed = processes().Process(target=batch.run, args=(step,))
    killed.start()
    killed.join(PATIENCE)
    assert killed.exitcode == -signal.SIGKILL
    for _ in range(2):
        batch.run()
        assert batch.rows() == ROWS
    found = sweep(batch.place, batch.store, delete=True)
    began_again = step in ("when the rows are in a local file", "when the file is published")
    assert (bool(found.superseded), found.undecided) == (began_again, [])
    below = str(tmp_path / "table" / "_delta_log")
    left = [path for path in batch.place.files() if not path.startswith(below)]
    assert sorted(left) == sorted(batch.files())

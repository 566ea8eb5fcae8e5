"""The example log keeps a limit on bytes: what one partition may take of a batch goes with it."""

from __future__ import annotations

import pytest

from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

LIMIT = 40


def sizes(trial):
    return [sum(len(row["line"]) + 1 for row in batch) for batch in trial.sink]


@pytest.mark.parametrize(
    ("ahead", "parallelism", "bounded"),
    [(0, 2, False), (1, 1, False), (3, 2, False), (1, 2, True)],
)
def test_no_batch_of_a_log_exceeds_the_limit_on_bytes(tmp_path, ahead, parallelism, bounded):
    logs = Logs(tmp_path)
    options = logs.options(sourceOptions='{"slice": 100}', maxBytesPerTrigger=str(LIMIT))
    landed = [row for part in range(3) for row in logs.land(part, 5, archived=0)]
    trial = Trial(
        lambda: LogSource(options, LINES),
        limits=BatchLimits(bytes=LIMIT),
        parallelism=parallelism,
        checkpoints_ahead=ahead,
        bounded=bounded,
    )
    continued = 0
    for round_ in range(5):
        trial.step()
        if not bounded:
            landed += logs.land(round_ % 3, 2, archived=0)
        headers = [trial.coordinator.history.load(ref).header for ref in trial.offsets]
        continued = sum(len(h.origins) for h in headers)
    trial.restart()
    trial.run_to_end()
    trial.check(landed)
    assert max(sizes(trial)) <= LIMIT
    assert len(trial.sink) > 5
    assert continued > 0 or ahead == 0


def test_a_line_that_is_longer_than_the_limit_is_a_batch_of_its_own(tmp_path):
    logs = Logs(tmp_path)
    options = logs.options(maxBytesPerTrigger="10")
    (tmp_path / "p0.log").write_text("a\nb\n" + "long" * 10 + "\nc\n")
    trial = Trial(lambda: LogSource(options, LINES), limits=BatchLimits(bytes=10))
    trial.run_to_end()
    lines = [[row["line"] for row in batch] for batch in trial.sink]
    assert [batch for batch in lines if batch] == [["a", "b"], ["long" * 10], ["c"]]

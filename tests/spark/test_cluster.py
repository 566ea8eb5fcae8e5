"""Real executors in processes of their own: one is killed, tasks are retried and speculated.

The package is shipped with the query; on executors that have it installed it is run by
test_standalone.py.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.spark_sink import rows_of_sink
from pyspark_sluice.tests.spark.wheel import write_zip

pytestmark = pytest.mark.drivers
PROGRAM = Path(__file__).parent / "programs" / "cluster.py"


def test_an_executor_killed_in_the_middle_of_a_batch_costs_no_row(tmp_path):
    landing = tmp_path / "landing"
    landing.mkdir()
    for i in range(24):
        lines = [json.dumps({"id": i * 10 + k, "text": "x" * 50}) for k in range(10)]
        (landing / f"{i}.json").write_text("\n".join(lines) + "\n")
    package = write_zip(tmp_path / "pyspark_sluice.zip")
    arguments = [sys.executable, str(PROGRAM), str(tmp_path), str(package)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    ran = subprocess.run(
        arguments,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        start_new_session=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "killed " in ran.stdout
    where = (tmp_path / "where").read_text()
    assert ".zip" in where, where
    ids = Counter(rows_of_sink(tmp_path / "sink")["id"].to_pylist())
    assert ids == Counter(range(240))

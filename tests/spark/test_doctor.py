"""`sluice doctor --spark` asks the tasks of a session of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pyspark_sluice.tests.patience import PATIENCE


@pytest.mark.spark
@pytest.mark.drivers
@pytest.mark.thorough("a Spark of its own; what else is asked has tests without")
def test_executors_are_asked_whether_they_share_the_state(tmp_path):
    command = [sys.executable, "-m", "pyspark_sluice", "doctor", str(tmp_path / "ck"), "--spark"]
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
    wanted = ("session", "source in Spark", "state from executors")
    assert [found[what]["verdict"] for what in wanted] == ["ok"] * 3
    assert found["state from executors"]["found"].startswith("4 tasks on ")
    assert not (tmp_path / "ck").exists()

"""Commands whose caller has closed standard streams, as some daemons do."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_whose_streams_are_closed_ends_as_others_do(tmp_path, closed):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.json").write_text('{"id": 1}\n')
    call = f"exec {sys.executable} -m pyspark_sluice"
    run = f"{call} run in --to parquet:table --checkpoint ck {closed}"
    for command in (run, run, f"{call} status ck {closed}"):
        ended = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
    assert len([*(tmp_path / "table").glob("*.parquet")]) == 1

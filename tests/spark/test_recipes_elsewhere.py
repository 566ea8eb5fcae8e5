"""The recipes where they are used: on Spark Connect and in a notebook.

On a standalone cluster one is run by test_standalone.py, which has a cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from pyspark_sluice.examples.delta import delta
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark_home import quick_environment

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drivers,
    pytest.mark.thorough("the programs of other pages run; these two take kernels and Connect"),
]
EXAMPLES = Path(delta.__file__).parent.parent


def land(folder: Path, name: str, ids: range) -> None:
    folder.mkdir(exist_ok=True)
    at = "2026-01-01 10:00:00"
    lines = [json.dumps({"id": number, "at": at, "name": f"row {number}"}) for number in ids]
    (folder / name).write_text("\n".join(lines))


def run(command: list[str], **variables: str) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    environment = {**inherited, **quick_environment(), **variables}
    for _ in range(3):
        ran = subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        # Spark gives a Python worker ten seconds to start, which a machine under load may miss. A
        # recipe that is run again goes on where it was.
        if "Timed out while waiting for the Python worker" not in ran.stderr:
            break
    assert ran.returncode == 0, ran.stderr[-4000:]


def test_a_query_that_died_goes_on_with_spark_connect_and_repeats_nothing(
    spark, tmp_path, monkeypatch
):
    landing, table = tmp_path / "landing", tmp_path / "table"
    places = [str(landing), str(table), str(tmp_path / "checkpoint")]
    land(landing, "1.json", range(10))

    def append_and_die(*arguments, append=delta.append):
        append(*arguments)
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(delta, "append", append_and_die)
        with pytest.raises(StreamingQueryException, match="InterruptedError"):
            delta.start(spark, *places).awaitTermination(PATIENCE)
    land(landing, "2.json", range(10, 15))
    # Connect's usual port may be taken on a machine that runs tests.
    run(
        [sys.executable, str(EXAMPLES / "delta" / "delta.py"), *places],
        SPARK_REMOTE="local",
        SPARK_TESTING="1",
    )
    found = DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist()
    assert Counter(found) == Counter(range(15))


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for name, value in quick_environment().items():
        monkeypatch.setenv(name, value)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "notebook" / "first_look.ipynb", as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources=place).execute()
    said = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "500 rows in" in "".join(said)
    assert "600 rows" in "".join(said)

"""Examples run as they are, and print what their pages say."""

import re
import runpy
from pathlib import Path

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark_home import quick_environment

EXAMPLES = Path(pyspark_sluice.__file__).parent / "examples"


@pytest.mark.sample("log_source.read_log", why="sources and formats have suites of their own")
@pytest.mark.parametrize(
    "program",
    [
        "fixed_width.read_fixed_width",
        "log_source.read_log",
        "quickstart_table.quickstart_table",
        "table_source.read_table",
    ],
)
def test_an_example_prints_what_its_page_shows(spark, tmp_path, monkeypatch, capsys, program):
    folder, _, name = program.partition(".")
    page = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^\S*python .*\b{name}\b", page, re.MULTILINE)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    monkeypatch.setattr("sys.argv", [name, str(tmp_path / "home")])
    runpy.run_module(f"pyspark_sluice.examples.{program}", run_name="__main__")
    assert capsys.readouterr().out == printed


@pytest.mark.drivers
@pytest.mark.thorough("starts a kernel with a Spark of its own")
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

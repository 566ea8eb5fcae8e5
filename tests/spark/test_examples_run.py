"""The examples of formats and sources of your own run as they are, and print what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import pyspark_sluice

EXAMPLES = Path(pyspark_sluice.__file__).parent / "examples"


@pytest.mark.sample("log_source", why="sources and formats have suites of their own")
@pytest.mark.parametrize("name", ["fixed_width", "log_source", "table_source"])
def test_an_example_prints_what_its_page_shows(spark, tmp_path, monkeypatch, capsys, name):
    page = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    (module,) = re.findall(r"python -m (\S+) HOME", page)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    monkeypatch.setattr("sys.argv", [module, str(tmp_path / "home")])
    runpy.run_module(module, run_name="__main__")
    assert capsys.readouterr().out == printed

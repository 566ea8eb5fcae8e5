"""Spark is configured to run this interpreter only where it would run another one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pyspark_sluice.connector.spark.registration import use_this_interpreter


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The PATH: one folder with another environment's `python3` in it."""
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    return tmp_path


def test_another_environment_on_the_path_is_set_aside(path):
    use_this_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_an_activated_environment_is_left_alone(path, monkeypatch):
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{path}")
    use_this_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == ""


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_what_somebody_has_said_counts(path, monkeypatch, name):
    monkeypatch.setenv(name, "/opt/python3")
    use_this_interpreter()
    assert os.environ[name] == "/opt/python3"
    assert os.environ["PYSPARK_PYTHON"] in ("", "/opt/python3")

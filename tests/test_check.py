"""The test command itself: it succeeds when everything does, and fails when anything does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pyspark_sluice.tests.patience import PATIENCE

CHECK = Path(__file__).resolve().parent.parent / "tools" / "check.sh"
FAILS_ON = '#!/bin/sh\ncase "$0 $*" in *"$FAILING"*) exit 3;; esac\n'
"""A tool that fails on a certain argument."""


@pytest.fixture
def clone(tmp_path):
    tools, bin_ = tmp_path / "tools", tmp_path / ".venv" / "bin"
    tools.mkdir()
    bin_.mkdir(parents=True)
    shutil.copy(CHECK, tools)
    for tool in ("python", "ruff", "mypy", "lint-imports"):
        (bin_ / tool).write_text(FAILS_ON)
        (bin_ / tool).chmod(0o755)
    (tools / "site.sh").write_text(FAILS_ON)
    (tools / "site.sh").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ("nothing that is there", 0),
        ("format", 3),
        ("-p pyspark_sluice", 3),
        ("-m not drivers and not sweep tests/reader", 3),
        ("-m not spark and not drivers and not sweep tests --ignore tests/reader --ignore", 3),
        ("-m not spark and not drivers and not sweep tests/checkpoint_meta tests/protocol", 3),
        ("-m drivers and not sweep tests/spark", 3),
        ("-m spark and not drivers and not sweep tests --ignore tests/reader", 3),
        ("site", 3),
    ],
)
def test_the_run_fails_if_and_only_if_one_of_its_steps_does(clone, failing, expected):
    assert status_of(clone, failing) == expected


QUICK = "-m not spark and not drivers and not slow and not sweep tests"


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ("nothing that is there", 0),
        ("check", 3),
        ("lint-imports", 3),
        (f"{QUICK}/reader tests/connector", 3),
        (f"{QUICK} --ignore tests/reader", 3),
        ("site", 0),
    ],
)
def test_the_quick_run_fails_if_and_only_if_one_of_its_own_steps_does(clone, failing, expected):
    assert status_of(clone, failing, "--quick") == expected


def status_of(clone, failing, *arguments):
    ran = subprocess.run(
        [clone / "tools" / "check.sh", *arguments],
        env={**os.environ, "FAILING": failing},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return ran.returncode

"""The test command itself: it succeeds when everything does, and fails when anything does."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from pyspark_sluice.examples.demo.__main__ import next_steps
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.repository import ROOT, tool

CHECK = ROOT / "tools" / "check.sh"
FAILS_ON = '#!/bin/sh\ncase "$0 $*" in *"$FAILING"*) exit 3;; esac\n'
"""A tool that fails on a certain argument."""


@pytest.fixture
def clone(tmp_path):
    tools, bin_ = tmp_path / "tools", tmp_path / ".venv" / "bin"
    tools.mkdir()
    bin_.mkdir(parents=True)
    shutil.copy(CHECK, tools)
    for name in ("python", "ruff", "mypy", "lint-imports"):
        (bin_ / name).write_text(FAILS_ON)
        (bin_ / name).chmod(0o755)
    (tools / "site.sh").write_text(FAILS_ON)
    (tools / "site.sh").chmod(0o755)
    return tmp_path


QUICK = "-q -m not spark and not drivers and not slow and not thorough tests"


@pytest.mark.parametrize(
    "case",
    [
        ("nothing that is there", 0),
        ("format", 3),
        ("-p pyspark_sluice", 3),
        ("-n 4 --dist loadgroup --no-loadscope-reorder --durations 30 -m not thorough tests", 3),
        ("site", 3),
        ("nothing that is there", 0, "--quick"),
        ("check", 3, "--quick"),
        ("lint-imports", 3, "--quick"),
        (QUICK, 3, "--quick"),
        ("site", 0, "--quick"),
    ],
)
def test_a_run_fails_if_and_only_if_one_of_its_steps_does(clone, case):
    failing, expected, *arguments = case
    ran = subprocess.run(
        [clone / "tools" / "check.sh", *arguments],
        env={**os.environ, "FAILING": failing},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ran.returncode == expected


def test_what_is_left_to_the_thorough_run_tells_why(tmp_path):
    marks = {
        "told": 'thorough("a longer run of the same")',
        "bare": "thorough",
        "empty": "thorough()",
        "blank": 'thorough(" ")',
        "named": 'thorough(reason="not read")',
    }
    tests = (f"@pytest.mark.{mark}\ndef {name}():\n    pass\n" for name, mark in marks.items())
    (tmp_path / "test_one.py").write_text("import pytest\n\n" + "\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path]
    command += ["-p", "pyspark_sluice.tests.conftest", "-m", "thorough"]
    ran = subprocess.run(
        [*command, "-o", f"python_functions={' '.join(marks)}", tmp_path],
        capture_output=True, check=False, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 4, ran.stdout + ran.stderr
    said = ran.stderr.partition("each `thorough` needs one text")[2]
    assert [name for name in marks if f"::{name}'" in said] == [*marks][1:]


SAMPLED = """\
import pytest

@pytest.mark.sample("a", "1-d", why="three more letters")
@pytest.mark.parametrize("letter", ["a", "b", "c", "d"])
@pytest.mark.parametrize("number", ["1", "2"])
def test_letters(number, letter):
    pass
"""


def test_a_sample_leaves_the_other_cases_to_the_thorough_run(tmp_path):
    (tmp_path / "test_one.py").write_text(SAMPLED)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path,
         "-p", "pyspark_sluice.tests.conftest", "-m", "thorough", "--collect-only", "-q", tmp_path],
        capture_output=True, check=False, text=True, timeout=PATIENCE,
    )  # fmt: skip
    cases = ["1-b", "1-c", "2-b", "2-c", "2-d"]
    assert re.findall(r"test_letters\[([^]]+)\]", ran.stdout) == cases, ran.stdout + ran.stderr


prepare = tool("prepare")
PIP_LISTS = """\
:env:.extra-index-url='https://a.example/simple https://b.example/simple'
:env:.cert='/own.pem'
:env:.disable-pip-version-check='1'
global.cert='/all.pem'
global.find-links='\\nhttps://c.example/w\\n/d'
global.index-url='https://e.example/simple'
"""


def test_the_environment_is_made_from_where_the_machine_tells_pip_to_look():
    assert prepare.settings_of_uv(PIP_LISTS) == {
        "SSL_CERT_FILE": "/own.pem",
        "UV_DEFAULT_INDEX": "https://e.example/simple",
        "UV_FIND_LINKS": "https://c.example/w,/d",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_what_uv_cannot_install_is_installed_by_pip(tmp_path, capfd):
    """A pip and a uv that write down how they are called; the uv fails."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, status in (("python", 0), ("uv", 1)):
        told = f'echo "{name} $*" >> {tmp_path}/told\n'
        (bin_ / name).write_text(f"#!/bin/sh\n{told}exit {status}\n")
        (bin_ / name).chmod(0o755)
    prepare.install(tmp_path, ["something"])
    calls = [line.split() for line in (tmp_path / "told").read_text().splitlines()]
    assert [(call[0], call[-1]) for call in calls] == [
        ("python", "list"),
        ("python", "uv"),
        ("uv", "something"),
        ("python", "something"),
    ]
    assert "now with pip" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("command", "shown"), [("make demo", "\nmake demo "), ("make test", "`make test`")]
)
def test_the_readme_has_the_two_commands_and_make_knows_them(command, shown):
    assert shown in (ROOT / "README.md").read_text(encoding="utf-8")
    targets = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(f"{command.partition(' ')[2]}:") for line in targets)


def test_the_commands_that_the_demo_ends_with_are_found_without_an_active_environment(tmp_path):
    query = Query(tmp_path, state=str(tmp_path / "checkpoint" / "sluice" / "source"))
    query.land("a.json")
    query.plan()
    query.coordinator.close()
    shown = next_steps(tmp_path)
    commands = re.findall(r"(\S+/sluice) (\w+) (\S+)", shown)
    assert [command[1:] for command in commands] == [
        (name, f"{tmp_path}/checkpoint") for name in ("status", "checkpoints", "verify")
    ]
    (program,) = {program for program, _, _ in commands}
    ran = subprocess.run([program, "--help"], env={}, capture_output=True, check=True, text=True)
    assert {name for _, name, _ in commands} <= set(ran.stdout.split())

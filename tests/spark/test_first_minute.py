"""The first minute of a newcomer: the README's quick start in a fresh environment.

The package is built into a wheel and installed into a virtual environment of its own; what it
depends on is borrowed from the one that runs the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = [
    pytest.mark.spark,
    pytest.mark.drivers,
    pytest.mark.thorough(
        "an environment of its own; pages of the documentation run the same calls in this one"
    ),
]

LEFT_OUT = shutil.ignore_patterns(".*", "build", "tests", "benchmarks", "__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """A virtual environment with the package in it, installed from a wheel."""
    home = tmp_path_factory.mktemp("newcomer")
    checkout, wheels, venv = home / "checkout", home / "wheels", home / "venv"
    shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # What a build needs is here already; nothing is fetched.
    quiet = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *quiet, "--wheel-dir", wheels, checkout], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([*pip, "install", *quiet, "--target", packages, wheel], check=True)
    borrowed = Path(pytest.__file__).parents[1]
    (packages / "borrowed.pth").write_text(f"{borrowed}\n")
    return venv


@pytest.fixture
def elsewhere(tmp_path) -> str:
    """A PATH whose `python3` is a Python without the package."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    found = [str(folder / "python3"), "-c", "import pyspark_sluice"]
    assert subprocess.run(found, check=False, stderr=-3).returncode != 0
    return f"{folder}:/usr/bin:/bin"


def quick_start() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return code


def run(program: str, home: Path, python: str, path: str) -> subprocess.CompletedProcess[str]:
    """`program` as a newcomer starts it, with nothing of the tests' environment."""
    script = home / "quickstart.py"
    script.write_text(program.replace("/tmp/sluice", str(home)))
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "JAVA_HOME", "LANG", "TMPDIR")}
    # Connect's usual port may be taken on a machine that runs tests.
    here = {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    # A machine that lives for seconds: thorough compilation does not pay.
    environment = {**kept, **here, "PATH": path, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(
        [python, str(script)],
        env=environment, cwd=home, check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


def check(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stderr[-3000:]
    assert "1000 orders in the table" in result.stdout


def test_the_quick_start_on_spark_connect(environment, tmp_path, elsewhere):
    program = quick_start().replace(
        ".builder.getOrCreate()", '.builder.remote("local").getOrCreate()'
    )
    assert program != quick_start()
    for attempt in range(3):
        home = tmp_path / str(attempt)
        home.mkdir()
        ran = run(program, home, str(environment / "bin" / "python"), elsewhere)
        # Spark gives a Python worker ten seconds to start, which a machine under load may miss.
        if "Timed out while waiting for the Python worker" not in ran.stderr:
            break
    check(ran)


EARLIER_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
import pyspark_sluice
assert pyspark_sluice.__file__.startswith({environment!r}), pyspark_sluice.__file__
pyspark_sluice.register(spark)
"""


def test_the_quick_start_in_a_session_that_is_already_there(environment, tmp_path, elsewhere):
    program = EARLIER_SESSION.format(environment=str(environment)) + quick_start()
    check(run(program, tmp_path, str(environment / "bin" / "python"), elsewhere))

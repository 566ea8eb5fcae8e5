"""Runs the tests on every supported pair of Python and PySpark: `make test-versions`.

Each pair gets a virtual environment of its own below `.versions/`. Runs on the standard library
alone; the interpreters have to be on the path as `python3.11` and so on, or under pyenv.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAIRS = ("3.11/4.0", "3.11/4.1", "3.11/4.2", "3.11/4.3", "3.12/4.3", "3.13/4.3")
"""Python/PySpark: the oldest of both, and every Python with the newest PySpark."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests named on every pair named; the exit status is 0 only if all of them passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", nargs="*", default=PAIRS, help=f"of {' '.join(PAIRS)}")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders of tests")
    options = parser.parse_args(arguments)
    failed = [pair for pair in options.pairs or PAIRS if not _passes(pair, options.tests)]
    passed = [pair for pair in options.pairs or PAIRS if pair not in failed]
    print(f"passed: {', '.join(passed) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _passes(pair: str, tests: Sequence[str]) -> bool:
    python, spark = pair.split("/")
    print(f"--- Python {python}, PySpark {spark}", flush=True)
    interpreter = _interpreter(python)
    if interpreter is None:
        print(f"sluice: no python{python} found; install it or put it on the path", flush=True)
        return False
    venv = ROOT / ".versions" / f"python{python}-pyspark{spark}"
    prepare = [interpreter, "tools/prepare.py", str(venv), f"pyspark[connect]=={spark}.*"]
    if subprocess.run(prepare, cwd=ROOT, check=False).returncode != 0:
        return False
    own = venv / "bin" / "python"
    java = subprocess.run([own, "tools/java_home.py"], cwd=ROOT, check=True, stdout=-1, text=True)
    environment = {**os.environ, "JAVA_HOME": java.stdout.strip()}
    environment.setdefault("HYPOTHESIS_PROFILE", "ci")
    run = [str(own), "-m", "pytest", "-c", "pyproject.toml", "--rootdir", "tests", "-q"]
    run += ["-n", "4", "--dist", "loadgroup", "--no-loadscope-reorder", *tests]
    return subprocess.run(run, cwd=ROOT, env=environment, check=False).returncode == 0


def _interpreter(version: str) -> str | None:
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, reversed(kept))):
        if candidate and _starts(candidate, version):
            return candidate
    return None


def _starts(candidate: str, version: str) -> bool:
    # Version managers put names on the path that do not start.
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    found = subprocess.run([candidate, "-c", say], check=False, stdout=-1, stderr=-3, text=True)
    return found.stdout.strip() == version


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

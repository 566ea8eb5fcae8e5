#!/bin/sh
# Everything a change has to pass, cheapest first. Called by `make test`, which prepares .venv.
set -eu
cd "$(dirname "$0")/.."
bin="$PWD/.venv/bin"

step() {
    echo "--- $*"
    "$@"
}

JAVA_HOME="$("$bin/python" tools/java_home.py)"
export JAVA_HOME
# The profile that tests/conftest.py gives to hypothesis; dev and nightly are the others.
export HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}"

step "$bin/ruff" format --check .
step "$bin/ruff" check .
MYPYPATH="$PWD/.venv/typing" step "$bin/mypy" -p pyspark_sluice
step "$bin/lint-imports"
step tools/site.sh "$bin"
# With tests/ as its root pytest does not import the package by the name of the clone's folder.
step "$bin/python" -m pytest -c pyproject.toml --rootdir tests tests

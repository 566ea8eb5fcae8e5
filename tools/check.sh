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

# Two runs side by side: those of Spark wait more than they compute.
# With tests/ as its root pytest does not import the package by the name of the clone's folder.
tests() {
    "$bin/python" -m pytest -c pyproject.toml --rootdir tests --durations 10 -m "$1" tests
}
beside="$(mktemp)"
echo "--- pytest: tests with Spark here, all others beside them"
tests "not spark" >"$beside" 2>&1 &
others=$!
trap 'kill "$others" 2>/dev/null; rm -f "$beside"' EXIT
status=0
tests spark || status=$?
echo "--- pytest: tests without Spark"
wait "$others" || status=$?
cat "$beside"
exit "$status"

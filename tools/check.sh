#!/bin/sh
# Everything a change has to pass, cheapest first. Called by `make test`, which prepares .venv.
# With --quick neither Spark nor slow tests nor the site; with a path below tests/ only its tests.
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

if [ -n "${1:-}" ] && [ "$1" != --quick ]; then
    exec "$bin/python" -m pytest -c pyproject.toml --rootdir tests --durations 5 "tests/$1"
fi

step "$bin/ruff" format --check .
step "$bin/ruff" check .
MYPYPATH="$PWD/.venv/typing" step "$bin/mypy" -p pyspark_sluice
step "$bin/lint-imports"
if [ "${1:-}" = --quick ]; then
    exec "$bin/python" -m pytest -c pyproject.toml --rootdir tests -q \
        -m "not spark and not drivers and not slow" tests
fi
step tools/site.sh "$bin"

# Three runs side by side: those with Spark wait more than they compute.
# With tests/ as its root pytest does not import the package by the name of the clone's folder.
tests() {
    "$bin/python" -m pytest -c pyproject.toml --rootdir tests --durations 10 -m "$1" tests
}
told="$(mktemp -d)" others="" drivers=""
# What fails in a trap would be the status of the whole.
trap 'kill $others $drivers 2>/dev/null || true; rm -rf "$told"' EXIT
echo "--- pytest: tests in one session of Spark here, all others beside them"
tests "not spark" >"$told/others" 2>&1 &
others=$!
tests "drivers" >"$told/drivers" 2>&1 &
drivers=$!
status=0
tests "spark and not drivers" || status=$?
echo "--- pytest: tests with Spark in processes of their own"
wait "$drivers" || status=$?
cat "$told/drivers"
echo "--- pytest: tests without Spark"
wait "$others" || status=$?
cat "$told/others"
exit "$status"

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

# With tests/ as its root pytest does not import the package by the name of the clone's folder.
tests() {
    "$bin/python" -m pytest -c pyproject.toml --rootdir tests "$@"
}

JAVA_HOME="$("$bin/python" tools/java_home.py)"
export JAVA_HOME
# The profile that tests/conftest.py gives to hypothesis; dev and nightly are the others.
export HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}"

if [ -n "${1:-}" ] && [ "$1" != --quick ]; then
    tests --durations 5 "tests/$1"
    exit
fi

step "$bin/ruff" format --check .
step "$bin/ruff" check .
MYPYPATH="$PWD/.venv/typing" step "$bin/mypy" -p pyspark_sluice
step "$bin/lint-imports"
if [ "${1:-}" = --quick ]; then
    tests -q -m "not spark and not drivers and not slow" tests
    exit
fi
step tools/site.sh "$bin"

# Four runs side by side: those with Spark wait more than they compute.
output="$(mktemp -d)" runs=""
# What fails in a trap would be the status of the whole.
trap 'for run in $runs; do kill "${run#*=}" 2>/dev/null || true; done; rm -rf "$output"' EXIT
beside() {
    name="$1"
    shift
    tests --durations 10 "$@" >"$output/$name" 2>&1 &
    runs="$runs $name=$!"
}
beside drivers -m drivers tests
beside readers -m "not spark" tests/reader
beside others -m "not spark" tests --ignore tests/reader
echo "--- pytest: tests in one session of Spark here, all others beside them"
status=0
tests --durations 10 -m "spark and not drivers" tests || status=$?
for run in $runs; do
    echo "--- pytest: ${run%%=*}"
    wait "${run#*=}" || status=$?
    cat "$output/${run%%=*}"
done
exit "$status"

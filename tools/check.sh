#!/bin/sh
# Everything a change has to pass. Called by `make test`, which prepares .venv.
# With --quick neither Spark nor slow tests nor the site; with a path below tests/ only its tests;
# with --thorough what all of these leave out, and Spark itself instead of its recorded answers;
# with --answers these are recorded.
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

types_and_borders() {
    MYPYPATH="$PWD/.venv/typing" step "$bin/mypy" -p pyspark_sluice
    step "$bin/lint-imports"
}

# Tests of one group (tests/conftest.py) share a process. Four, since what runs with Spark or with a
# server waits more than it computes.
tests_in() {
    processes="$1"
    shift
    tests -n "$processes" --dist loadgroup --no-loadscope-reorder "$@"
}

# A Spark that starts in half of the time pays for this after six starts.
archive() {
    "$bin/python" -m pyspark_sluice.tests.spark_home
}

if [ "${1:-}" = --thorough ]; then
    archive
    export HYPOTHESIS_PROFILE=thorough SPARK_ANSWERS=compare
    tests_in 4 --durations 30 -m "thorough or answers" tests
    exit
fi
if [ "${1:-}" = --answers ]; then
    SPARK_ANSWERS=record tests -m answers "${2:-tests}"
    exit
fi
if [ -n "${1:-}" ] && [ "$1" != --quick ]; then
    tests --durations 5 "tests/$1"
    exit
fi

step "$bin/ruff" format --check .
step "$bin/ruff" check .

output="$(mktemp -d)" runs=""
# What fails in a trap would be the status of the whole.
trap 'for run in $runs; do kill "${run#*=}" 2>/dev/null || true; done; rm -rf "$output"' EXIT
in_background() {
    name="$1"
    shift
    "$@" >"$output/$name" 2>&1 &
    runs="$runs $name=$!"
}
end_with() {
    status="$1"
    for run in $runs; do
        echo "--- ${run%%=*}"
        wait "${run#*=}" || status=$?
        cat "$output/${run%%=*}"
    done
    exit "$status"
}

status=0
in_background types types_and_borders
if [ "${1:-}" = --quick ]; then
    echo "--- pytest: what needs neither Spark nor a server; the types next to it"
    tests_in 2 -q -m "not spark and not drivers and not slow and not thorough" tests || status=$?
    end_with "$status"
fi

in_background site tools/site.sh "$bin"
archive
# What one process has compiled, the four do not compile each for itself.
[ -e tests/__pycache__ ] || tests --collect-only -qq tests >/dev/null || true
echo "--- pytest: all tests; the types and the site of the documentation next to them"
tests_in 4 --durations 30 -m "not thorough" tests || status=$?
end_with "$status"

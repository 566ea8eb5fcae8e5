#!/bin/sh
# Everything a change has to pass, cheapest first. Called by `make test`, which prepares .venv.
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

# A Spark that starts in half of the time pays for this after six starts.
archive() {
    "$bin/python" -m pyspark_sluice.tests.spark_home
}

if [ "${1:-}" = --thorough ]; then
    archive
    # Tests of properties look at ten times as many examples, and at others each time.
    export HYPOTHESIS_PROFILE=thorough SPARK_ANSWERS=compare
    tests --durations 10 -m "thorough or hypothesis or answers" tests
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

if [ "${1:-}" = --quick ]; then
    quick="not spark and not drivers and not slow and not thorough"
    in_background types types_and_borders
    in_background formats_and_queries tests -q -m "$quick" tests/reader tests/connector
    echo "--- pytest: half of the tests here, the other half and the types next to them"
    status=0
    tests -q -m "$quick" tests --ignore tests/reader --ignore tests/connector || status=$?
    end_with "$status"
fi

lane() {
    chosen="$1"
    shift
    tests --durations 10 -m "$chosen and not thorough" "$@"
}
drivers_and_state() {
    failed=0
    lane "drivers" tests/spark || failed=$?
    # shellcheck disable=SC2086 # Each is a word.
    lane "not spark and not drivers" $with_drivers || failed=$?
    return "$failed"
}
# Next to each other as well: the types are one process, and there is a second core.
in_background site tools/site.sh "$bin"
archive &
runs="$runs archive=$!"
types_and_borders
wait "${runs##*=}"
runs="${runs% archive=*}"

# All others side by side: what runs with Spark waits more than it computes. Each of the four runs
# of pytest takes about as long as the others: the reader's has a session of Spark, and time left,
# and what the drivers leave of the time is for the state and the protocol.
with_drivers="tests/checkpoint_meta tests/protocol"
with_reader="tests/spark/test_alignment.py tests/spark/test_object_store.py
    tests/spark/test_pages_run.py"
# shellcheck disable=SC2086 # Each is a word.
in_background reader lane "not drivers" tests/reader $with_reader
in_background drivers drivers_and_state
# shellcheck disable=SC2046,SC2086
in_background others lane "not spark and not drivers" tests --ignore tests/reader \
    $(printf ' --ignore %s' $with_drivers)
echo "--- pytest: queries in one session of Spark here, all others next to them"
status=0
# shellcheck disable=SC2046,SC2086
lane "spark and not drivers" tests --ignore tests/reader $(printf ' --ignore %s' $with_reader) ||
    status=$?
end_with "$status"

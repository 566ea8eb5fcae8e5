#!/usr/bin/env bash
# duckdb 2.0.1: timestamps cast to a coarser unit.
#
# One would guess: the digits that the unit lacks are dropped, as in date_trunc and in the cast of
#   text to TIMESTAMP.
# Seen: they are rounded: 2026-12-31 23:59:59.9996 is 2027-01-01 in TIMESTAMP_MS, and so is a
#   nanosecond before midnight in TIMESTAMP and in DATE, on 2026-11-30. A row lands in the
#   partition of the next day, or year.
# Source: run below; github.com/duckdb/duckdb/pull/12011 has it from PostgreSQL.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.1
venv/bin/python - <<'PYTHON'
import duckdb


def value(expression):
    return duckdb.execute(f"SELECT ({expression})::VARCHAR").fetchone()[0]


late, latest = "'2026-12-31 23:59:59.9996'", "'2026-12-31 23:59:59.999999999'"
rounded = [
    value(f"TIMESTAMP {late}::TIMESTAMP_MS"),
    value(f"TIMESTAMP {late}::TIMESTAMP_S"),
    value(f"{latest}::TIMESTAMP_NS::TIMESTAMP"),
    value(f"{latest}::TIMESTAMP_NS::DATE"),
]
print(rounded)
assert all(text.startswith("2027-01-01") for text in rounded), "the behaviour has changed"
assert value(f"date_trunc('second', TIMESTAMP {late})") == "2026-12-31 23:59:59"
assert value(f"{latest}::TIMESTAMP") == "2026-12-31 23:59:59.999999"
PYTHON

#!/usr/bin/env bash
# duckdb 2.0.1: Parquet files of which the first has integers and the second doubles.
#
# One would guess: the doubles are read as doubles, or refused as a type that does not fit, as a
#   number too large for an integer and a missing column are.
# Seen: 2.5 is 2 and 3.5 is 4, to the nearest even number, without a warning, on 2026-11-30: every
#   file is cast to the types of the first one. WHERE x = 2.5 finds nothing. A time becomes a date
#   likewise. With union_by_name=true the values are right.
# Source: run below; DuckDB's page "Combining Schemas" says that the schema of the first file is
#   read, and nothing of values that it does not hold.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.1 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def read(name, first, second, rest="", option=""):
    for number, values in enumerate((first, second)):
        pq.write_table(pa.table({"x": values}), f"{name}{number}.parquet")
    query = f"SELECT x FROM read_parquet('{name}*.parquet'{option}) {rest}"
    return [x for (x,) in duckdb.execute(query).fetchall()]


numbers = read("n", [1], [2.5, 3.5])
filtered = read("n", [1], [2.5, 3.5], "WHERE x = 2.5")
day, noon = dt.date(2026, 11, 30), dt.datetime(2026, 11, 30, 12)
times = read("t", [day], [noon])
print("numbers:", numbers, " = 2.5:", filtered, " times:", times)
assert (numbers, filtered, times) == ([1, 2, 4], [], [day, day]), "the behaviour has changed"
assert read("n", [1], [2.5, 3.5], option=", union_by_name=true") == [1, 2.5, 3.5]
try:
    read("big", pa.array([1], pa.int32()), [2**40])
except duckdb.Error as error:
    print("too large:", type(error).__name__)
else:
    raise AssertionError("a number that is too large was read")
PYTHON

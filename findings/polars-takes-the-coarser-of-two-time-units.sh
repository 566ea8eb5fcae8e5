#!/usr/bin/env bash
# polars 2.1.0: times of two units compared, and put into one column.
#
# One would guess: milliseconds next to microseconds become microseconds, as an integer next to a
#   double becomes a double: a microsecond later is later.
# Seen: both become milliseconds, on 2026-11-30: the two times are equal, a filter by a Python
#   datetime finds a row that is a microsecond off, and concat() with vertical_relaxed or
#   diagonal_relaxed cuts the microseconds off without a warning.
# Source: run below; github.com/pola-rs/polars/issues/22435, open.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0
venv/bin/python - <<'PYTHON'
import datetime as dt

import polars as pl

start, later = dt.datetime(2026, 11, 30), dt.datetime(2026, 11, 30, 0, 0, 0, 1)
frame = pl.DataFrame({"us": [later], "ms": [start]}, schema_overrides={"ms": pl.Datetime("ms")})
equal, less = frame.select(pl.col("ms") == pl.col("us"), less=pl.col("ms") < pl.col("us")).row(0)
found = frame.filter(pl.col("ms") == later).height
print("equal:", equal, " less:", less, " rows equal to a microsecond later:", found)
assert (equal, less, found) == (True, False, 1), "the behaviour has changed"
parts = [frame.select(t="us"), frame.select(t="ms")]
for how in ("vertical_relaxed", "diagonal_relaxed"):
    column = pl.concat(parts, how=how)["t"]
    print(how, column.to_list())
    assert column.to_list() == [start, start], "the behaviour has changed"
PYTHON

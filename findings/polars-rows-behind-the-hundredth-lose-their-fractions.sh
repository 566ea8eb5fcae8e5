#!/usr/bin/env bash
# polars 2.1.0: a DataFrame from dictionaries of which the 101st has a fraction.
#
# One would guess: an error, as for a text or a date with a time in the 101st row: the types of the
#   first 100 rows are taken, and the constructor is strict.
# Seen: 1.7 becomes 1, and 5 in a column of booleans becomes False, without an error, on 2026-11-30.
#   With 1.7 in the 100th row the column has doubles; a column given as a list is refused.
# Source: run below; the constructor says of "strict": throw an error if any value does not exactly
#   match the given or inferred data type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0
venv/bin/python - <<'PYTHON'
import polars as pl


def last(first, other, before=100):
    return pl.DataFrame([{"x": first}] * before + [{"x": other}], strict=True)["x"][-1]


cut = last(1, 1.7), last(True, 5)
print("cut:", cut, " in the 100th row:", last(1, 1.7, before=99))
assert repr(cut) == "(1, False)", "the behaviour has changed"
assert last(1, 1.7, before=99) == 1.7
for refused in (lambda: last(1, "a"), lambda: pl.DataFrame({"x": [1] * 100 + [1.7]})):
    try:
        refused()
    except (pl.exceptions.ComputeError, TypeError) as error:
        print("refused:", str(error).splitlines()[0])
    else:
        raise AssertionError("it was not refused")
PYTHON

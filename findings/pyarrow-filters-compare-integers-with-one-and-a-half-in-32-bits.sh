#!/usr/bin/env bash
# pyarrow 26.0.1: a filter that compares an integer column with a number that has a fraction.
#
# One would guess: both are compared as doubles, as the function greater() does, so that 20,000,000
#   is above 1.5; and a column that can be compared with 0.1 can be compared with 1.5.
# Seen: Table.filter, Dataset.to_table and read_table refuse 1.5: "Integer value 20000000 not in
#   range: -16777216 to 16777216", on 2026-11-30. In an expression, a number that a 32-bit float
#   holds exactly becomes such a float, and the column is cast to it. 1.5 and 0.25 are such numbers;
#   0.1 is not, and works.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

table = pa.table({"a": [20_000_000]})
assert pc.greater(table["a"], 1.5).to_pylist() == [True]
assert table.filter(pc.field("a") > 0.1).num_rows == 1
for number in (1.5, 0.25):
    for read in (table.filter, lambda e: ds.dataset(table).to_table(filter=e)):
        try:
            rows = read(pc.field("a") > number).num_rows
        except pa.ArrowInvalid as error:
            print(f"a > {number}:", error)
            assert "not in range: -16777216 to 16777216" in str(error)
        else:
            raise AssertionError(f"the behaviour has changed: {rows}")
PYTHON

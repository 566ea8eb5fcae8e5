#!/usr/bin/env bash
# pyarrow 26.0.1: isin() while Parquet is read, where the least value is -0.0.
#
# One would guess: isin([0.0, 5.0]) finds at least the row 0.0 of [0.0, -0.0], as it does in memory;
#   x == 0.0 finds both.
# Seen: nothing is found in the file, on 2026-11-29: its statistics are -0.0 to 0.0, and the list of
#   values is cut down by them to nothing.
# Source: run below; the Parquet format asks writers for -0.0 as a minimum of zeros.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

table = pa.table({"x": [0.0, -0.0]})
pq.write_table(table, "a.parquet")
file, x = ds.dataset("a.parquet"), ds.field("x")
rules = {"isin 2": x.isin([0.0, 5.0]), "isin 1": x.isin([0.0]), "==": x == 0.0}
seen = {
    name: (table.filter(rule).num_rows, file.to_table(filter=rule).num_rows)
    for name, rule in rules.items()
}
print("rows in memory and in the file:", seen)
assert seen == {"isin 2": (1, 0), "isin 1": (1, 0), "==": (2, 2)}, "the behaviour has changed"
PYTHON

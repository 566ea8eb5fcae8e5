#!/usr/bin/env bash
# deltalake 1.6.3: delete() from an integer column by a fraction.
#
# One would guess: x = 1.5 removes nothing, and x < 1.5 removes 1, as in any SQL.
# Seen: the fraction is cut off to the column's type: x = 1.5 removes the row 1, and x < 1.5
#   removes nothing, on 2026-11-29. QueryBuilder's SQL over the same table is right.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.3 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake


def left(rule):
    write_deltalake("table", pa.table({"x": pa.array([1, 2])}), mode="overwrite")
    table = DeltaTable("table")
    sql = f"select x from t where {rule}"
    selected = QueryBuilder().register("t", table).execute(sql).read_all()
    table.delete(rule)
    return table.to_pyarrow_table()["x"].to_pylist(), selected.num_rows


seen = {rule: left(rule) for rule in ("x = 1.5", "x < 1.5")}
print("left, and rows that a query selects:", seen)
assert seen["x = 1.5"] == ([2], 0), "the behaviour has changed"
assert seen["x < 1.5"] == ([1, 2], 1), "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# deltalake 1.6.6: DeltaTable.to_pyarrow_table(filters=...), and to_pyarrow_dataset().
#
# One would guess: a file whose statistics say nothing of a column is read, since any value may be
#   in it. Statistics are optional, and Spark writes none for booleans.
# Seen: none of its rows is found by a filter on that column, on 2026-11-29: the condition of the
#   file is "v >= null", as soon as another file has bounds for the column. SQL finds the rows.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.6 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

write_deltalake("t", pa.table({"id": [1], "v": [1.0]}))
# One file has statistics for the first column only.
key = "delta.dataSkippingNumIndexedCols"
DeltaTable("t").alter.set_table_properties({key: "1"})
write_deltalake("t", pa.table({"id": [2], "v": [2.0]}), mode="append")
DeltaTable("t").alter.set_table_properties({key: "32"})
table = DeltaTable("t")
found = table.to_pyarrow_table(filters=[("v", ">", 0.0)])["id"].to_pylist()
query = QueryBuilder().register("t", table).execute("SELECT id FROM t WHERE v > 0.0 ORDER BY id")
by_sql = [value.as_py() for value in query.read_all()["id"]]
print("filters:", found, "SQL:", by_sql)
assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2]
assert by_sql == [1, 2]
assert found == [1], "the behaviour has changed"
PYTHON

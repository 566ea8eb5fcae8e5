#!/usr/bin/env bash
# pyarrow 26.0.1: a filter while Parquet is read, over a row group with a NaN.
#
# One would guess: a filter finds the same rows while a file is read as afterwards in memory.
# Seen: of [1.0, NaN, 1.0] the filters is_nan(), x != 1.0 and not (x <= 1.0) find one row in memory
#   and none in the file, on 2026-11-29. Its statistics say that every value is 1.0, and the row
#   group is passed over.
# Source: run below; the Parquet format says of minimum and maximum: when looking for NaN values,
#   they should be ignored.
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

table = pa.table({"x": [1.0, float("nan"), 1.0]})
pq.write_table(table, "a.parquet")
file, x = ds.dataset("a.parquet"), ds.field("x")
for name, rule in {"is_nan": x.is_nan(), "!=": x != 1.0, "not <=": ~(x <= 1.0)}.items():
    counts = table.filter(rule).num_rows, file.to_table(filter=rule).num_rows
    print(name, "in memory and in the file:", counts)
    assert counts == (1, 0), "the behaviour has changed"
PYTHON

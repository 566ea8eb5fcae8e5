#!/usr/bin/env bash
# deltalake 1.6.3 (delta-rs): appending and merging doubles into a column of type long.
#
# One would guess: an error, as for a number that is too large for the column's type, a decimal with
#   more digits after the point, and text that is not a number.
# Seen: 1.7 is written as 1 and -1.7 as -1, without an error or a warning, on 2026-11-30.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.3 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def appended(name, before, after):
    write_deltalake(name, pa.table({"v": before}))
    try:
        write_deltalake(name, pa.table({"v": after}), mode="append")
    except Exception as error:
        return type(error).__name__
    return pa.table(DeltaTable(name).to_pyarrow_table())["v"].to_pylist()


kept = sorted(appended("doubles", [5], [1.7, -1.7]))
print("5, and then 1.7 and -1.7:", kept)
assert kept == [-1, 1, 5], "the behaviour has changed"
others = [
    appended("small", pa.array([5], pa.int8()), [300]),
    appended("decimals", [Decimal("1.23")], [Decimal("1.239")]),
    appended("texts", [5], ["x"]),
]
print("others:", others)
assert all(isinstance(answer, str) for answer in others)

merge = DeltaTable("doubles").merge(pa.table({"v": [5.9]}), "s.v > 5.5 and t.v = 5", "s", "t")
merge.when_matched_update_all().execute()
merged = sorted(pa.table(DeltaTable("doubles").to_pyarrow_table())["v"].to_pylist())
print("5 updated with 5.9:", merged)
assert merged == [-1, 1, 5], "the behaviour has changed"
PYTHON

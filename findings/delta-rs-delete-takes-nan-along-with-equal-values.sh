#!/usr/bin/env bash
# deltalake 1.6.3: delete() in a table where one value and a NaN share a file.
#
# One would guess: x = 1.0 is not true of NaN: the row stays; x != 1.0 is true of it: the row goes.
# Seen: delete('x = 1.0') over [1.0, NaN, 1.0] removes all three rows, and delete('x != 1.0') none,
#   on 2026-11-29: the file's bounds say that it has one value. With two values in the file both are
#   right.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.3 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

nan = float("nan")


def left(values, rule):
    write_deltalake("table", pa.table({"x": values}), mode="overwrite")
    table = DeltaTable("table")
    table.delete(rule)
    return sorted(str(x) for x in table.to_pyarrow_table()["x"].to_pylist())


one = left([1.0, nan, 1.0], "x = 1.0"), left([1.0, nan, 1.0], "x != 1.0")
two = left([1.0, nan, 2.0], "x = 1.0"), left([1.0, nan, 2.0], "x != 1.0")
print("one value:", one, " two values:", two)
assert one == ([], ["1.0", "1.0", "nan"]), "the behaviour has changed"
assert two[0] == ["2.0", "nan"], "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# pyiceberg 0.12.0: an integer column compared with a fraction.
#
# One would guess: x = 1.5 selects nothing, and x > 1.5 selects 2; or the literal is refused, as 1.5
#   is for a decimal column.
# Seen: the fraction is rounded to 2 first: x = 1.5 selects 2, x > 1.5 does not, and delete('x =
#   1.5') removes the row, on 2026-11-29.
# Source: run below; Java's Iceberg refuses the conversion of this literal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet "pyiceberg[sql-sqlite,pyarrow]==0.12.0" pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog

warnings.simplefilter("ignore")
catalog = InMemoryCatalog("local", warehouse=Path.cwd().as_uri())
catalog.create_namespace("db")


def table_of(column, name):
    made = catalog.create_table(f"db.{name}", schema=pa.schema([("x", column.type)]))
    made.append(pa.table({"x": column}))
    return made


def rows(table, **scan):
    return catalog.load_table(table.name()).scan(**scan).to_arrow()["x"].to_pylist()



values = pa.array([1, 2], pa.int32())
table = table_of(values, "a")
seen = {rule: rows(table, row_filter=f"x {rule} 1.5") for rule in ("=", "!=", ">", "<=")}
print(seen)
expected = {"=": [2], "!=": [1], ">": [], "<=": [1, 2]}
assert seen == expected, "the behaviour has changed"
table.delete("x = 1.5")
assert rows(table) == [1], "the behaviour has changed"
PYTHON

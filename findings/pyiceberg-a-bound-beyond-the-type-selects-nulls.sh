#!/usr/bin/env bash
# pyiceberg 0.12.0: a filter and a deletion with a bound that the column's type does not hold.
#
# One would guess: i < 3000000000 over an int column means the same as i < 2147483648 over a long
#   one: null is in neither.
# Seen: the filter becomes 'always true', and selects the null; delete() with it removes the row
#   with the null, on 2026-11-29. With i < 5 the null stays.
# Source: run below; SQL and Iceberg's own evaluators leave null out of a comparison.
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



values = pa.array([1, None, 2], pa.int32())
assert rows(table_of(values, "a"), row_filter="x < 5") == [1, 2]
selected = rows(table_of(values, "b"), row_filter="x < 3000000000")
near, beyond = table_of(values, "c"), table_of(values, "d")
near.delete("x < 5")
beyond.delete("x < 3000000000")
print("selected:", selected, " left:", rows(near), "and", rows(beyond))
assert selected == [1, None, 2], "the behaviour has changed"
assert (rows(near), rows(beyond)) == ([None], []), "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# pyiceberg 0.12.0: delete() with a comparison that all values of a file fulfil but a NaN.
#
# One would guess: the row with NaN stays, because no comparison with it is true.
# Seen: delete('x <= 2.0') over [1.0, NaN, 2.0] empties the table, on 2026-11-29: by its bounds the
#   file is dropped whole, since files written by pyiceberg have no count of NaN. Where the file has
#   to be rewritten (x <= 1.0) the NaN stays.
# Source: run below; the Iceberg specification has nan_value_counts, without which a file may hold
#   NaN.
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



values = pa.array([1.0, float("nan"), 2.0])
whole, part = table_of(values, "a"), table_of(values, "b")
whole.delete("x <= 2.0")
part.delete("x <= 1.0")
print("left:", rows(whole), "and", rows(part))
assert rows(whole) == [], "the behaviour has changed"
assert [str(value) for value in rows(part)] == ["nan", "2.0"], "the behaviour has changed"
PYTHON

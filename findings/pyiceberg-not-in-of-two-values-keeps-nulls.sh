#!/usr/bin/env bash
# pyiceberg 0.12.0: NOT IN with one value and with two, on a column with nulls.
#
# One would guess: rows with null are returned in both cases or in neither; SQL returns them in
#   neither.
# Seen: NOT IN (5) leaves the row with null out, as != does, and NOT IN (5, 6) returns it, on
#   2026-11-30: a set of one value becomes a comparison, and a larger one Arrow's is_in, which is
#   never null.
# Source: run below.
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
from pyiceberg.catalog.sql import SqlCatalog

warnings.simplefilter("ignore")
here = Path.cwd()
catalog = SqlCatalog("lake", uri=f"sqlite:///{here}/catalog.db", warehouse=f"file://{here}")
catalog.create_namespace("db")
rows = pa.table({"x": [1, None]})
table = catalog.create_table("db.t", schema=rows.schema)
table.append(rows)
found = {
    text: table.scan(text).to_arrow()["x"].to_pylist()
    for text in ("x != 5", "x NOT IN (5)", "x NOT IN (5, 6)")
}
print(found)
assert [*found.values()] == [[1], [1], [1, None]], "the behaviour has changed"
PYTHON

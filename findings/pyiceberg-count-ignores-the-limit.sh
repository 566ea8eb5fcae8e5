#!/usr/bin/env bash
# pyiceberg 0.12.0: count() of a scan with a limit.
#
# One would guess: it is the number of rows that to_arrow() of the same scan returns.
# Seen: it counts all rows that the filter selects, also with limit=0, on 2026-11-30.
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
rows = pa.table({"x": [1, 2, 3]})
table = catalog.create_table("db.t", schema=rows.schema)
table.append(rows)
for filters, limit, counted, read in (("x > 0", 0, 3, 0), ("x > 1", 1, 2, 1)):
    scan = table.scan(filters, limit=limit)
    found = scan.count(), scan.to_arrow().num_rows
    print(f"{filters}, limit {limit}: counted {found[0]}, read {found[1]}")
    assert found == (counted, read), "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# pyiceberg 0.12.0: append() to a table that is partitioned by a double, with 0.0 and -0.0.
#
# One would guess: two rows are in the table afterwards, in one partition or in two.
# Seen: four rows, on 2026-11-30: the zeros are two partitions, as the Iceberg specification says,
#   but the rows of each are selected by equality, and both zeros are equal. A table without
#   partitions gets two rows.
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
from pyiceberg.transforms import IdentityTransform

warnings.simplefilter("ignore")
here = Path.cwd()
catalog = SqlCatalog("lake", uri=f"sqlite:///{here}/catalog.db", warehouse=f"file://{here}")
catalog.create_namespace("db")
rows = pa.table({"x": [0.0, -0.0]})
plain = catalog.create_table("db.plain", schema=rows.schema)
plain.append(rows)
parts = catalog.create_table("db.parts", schema=rows.schema)
with parts.update_spec() as update:
    update.add_field("x", IdentityTransform())
parts.append(rows)
found = plain.scan().to_arrow().num_rows, parts.scan().to_arrow().num_rows
print("rows without and with a partition:", found)
assert found == (2, 4), "the behaviour has changed"
PYTHON

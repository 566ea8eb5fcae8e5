#!/usr/bin/env bash
# deltalake 1.6.6 (delta-rs): load_as_version() and restore() with a time before the first commit.
#
# One would guess: an error, as for a version that is not there, and as in Delta for Spark: "Cannot
#   time travel Delta table to the requested timestamp".
# Seen: the year 2000 is version 0 of a table that was made today, on 2026-11-30, and restore() with
#   it goes back to the first commit.
# Source: run below; the message is that of io.delta.spark's TimestampOutOfRangeException.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.6 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

write_deltalake("t", pa.table({"x": [1]}))
write_deltalake("t", pa.table({"x": [2]}), mode="append")
before = dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc)
table = DeltaTable("t")
table.load_as_version(before)
DeltaTable("t").restore(before)
left = pa.table(DeltaTable("t").to_pyarrow_table())["x"].to_pylist()
print("version in 2000:", table.version(), " restored:", left)
assert (table.version(), left) == (0, [1]), "the behaviour has changed"
try:
    DeltaTable("t").load_as_version(7)
except DeltaError as error:
    print("version 7:", error)
else:
    raise AssertionError("a version that is not there was loaded")
PYTHON

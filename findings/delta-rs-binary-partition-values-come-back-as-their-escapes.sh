#!/usr/bin/env bash
# deltalake 1.6.3: a table partitioned by a binary column.
#
# One would guess: the bytes come back as they were written.
# Seen: the two bytes 00 FF come back as twelve characters, a backslash and u0000, a backslash and
#   u00FF, on 2026-11-29: they are escaped for the log, as Delta's protocol asks, and not turned
#   back.
# Source: run below; Delta's protocol, 'Partition Value Serialization': binary is a string of
#   escaped binary values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.3 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

write_deltalake("table", pa.table({"p": [b"\x00\xff"], "a": [1]}), partition_by=["p"])
(seen,) = DeltaTable("table").to_pyarrow_table()["p"].to_pylist()
print(b"\x00\xff", "->", seen)
assert seen == rb"\u0000\u00FF", "the behaviour has changed"
PYTHON

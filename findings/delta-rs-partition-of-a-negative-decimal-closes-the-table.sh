#!/usr/bin/env bash
# deltalake 1.6.6 (delta-rs): rows with a negative decimal in the column of a partition.
#
# One would guess: the value is written as -1.10, or the rows are refused and the table stays as it
#   was.
# Seen: the log says "-1.-10", on 2026-11-30: both parts of the number have the sign. The append
#   raises an error after its commit is in the log, and from then on nothing opens the table, not
#   even to append 1.10 to it. A whole number, -1.00, works.
# Source: run below; Delta's protocol, 'Partition Value Serialization', has numbers as text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.6 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError


def rows(text):
    return pa.table({"x": [1], "g": pa.array([Decimal(text)], pa.decimal128(9, 2))})


def refused(action):
    try:
        action()
    except DeltaError as error:
        return str(error)
    return None


write_deltalake("t", rows("1.10"), partition_by="g")
write_deltalake("t", rows("-1.00"), mode="append")
assert DeltaTable("t").version() == 1
raised = refused(lambda: write_deltalake("t", rows("-1.10"), mode="append"))
log = Path("t/_delta_log/00000000000000000002.json").read_text()
(added,) = [line["add"] for line in map(json.loads, log.splitlines()) if "add" in line]
print("append:", raised)
print("log:", added["partitionValues"])
opened = refused(lambda: DeltaTable("t").to_pyarrow_table())
later = refused(lambda: write_deltalake("t", rows("1.10"), mode="append"))
print("read:", opened, "\nlater append:", later)
assert added["partitionValues"] == {"g": "-1.-10"}, "the behaviour has changed"
assert raised and opened and later, "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# pyarrow 26.0.1: times with an offset in JSON, without a schema.
#
# One would guess: timestamp[s, tz=UTC], as read_csv infers from the same text, or text: the
#   documentation has timestamp[s] for "YYYY-MM-DD" and "YYYY-MM-DD hh:mm:ss" only.
# Seen: timestamp[s] without a zone, moved to UTC, on 2026-11-30. A time with an offset and a local
#   time without one share the column, and nothing tells them apart. With half a second it is text.
# Source: run below; arrow.apache.org/docs/python/json.html, "Automatic Type Inference".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt
import io

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

times = ["2026-11-30T05:00:00+02:00", "2026-11-30T05:00:00"]
lines = "".join(f'{{"t": "{time}"}}\n' for time in times)
read = pa.json.read_json(io.BytesIO(lines.encode()))["t"]
print(read.type, read.to_pylist())
expected = [dt.datetime(2026, 11, 30, 3), dt.datetime(2026, 11, 30, 5)]
assert read.type == pa.timestamp("s"), "the behaviour has changed"
assert read.to_pylist() == expected, "the behaviour has changed"
csv = pa.csv.read_csv(io.BytesIO(f"t\n{times[0]}\n".encode()))
half = pa.json.read_json(io.BytesIO(b'{"t": "2026-11-30T05:00:00.5+02:00"}'))["t"]
print("half a second:", half.type)
assert half.type == pa.string()
print("CSV:", csv.schema.field("t").type)
assert csv.schema.field("t").type == pa.timestamp("s", "UTC")
PYTHON

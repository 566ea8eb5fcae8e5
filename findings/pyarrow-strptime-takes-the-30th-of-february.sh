#!/usr/bin/env bash
# pyarrow 26.0.1: compute.strptime of a day that its month does not have.
#
# One would guess: an error, or null with error_is_null=True, as the cast of the same text to a date
#   gives one.
# Seen: 2024-02-30 is 2024-03-01, and 2023-02-29 is 2023-03-01, on 2026-11-29, also with
#   error_is_null=True. Only a day above 31 is refused.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc

days = pa.array(["2024-02-30", "2023-02-29", "2024-04-31", "2024-01-32"])
times = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
seen = [str(time.date()) if time else None for time in times.to_pylist()]
print(days.to_pylist(), "->", seen)
assert seen == ["2024-03-01", "2023-03-01", "2024-05-01", None], "the behaviour has changed"
try:
    days.cast(pa.date32())
except pa.ArrowInvalid as error:
    print("cast:", error)
else:
    raise AssertionError("the behaviour has changed: the cast takes it")
PYTHON

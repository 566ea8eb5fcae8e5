#!/usr/bin/env bash
# pyarrow 26.0.1: pa.array and Table.from_pylist of dates and datetimes in one column.
#
# One would guess: timestamps, or an error, in whichever order they come. The same two values with
#   the datetime first are an error.
# Seen: if a date comes first, all become dates, and 05:30 is gone without an error, on 2026-11-30.
# Source: run below; github.com/apache/arrow/issues/41896, open, has it with an explicit date32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt

import pyarrow as pa

day, time = dt.date(2026, 11, 30), dt.datetime(2026, 11, 30, 5, 30)
array = pa.array([day, time])
table = pa.Table.from_pylist([{"t": day}, {"t": time}])
print(array.type, array.to_pylist(), table["t"].to_pylist())
assert array.to_pylist() == table["t"].to_pylist() == [day, day], "the behaviour has changed"
try:
    pa.array([time, day])
except pa.ArrowTypeError as error:
    print("datetime first:", error)
else:
    raise AssertionError("the other order is taken")
PYTHON

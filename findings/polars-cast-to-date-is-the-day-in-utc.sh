#!/usr/bin/env bash
# polars 2.1.0: a time with a zone cast to a date, also in SQL.
#
# One would guess: the day in the column's zone, as dt.date() gives, and as pyarrow's cast gives.
# Seen: the day in UTC: 22:00 in New York is tomorrow, on 2026-11-30. CAST(t AS DATE) in SQL and the
#   cast to a time likewise. A daily partition by it has other rows than one by dt.date().
# Source: run below; github.com/pola-rs/polars/issues/22864, open.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt

import polars as pl
import pyarrow as pa

evening = dt.datetime(2026, 12, 1, 3, tzinfo=dt.timezone.utc)
times = pl.Series("t", [evening]).dt.convert_time_zone("America/New_York")
today, tomorrow = dt.date(2026, 11, 30), dt.date(2026, 12, 1)
cast = times.cast(pl.Date).item()
sql = pl.DataFrame(times).sql("SELECT CAST(t AS DATE) FROM self").item()
print("shown as:", times.item(), " cast:", cast, " SQL:", sql)
assert (cast, sql) == (tomorrow, tomorrow), "the behaviour has changed"
assert times.dt.date().item() == today
arrow = pa.array([evening], pa.timestamp("us", "America/New_York")).cast(pa.date32())
assert arrow.to_pylist() == [today]
PYTHON

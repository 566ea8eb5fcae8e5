#!/usr/bin/env bash
# pyarrow 26.0.1: timestamps before 1970 cast to a coarser unit where loss is allowed.
#
# One would guess: the time is rounded down, as floor_temporal and the cast to a date do: half a
#   second before 1970 is in the last second of 1969.
# Seen: cast(safe=False) and Parquet's allow_truncated_timestamps return 1970-01-01 00:00:00, on
#   2026-11-30: they round towards zero, which moves times before 1970 forward.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

times = pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 500_000)])
fine = pa.table({"t": pa.array([-1], pa.timestamp("us"))})
pq.write_table(fine, "fine.parquet", coerce_timestamps="ms", allow_truncated_timestamps=True)
(cast,) = times.cast(pa.timestamp("s"), safe=False).to_pylist()
(written,) = pq.read_table("fine.parquet")["t"].to_pylist()
print("cast:", cast, " written:", written)
assert cast == written == dt.datetime(1970, 1, 1), "the behaviour has changed"
assert times.cast(pa.date32()).to_pylist() == [dt.date(1969, 12, 31)]
floor = pc.floor_temporal(times, unit="second").to_pylist()
assert floor == [dt.datetime(1969, 12, 31, 23, 59, 59)]
PYTHON

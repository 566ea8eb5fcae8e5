#!/usr/bin/env bash
# numpy 2.4.6: datetime64 values of two units compared.
#
# One would guess: 9999-12-31, which tables use for "no end", is after any time of this year, or an
#   error: the comparison needs a time that 64 bits of nanoseconds do not hold.
# Seen: it is before 2026 as soon as the other side has nanoseconds, and maximum() returns 2026, on
#   2026-11-30: both are cast to nanoseconds, which wrap round. With microseconds it is right.
# Source: run below; github.com/numpy/numpy/issues/16352, open, is about astype.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet numpy==2.4.6
venv/bin/python - <<'PYTHON'
import numpy as np

end = np.array(["9999-12-31"], "datetime64[D]")
now_ns, now_us = np.datetime64("2026-11-30", "ns"), np.datetime64("2026-11-30", "us")
before = bool((end < now_ns)[0])
latest = np.maximum(end, now_ns)[0]
print("9999 before 2026:", before, " the later one:", latest)
assert before and latest == now_ns, "the behaviour has changed"
assert (end > now_us)[0]
PYTHON

#!/usr/bin/env bash
# pyarrow 26.0.1: compute.drop_null of an array with run ends.
#
# One would guess: [1, 1, None, None] becomes [1, 1], as with any other layout, or the kernel is
#   missing, as that of filter() is.
# Seen: all four values come back, on 2026-11-29; is_valid() says of two that they are null.
#   Table.drop_null() keeps them, too.
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

runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1, None]))
left = pc.drop_null(runs).to_pylist()
print(runs.to_pylist(), "->", left)
assert left == [1, 1, None, None], "the behaviour has changed"
assert pc.is_valid(runs).to_pylist() == [True, True, False, False]
assert pa.table({"runs": runs}).drop_null().num_rows == 4, "the behaviour has changed"
PYTHON

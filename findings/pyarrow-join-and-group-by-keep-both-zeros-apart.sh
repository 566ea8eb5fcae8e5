#!/usr/bin/env bash
# pyarrow 26.0.1: Table.join and group_by with the keys 0.0 and -0.0.
#
# One would guess: they are one key: equal() says so of the two, and NaN, which equals nothing, is
#   one key here, too.
# Seen: the join finds no partner, and group_by makes two groups, on 2026-11-29.
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

assert pc.equal(pa.array([0.0]), pa.array([-0.0])).to_pylist() == [True]
left, right = pa.table({"k": [0.0], "a": [1]}), pa.table({"k": [-0.0], "b": [2]})
joined = left.join(right, "k", join_type="inner").num_rows
groups = pa.table({"k": [0.0, -0.0]}).group_by("k").aggregate([]).num_rows
nan = pa.table({"k": [float("nan")]})
print("zeros joined:", joined, " groups:", groups)
assert (joined, groups) == (0, 2), "the behaviour has changed"
assert nan.join(nan, "k", join_type="inner").num_rows == 1
PYTHON

#!/usr/bin/env bash
# pyarrow 26.0.1: Table.join_asof by an integer column that holds nulls.
#
# One would guess: a null matches nothing, as in Table.join, or other nulls at most; and it changes
#   nothing for the other keys.
# Seen: the key 0 matches rows whose key is null; and if the other key is null, the key 1 loses the
#   match that it has if the other key is 2, on 2026-11-30.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa


def joined(left, right):
    left = pa.table({"t": [1, 5], "k": pa.array(left, pa.int64())})
    right = pa.table({"t": [1, 4], "k": pa.array(right, pa.int64()), "v": [10, 40]})
    return left.join_asof(right, on="t", by="k", tolerance=-2)["v"].to_pylist()


assert joined([2, 1], [2, 1]) == [10, 40]
zeros, one = joined([0, 0], [None, None]), joined([None, 1], [None, 1])
print("0 by null:", zeros, " null and 1 by the same:", one)
assert (zeros, one[1]) == ([10, 40], None), "the behaviour has changed"
PYTHON

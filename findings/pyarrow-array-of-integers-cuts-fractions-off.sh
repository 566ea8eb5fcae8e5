#!/usr/bin/env bash
# pyarrow 26.0.1: pa.array, pa.scalar and Table.from_pylist with Python numbers and an integer type.
#
# One would guess: 1.7 is refused, as pa.array refuses it in a numpy array, as cast() does, and as
#   text, NaN and 1e300 are refused.
# Seen: 1.7 is 1, -1.7 is -1 and Decimal("2.7") is 2, without an error, on 2026-11-30.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 numpy==2.4.6
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import numpy as np
import pyarrow as pa

kind = pa.int64()
cut = pa.array([1.7, -1.7, Decimal("2.7")], kind).to_pylist()
rows = pa.Table.from_pylist([{"x": 1.7}], schema=pa.schema([("x", kind)]))["x"].to_pylist()
print("array:", cut, " rows:", rows, " scalar:", pa.scalar(1.7, kind))
assert (cut, rows) == ([1, -1, 2], [1]), "the behaviour has changed"
assert pa.scalar(1.7, kind).as_py() == 1, "the behaviour has changed"
others = (
    lambda: pa.array(np.array([1.7]), kind),
    lambda: pa.array([1.7]).cast(kind),
    lambda: pa.array([float("nan")], kind),
)
for refused in others:
    try:
        refused()
    except pa.ArrowInvalid as error:
        print("refused:", error)
    else:
        raise AssertionError("it was not refused")
PYTHON

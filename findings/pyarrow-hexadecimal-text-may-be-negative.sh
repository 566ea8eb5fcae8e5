#!/usr/bin/env bash
# pyarrow 26.0.1: hexadecimal numbers in text and in CSV.
#
# One would guess: if 0x1F is a number at all, 0xFFFF is 65,535, which is too large for int16, as
#   the text 65535 is.
# Seen: 0xFFFF is -1 in int16 and 65,535 in int32, and a column of CSV with 0xFFFFFFFFFFFFFFFF is
#   inferred to be int64 with -1, on 2026-11-30: digits that fill the type are its bits, with the
#   sign.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import io

import pyarrow as pa
import pyarrow.csv as pcsv

text = pa.array(["0xFFFF"])
small, large = text.cast(pa.int16()).to_pylist(), text.cast(pa.int32()).to_pylist()
table = pcsv.read_csv(io.BytesIO(b"id\n0xFFFFFFFFFFFFFFFF\n0x7FFFFFFFFFFFFFFF\n"))
print("int16:", small, " int32:", large, " CSV:", table["id"].to_pylist(), table["id"].type)
assert (small, large) == ([-1], [65535]), "the behaviour has changed"
assert table["id"].to_pylist() == [-1, 2**63 - 1], "the behaviour has changed"
for refused in ("65535", "0x1FFFF"):
    try:
        pa.array([refused]).cast(pa.int16())
    except pa.ArrowInvalid:
        continue
    raise AssertionError(refused)
PYTHON

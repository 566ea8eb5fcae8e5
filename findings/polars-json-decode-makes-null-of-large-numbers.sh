#!/usr/bin/env bash
# polars 2.1.0: str.json_decode with a type that the values do not fit.
#
# One would guess: an error, as it raises for text in a field of integers, and as read_ndjson()
#   raises for a fraction and for 18446744073709551616.
# Seen: a number beyond the type and a day that does not exist are null, and 1.7 is 1, on
#   2026-11-30.
# Source: run below; the documentation says that invalid JSON raises, and nothing of other values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0
venv/bin/python - <<'PYTHON'
import io

import polars as pl


def decoded(kind, text):
    (row,) = pl.Series([text]).str.json_decode(pl.Struct({"x": kind})).to_list()
    return row["x"]


seen = [
    decoded(pl.Int8, '{"x": 300}'),
    decoded(pl.Int64, '{"x": 18446744073709551616}'),
    decoded(pl.Date, '{"x": "2026-02-30"}'),
    decoded(pl.Int64, '{"x": 1.7}'),
]
print(seen)
assert seen == [None, None, None, 1], "the behaviour has changed"
for text in ('{"x": 1.7}', '{"x": 18446744073709551616}', '{"x": "a"}'):
    try:
        pl.read_ndjson(io.StringIO(text), schema={"x": pl.Int64})
    except pl.exceptions.ComputeError as error:
        print("read_ndjson:", str(error).splitlines()[0])
    else:
        raise AssertionError("read_ndjson took it")
PYTHON

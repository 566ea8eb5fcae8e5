#!/usr/bin/env bash
# fastavro 1.13.1: a reader's schema that differs from the file's in logical types only.
#
# One would guess: the reader's schema decides: a timestamp read as a long is a number, a long read
#   as a timestamp is a timestamp, and a date read as a timestamp is refused.
# Seen: each value has the writer's type, on 2026-11-30, although types without a logical type
#   follow the reader's schema: an int read as a double is a double.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastavro==1.13.1
venv/bin/python - <<'PYTHON'
import datetime as dt
import io

import fastavro


def record(kind):
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


def read(written, value, wanted):
    file = io.BytesIO()
    fastavro.writer(file, record(written), [{"a": value}])
    file.seek(0)
    (row,) = fastavro.reader(file, record(wanted))
    return row["a"]


time = {"type": "long", "logicalType": "timestamp-micros"}
date = {"type": "int", "logicalType": "date"}
moment = dt.datetime(2026, 11, 30, tzinfo=dt.timezone.utc)
found = read(time, moment, "long"), read("long", 5, time), read(date, moment.date(), time)
print(found)
assert found == (moment, 5, moment.date()), "the behaviour has changed"
assert isinstance(read("int", 1, "double"), float)
PYTHON

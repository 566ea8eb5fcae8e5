#!/usr/bin/env bash
# fastavro 1.13.1: a union of types of which an earlier one holds the value with a loss.
#
# One would guess: the branch that holds the value as it is: a datetime is a timestamp, and an
#   integer a long.
# Seen: the first branch that takes the value, on 2026-11-30: in [null, date, timestamp] the time of
#   day is gone, and in [float, long] 16777217 is 16777216.0. With the branches turned round, both
#   come back. [float, double] is looked after.
# Source: run below; github.com/fastavro/fastavro/pull/430 is about float and double only.
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


def written(union, value):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": union}]}
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"a": value}])
    file.seek(0)
    return next(fastavro.reader(file))["a"]


date = {"type": "int", "logicalType": "date"}
time = {"type": "long", "logicalType": "timestamp-micros"}
moment = dt.datetime(2026, 11, 30, 5, 30, tzinfo=dt.timezone.utc)
lost = written(["null", date, time], moment), written(["float", "long"], 16777217)
print(lost)
assert repr(lost) == repr((moment.date(), 16777216.0)), "the behaviour has changed"
assert written(["null", time, date], moment) == moment
assert written(["long", "float"], 16777217) == 16777217
assert written(["float", "double"], 0.1) == 0.1
PYTHON

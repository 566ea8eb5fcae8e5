#!/usr/bin/env bash
# fastavro 1.13.1: a reader's schema with fields that the file lacks, and their defaults.
#
# One would guess: a default becomes the same value as if the file contained it.
# Seen: it stays the JSON of the schema, on 2026-11-30: text instead of bytes, a number instead of a
#   timestamp, text instead of a decimal, and a record without the fields that have defaults.
# Source: run below; the Avro specification, "Complex Types": the default of bytes is text whose code
#   points are the bytes, and of a record an object.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastavro==1.13.1
venv/bin/python - <<'PYTHON'
import io

import fastavro


def read(kind, default):
    file = io.BytesIO()
    fields = [{"name": "a", "type": "int"}]
    fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [{"a": 1}])
    file.seek(0)
    fields = [*fields, {"name": "b", "type": kind, "default": default}]
    (row,) = fastavro.reader(file, {"type": "record", "name": "r", "fields": fields})
    return row["b"]


inner = {"type": "record", "name": "q", "fields": [{"name": "z", "type": "int", "default": 7}]}
decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
found = {
    "bytes": read("bytes", "\u00ff"),
    "time": read({"type": "long", "logicalType": "timestamp-micros"}, 0),
    "decimal": read(decimal, "\u0001"),
    "record": read(inner, {}),
}
print(found)
expected = {"bytes": "\u00ff", "time": 0, "decimal": "\u0001", "record": {}}
assert found == expected, "the behaviour has changed"
PYTHON

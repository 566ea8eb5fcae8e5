#!/usr/bin/env bash
# fastavro 1.13.1: writer() with values of another type than the schema's.
#
# One would guess: an error, as for a number in a field of text, and for text in a field of
#   integers.
# Seen: the text "false" is true, 1.7 is 1 in an int, "abc" is three texts in an array, and
#   2147483648 stays itself in an int, which has 32 bits, on 2026-11-30. validator=True refuses all.
# Source: run below; the documentation of writer() says of "validator": if true, validation will be
#   done on the records.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastavro==1.13.1
venv/bin/python - <<'PYTHON'
import io

import fastavro


def written(kind, value, **options):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"a": value}], **options)
    file.seek(0)
    return next(fastavro.reader(file))["a"]


texts = {"type": "array", "items": "string"}
cases = [
    ("boolean", "false", True),
    ("int", 1.7, 1),
    ("double", "1.5", 1.5),
    (texts, "abc", ["a", "b", "c"]),
    ("int", 2**31, 2**31),
]
for kind, value, expected in cases:
    found = written(kind, value)
    print(kind, repr(value), "->", repr(found))
    assert repr(found) == repr(expected), "the behaviour has changed"
    try:
        written(kind, value, validator=True)
    except fastavro.validation.ValidationError:
        continue
    raise AssertionError("the validator took it")
for kind, value in (("string", 5), ("int", "x")):
    try:
        written(kind, value)
    except (TypeError, ValueError, AttributeError) as error:
        print(kind, repr(value), "->", type(error).__name__)
    else:
        raise AssertionError("it was not refused")
PYTHON

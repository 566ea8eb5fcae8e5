#!/usr/bin/env bash
# pyarrow 26.0.1: list views with a null, cast to lists.
#
# One would guess: [[1], None, [2, 3]] is the same after the cast, as with lists and large lists.
# Seen: [[1], None, []] on 2026-11-29; the result has too few offsets, and no error says so. Only
#   validate() notices. flatten() together with list_value_length() gives the right values.
# Source: run below; valid input, made by pa.array.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc

values = [[1], None, [2, 3]]
views = pa.array(values, pa.list_view(pa.int32()))
assert views.to_pylist() == values
views.validate(full=True)

cast = views.cast(pa.list_(pa.int32()))
print("written:", values, " after the cast:", cast.to_pylist())
assert cast.to_pylist() == [[1], None, []], "the behaviour has changed"
try:
    cast.validate(full=True)
except pa.ArrowInvalid as error:
    print("validate():", error)
else:
    raise AssertionError("the behaviour has changed: the result is valid")

assert views.flatten().to_pylist() == [1, 2, 3]
assert pc.list_value_length(views).to_pylist() == [1, None, 2]
PYTHON

#!/usr/bin/env bash
# pyarrow 26.0.1: ipc.new_stream, of a dictionary whose values are a dictionary.
#
# One would guess: [70, 80] comes back, or the writer refuses the column, since the format has one
#   dictionary to a field. validate(full=True) finds nothing wrong with the array.
# Seen: [0, 1] comes back without an error, on 2026-11-29: the positions of the inner dictionary
#   were written in place of its values. With text, the whole stream cannot be read.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa

inner = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([70, 80]))
table = pa.table({"v": pa.DictionaryArray.from_arrays(pa.array([0, 1]), inner)})
table.validate(full=True)
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, table.schema) as writer:
    writer.write_table(table)
back = pa.ipc.open_stream(sink.getvalue()).read_all()["v"].to_pylist()
print(table["v"].to_pylist(), "->", back)
assert table["v"].to_pylist() == [70, 80]
assert back == [0, 1], "the behaviour has changed"
PYTHON

#!/usr/bin/env bash
# deltalake 1.6.3 (delta-rs): the change data feed of an update that sets a row to what it was.
#
# One would guess: the feed has an update_preimage and an update_postimage of that row, as after
#   merge(), or nothing.
# Seen: it has a delete and an insert of each row of the file, also of rows that the predicate does
#   not select, on 2026-11-30: the file is rewritten, and no change file says what changed.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet deltalake==1.6.3 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

feed = {"delta.enableChangeDataFeed": "true"}


def changes(name, change):
    write_deltalake(name, pa.table({"k": [1, 2], "v": [1, 2]}), configuration=feed)
    change(DeltaTable(name))
    rows = pa.table(DeltaTable(name).load_cdf(starting_version=1).read_all()).to_pylist()
    return sorted((row["k"], row["_change_type"]) for row in rows)


def merged(table):
    merge = table.merge(pa.table({"k": [1], "v": [1]}), "s.k = t.k", "s", "t")
    merge.when_matched_update_all().execute()


pair = [(1, "update_postimage"), (1, "update_preimage")]
assert changes("changed", lambda t: t.update({"v": "7"}, predicate="k = 1")) == pair
assert changes("merged", merged) == pair
same = changes("same", lambda t: t.update({"v": "1"}, predicate="k = 1"))
print(same)
expected = [(k, change) for k in (1, 2) for change in ("delete", "insert")]
assert same == expected, "the behaviour has changed"
PYTHON

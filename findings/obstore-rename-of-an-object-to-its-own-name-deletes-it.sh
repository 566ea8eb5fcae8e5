#!/usr/bin/env bash
# obstore 0.12.1: rename() of an object to the name that it has.
#
# One would guess: nothing changes, as with os.rename and with LocalStore.
# Seen: in a MemoryStore the object is gone, without an error, on 2026-11-30: it is copied, and then
#   the name that it had is deleted. copy() to the same name keeps it.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet obstore==0.12.1
mkdir files
venv/bin/python - <<'PYTHON'
from pathlib import Path

import obstore
from obstore.store import LocalStore, MemoryStore


def names(store):
    return [entry["path"] for entry in obstore.list(store).collect()]


memory, local = MemoryStore(), LocalStore(Path("files").resolve())
for store in (memory, local):
    obstore.put(store, "a", b"content")
    obstore.copy(store, "a", "a")
    assert names(store) == ["a"]
    obstore.rename(store, "a", "a")
print("memory:", names(memory), " local:", names(local))
assert (names(memory), names(local)) == ([], ["a"]), "the behaviour has changed"
PYTHON

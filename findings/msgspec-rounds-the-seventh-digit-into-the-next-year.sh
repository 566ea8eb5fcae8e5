#!/usr/bin/env bash
# msgspec 0.23.0: times with more than six digits of a second.
#
# One would guess: digits that a datetime cannot hold are dropped, as datetime.fromisoformat does, or
#   refused, as msgspec does with a number that an int cannot hold.
# Seen: they are rounded: 2026-12-31T23:59:59.9999999 becomes 2027-01-01T00:00:00, on 2026-11-30.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet msgspec==0.23.0
venv/bin/python - <<'PYTHON'
from datetime import datetime

import msgspec

text = "2026-12-31T23:59:59.9999999"
found, plain = msgspec.json.decode(f'"{text}"', type=datetime), datetime.fromisoformat(text)
print("msgspec:", found, " datetime:", plain)
assert found == datetime(2027, 1, 1), "the behaviour has changed"
assert plain == datetime(2026, 12, 31, 23, 59, 59, 999_999)
PYTHON

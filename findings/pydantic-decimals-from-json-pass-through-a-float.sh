#!/usr/bin/env bash
# pydantic 2.14.4: a field of type Decimal and a number in JSON.
#
# One would guess: the digits of the number, as msgspec gives them, since an integer and a number in
#   quotation marks keep theirs.
# Seen: 12345678901234567.89 becomes 12345678901234568, and 1.10 becomes 1.1, without an error, on
#   2026-11-30: the number is a float first. decimal_places=2 finds nothing wrong with it.
# Source: run below; github.com/pydantic/pydantic/issues/9180, open.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pydantic==2.14.4 msgspec==0.23.0
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import msgspec
from pydantic import BaseModel, Field


class Payment(BaseModel):
    amount: Decimal = Field(decimal_places=2)


def amount(text):
    return str(Payment.model_validate_json(f'{{"amount": {text}}}').amount)


long = "12345678901234567.89"
print(amount(long), amount("1.10"))
assert (amount(long), amount("1.10")) == ("12345678901234568", "1.1"), "the behaviour has changed"
assert amount(f'"{long}"') == long
assert amount("12345678901234567890") == "12345678901234567890"
assert str(msgspec.json.decode(long, type=Decimal)) == long
PYTHON

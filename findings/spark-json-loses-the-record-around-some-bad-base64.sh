#!/usr/bin/env bash
# Spark 4.3.0: JSON with a column of binary, mode PERMISSIVE, and a value that is no base64.
#
# One would guess: that field is null and the others are kept, as the documentation says of
#   PERMISSIVE ("sets malformed fields to null"), whatever is wrong with the value.
# Seen: so with "Z!==" and "Zab"; but with "Zé==" (a character beyond ASCII) and "Z" (one character
#   too many) all fields of the record are null, also those before it, on 2026-11-30. The parser
#   has stopped within the bytes of the character, or behind the quote, and goes on from there.
# Source: run below; https://spark.apache.org/docs/latest/sql-data-sources-json.html.
# Needs Java 17.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyspark==4.3.0
venv/bin/python - 2>/dev/null <<'PYTHON'
from pathlib import Path

from pyspark.sql import SparkSession

values = {"Zg==": "a", "Z!==": "b", "Zab": "c", "Zé==": None, "Z": None}
names = iter("abcde")
lines = [f'{{"name":"{next(names)}","data":"{value}"}}\n' for value in values]
Path("data.json").write_text("".join(lines), "utf-8")
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
schema = "name string, data binary, _corrupt_record string"
rows = spark.read.schema(schema).json("data.json").collect()
for line, row in zip(lines, rows, strict=True):
    print(line.strip(), "->", row["name"])
assert [row["name"] for row in rows] == list(values.values()), "the behaviour has changed"
assert [row["_corrupt_record"] is None for row in rows] == [True] + 4 * [False]
PYTHON

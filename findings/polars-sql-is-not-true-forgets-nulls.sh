#!/usr/bin/env bash
# polars 2.1.0: IS NOT TRUE and IS NOT FALSE in SQL.
#
# One would guess: flag IS NOT TRUE is true for null, as in the SQL standard and in DuckDB: it is
#   never null itself.
# Seen: it is null for null, as NOT flag is, so that WHERE leaves these rows out, on 2026-11-29;
#   IS NOT FALSE likewise.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0
venv/bin/python - <<'PYTHON'
import polars as pl

frame = pl.DataFrame({"flag": [True, None, False]})
for word, value, selected in (("TRUE", [False, None, True], [False]), ("FALSE", [True, None, False], [True])):
    seen = frame.sql(f"SELECT flag IS NOT {word} AS x FROM self")["x"].to_list()
    kept = frame.sql(f"SELECT * FROM self WHERE flag IS NOT {word}")["flag"].to_list()
    print(f"flag IS NOT {word}:", seen, "keeps", kept)
    assert (seen, kept) == (value, selected), "the behaviour has changed"
PYTHON

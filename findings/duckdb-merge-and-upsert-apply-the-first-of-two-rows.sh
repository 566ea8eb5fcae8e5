#!/usr/bin/env bash
# duckdb 2.0.1: MERGE INTO, and INSERT ... ON CONFLICT DO UPDATE, with two source rows for one key.
#
# One would guess: an error, as in PostgreSQL and delta-rs, or that the last row wins, as if there
#   were two statements.
# Seen: the first row wins, and the second is dropped without an error, on 2026-11-30. MERGE counts
#   two rows as merged; adding 5 and 7 to 0 gives 5.
# Source: run below; github.com/duckdb/duckdb/pull/18480 makes an upsert a MERGE from SELECT
#   DISTINCT ON the key; pull/24058 of July 2026 has an error for MERGE, which 2.0.1 does not raise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.1
venv/bin/python - <<'PYTHON'
import duckdb

con = duckdb.connect()
con.execute("CREATE TABLE keyed (k INTEGER PRIMARY KEY, v VARCHAR)")
con.execute("CREATE TABLE sums (k INTEGER, n INTEGER)")
con.execute("INSERT INTO sums VALUES (1, 0)")
for rows, kept in (("(1, 'old'), (1, 'new')", "old"), ("(1, 'new'), (1, 'old')", "new")):
    con.execute(f"INSERT INTO keyed VALUES {rows} ON CONFLICT DO UPDATE SET v = excluded.v")
    found = con.execute("FROM keyed").fetchall()
    print("upsert of", rows, "gives", found)
    assert found == [(1, kept)], "the behaviour has changed"
(counted,) = con.execute(
    "MERGE INTO sums USING (VALUES (1, 5), (1, 7)) s (k, n) ON sums.k = s.k "
    "WHEN MATCHED THEN UPDATE SET n = sums.n + s.n"
).fetchone()
(total,) = con.execute("SELECT n FROM sums").fetchone()
print("merge: rows", counted, "sum", total)
assert (counted, total) == (2, 5), "the behaviour has changed"
PYTHON

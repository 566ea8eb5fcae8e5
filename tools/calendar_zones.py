"""Writes the zones' part of the calendar's rebasing from the table in Spark's own package.

Run it when Spark's table changes; a test compares the two. For the zones that Spark knows, times of
the hybrid calendar differ from those of the proleptic Gregorian one by whole days, and by what
Java's older and newer zone rules disagree about; only the second part is written down.
"""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyspark

TARGET = Path(__file__).resolve().parent.parent / "reader/files/values/calendar_zones.txt"
HEAD = """\
# How times before 1901 in Java's older zone rules differ from those in its newer ones, from the
# table julian-gregorian-rebase-micros.json of Apache Spark (Apache License 2.0), by
# tools/calendar_zones.py. A line: the offset that the older rules take before 1900, what is added
# from the beginning on, then from when on which other amount, all in seconds; then the zones.
"""


def spark_table() -> list[dict[str, Any]]:
    """Spark's table, out of the package it is in."""
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-sql-api_*.jar")
    with zipfile.ZipFile(jar) as archive:
        found: list[dict[str, Any]] = json.loads(
            archive.read("julian-gregorian-rebase-micros.json")
        )
    return found


def lines(table: list[dict[str, Any]]) -> list[str]:
    """The table without what the calendars' own difference explains."""
    (plain,) = (record for record in table if record["tz"] == "UTC")
    days = len(plain["switches"])
    groups: dict[str, list[str]] = defaultdict(list)
    for record in table:
        shifts = {a - b for a, b in zip(record["switches"], plain["switches"], strict=False)}
        amounts = {a - b for a, b in zip(record["diffs"], plain["diffs"], strict=False)}
        assert len(shifts) == len(amounts) == 1, record["tz"]
        later = zip(record["switches"][days:], record["diffs"][days:], strict=True)
        tail = "".join(f" {start}:{amount}" for start, amount in later)
        groups[f"{-shifts.pop()} {amounts.pop()}{tail}"].append(record["tz"])
    return [f"{numbers} {' '.join(zones)}" for numbers, zones in groups.items()]


if __name__ == "__main__":
    TARGET.write_text(HEAD + "\n".join(lines(spark_table())) + "\n", encoding="utf-8")

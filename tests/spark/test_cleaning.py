"""cleanSource in Spark: every row arrives once, and only what was read is touched."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest


def names(root: Path) -> set[str]:
    found = [Path(folder) / name for folder, _, leaves in os.walk(root) for name in leaves]
    return {str(path.relative_to(root)) for path in found if not path.name.startswith(".")}


def report_of(query):
    report = json.loads(query.lastProgress.json)["sources"][0]["latestOffset"]
    return json.loads(report) if isinstance(report, str) else report


@pytest.mark.effect_of("cleanSource", "sourceArchiveDir")
@pytest.mark.spark
@pytest.mark.thorough("each mode has tests without Spark, with a death around each operation")
def test_each_mode_keeps_every_row_and_touches_only_what_is_complete(lake, spark, tmp_path):
    lakes = {}
    for mode in ("off", "delete", "archive"):
        root = tmp_path / mode
        root.mkdir()
        lakes[mode] = type(lake)(spark, root)
    for mode, lake in lakes.items():  # noqa: PLR1704 - one after the other
        lake.land("bad.json", range(0), folder="day=1").write_text("{\n")
        options = {
            "cleanSource": mode,
            "cleanSourceRetention": "0s",
            "cleanSourceWhileRetained": "true",
            "sourceArchiveDir": str(lake.source.parent / "old"),
            "maxFilesPerTrigger": "3",
            "mode": "FAILFAST",
            "onSplitError": "return",
        }
        runs = 1 if mode == "off" else 2
        for run in range(runs):
            for number in range(4):
                first = 100 * run + 10 * number
                lake.land(f"{run}{number}.json", range(first, first + 10), folder="day=1")
            report = report_of(lake.drain(**options))
        lost, doubled = lake.landed - lake.ingested(), lake.ingested() - lake.landed
        assert (lost, doubled) == (Counter(), Counter())
        whole = {f"day=1/{run}{number}.json" for run in range(runs) for number in range(4)}
        left, archived = names(lake.source), names(lake.source.parent / "old")
        if mode == "off":
            assert left == {*whole, "day=1/bad.json"}
            assert "cleaned" not in report
            continue
        # Of the last run the last batch is not known to be complete before the next one.
        assert {"day=1/bad.json"} < left
        assert len(left) <= 4
        assert report["cleaned"]["files"] >= 4
        assert report["cleaned"]["failing"] == 0
        assert archived == (whole - left if mode == "archive" else set())
        lake.drain(**options)
        assert names(lake.source) == {"day=1/bad.json"}

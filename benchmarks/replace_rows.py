"""A batch that replaces files of a Delta table, against MERGE by Delta's connector for Spark.

`python -m benchmarks replace --packages io.delta:delta-spark_4.1_2.13:4.4.0`, with Spark 4.1. The
table is partitioned by a column of the paths. Both have the same rows at the end of each turn.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from deltalake import DeltaTable

from pyspark_sluice import run
from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key

from .bench import Bench, Result

_DAYS, _HOURS, _ROWS, _CHANGED = 100, 100, 100, 10
_REPLACING = {"onOverwrite": "replace", "writeFileColumn": "file", "writePartitionBy": "day"}


def replacing(bench: Bench) -> Iterator[Result]:
    """10 of 10,000 files of a Delta table replaced; 10 new ones, if a query may replace or not."""
    with tempfile.TemporaryDirectory(prefix="sluice-replace-") as folder:
        yield from _Lake(bench, Path(folder)).results()


class _Lake:
    def __init__(self, bench: Bench, root: Path) -> None:
        self._bench, self._root, self._numbers = bench, root, iter(range(10**9))
        self._random = random.Random(7)
        self._files = [
            root / f"in/day={day}/{hour:03}.json" for day in range(_DAYS) for hour in range(_HOURS)
        ]

    def results(self) -> Iterator[Result]:
        """Each figure is a median over turns in which all take part."""
        for path in self._files:
            self._put(path)
        usual = {"onOverwrite": "reprocess", "writePartitionBy": "day"}
        self._run("replaced", _REPLACING)
        self._run("plain", usual)
        if self._bench.peers:
            shutil.copytree(self._root / "replaced", self._root / "merged")
        seconds: dict[str, list[float]] = {}
        for turn in range(self._bench.runs + 1):
            changed = self._random.sample(self._files, _CHANGED)
            for path in changed:
                self._put(path)
            turns = {"replaced": self._run("replaced", _REPLACING)}
            self._run("plain", usual)
            if self._bench.peers:
                turns["merged"] = self._merge(changed)
                assert self._ids("merged") == self._ids("replaced")
            new = [self._root / f"in/day={day}/new-{turn}.json" for day in range(_CHANGED)]
            for path in new:
                self._put(path)
            # In turns: the second one finds the files in the page cache.
            pair = [("new", "replaced", _REPLACING), ("plain", "plain", usual)]
            for name, table, options in pair if turn % 2 else pair[::-1]:
                turns[name] = self._run(table, options)
            if self._bench.peers:
                self._merge(new)
            for name, value in turns.items() if turn else ():
                seconds.setdefault(name, []).append(value)
        figures = {name: median(values) for name, values in seconds.items()}
        note = f"{_DAYS * _HOURS * _ROWS:,} rows, median of {self._bench.runs}, the batch"
        work = f"{_CHANGED} of {_DAYS * _HOURS:,} files of a Delta table replaced"
        yield Result(work, figures["replaced"], figures.get("merged"), "s", "MERGE by Delta", note)
        work = f"{_CHANGED} new files, onOverwrite=replace"
        yield Result(work, figures["new"], figures["plain"], "s", "onOverwrite=reprocess", note)

    def _put(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        first = next(self._numbers) * _ROWS
        rows = [{"id": first + row, "text": f"row {row}", "v": row / 7} for row in range(_ROWS)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def _run(self, table: str, options: dict[str, str]) -> float:
        more: dict[str, Any] = {"schema": "id long, text string, v double, day int", **options}
        place = str(self._root / "in"), f"delta:{self._root / table}"
        checkpoint = str(self._root / f"{table}-ck")
        report = run(place[0], to=place[1], checkpoint=checkpoint, format="json", **more)
        return sum(batch.seconds for batch in report.batches)

    def _merge(self, changed: Sequence[Path]) -> float:
        spark, began = self._bench.spark, time.monotonic()
        keys = [(f"{path.parent.name}/{path.name}", file_key(str(path))) for path in changed]
        columns = "id long, text string, v double"
        rows: Any = spark.read.schema(columns).option("basePath", str(self._root / "in"))
        rows = rows.json(list(map(str, changed))).selectExpr(
            "id",
            "text",
            "v",
            "cast(day AS int) day",
            r"regexp_extract(_metadata.file_path, '[^/]+/[^/]+$', 0) path",
        )
        names = spark.createDataFrame(keys, "path string, file string")
        rows.join(names, "path").drop("path").createOrReplaceTempView("changed")
        days = sorted({path.parent.name.partition("=")[2] for path in changed})
        files = ", ".join(f"'{key}'" for _, key in keys)
        spark.sql(
            f"MERGE INTO delta.`{self._root / 'merged'}` t USING changed s "
            "ON t.day = s.day AND t.file = s.file AND t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
            f"WHEN NOT MATCHED BY SOURCE AND t.day IN ({', '.join(days)}) AND t.file IN ({files}) "
            "THEN DELETE"
        )
        return time.monotonic() - began

    def _ids(self, table: str) -> list[int]:
        rows = DeltaTable(str(self._root / table)).to_pyarrow_table(columns=["id"])
        return sorted(rows["id"].to_pylist())

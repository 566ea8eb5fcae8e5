"""One query whose host changes between `sluice run` and Spark, and is killed all the time.

`python tests/spark/host_sweep.py --changes 20 --kills 200 --seed 7`, with `--s3` for files, state
and table in S3 on loopback. `--changes 0` stays with `sluice run`; with `--suffix .zip` the files
are archives that take several batches, and with `--columns` each file has a new column. The host,
one of its workers or all processes are killed, soon after a batch was begun. Exit status 0 only if
nothing is lost and nothing is duplicated, and if the table has all columns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_sluice.examples.demo.driver import Driver, descendants
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS
from pyspark_sluice.tests.spark.soak_grounds import Ground, InS3, OneMachine

_BY_SPARK = 2
"""Kills between two changes while Spark is the host, which takes long to start."""

_PLAIN, _MEMBER = ".json", 25
"""The suffix of files that are no archives, and the rows of a member at most."""


@dataclass
class Sweep:
    """One run, and its figures."""

    ground: Ground
    changes: int
    kills_wanted: int
    random: random.Random
    seconds: float = math.inf
    """After which nothing is killed any more."""
    suffix: str = _PLAIN
    """Of the files that land."""
    grows: bool = False
    """Each file has a new column, and the schema is inferred."""

    changed: int = 0
    files: int = 0
    landed: Counter[int] = field(default_factory=Counter)
    new_columns: dict[str, Counter[str]] = field(default_factory=dict)
    """Column -> its values, which are ids."""
    kills: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Kill each host in turn before and after it takes over, then read the rest."""
        began, turns = time.monotonic(), self.changes + 1
        spark_turns = turns // 2
        left = self.kills_wanted - _BY_SPARK * spark_turns
        embedded = max(2, math.ceil(left / (turns - spark_turns)))
        for turn in range(turns):
            host = ("embedded", "spark")[turn % 2]
            enough = self.kills.total() + (_BY_SPARK if host == "spark" else embedded)
            while self.kills.total() < enough and time.monotonic() - began < self.seconds:
                self._kill(host)
                self.changed = turn
        self._end(self._start("embedded"))

    def lost(self) -> int:
        """Rows that landed and are not in the table."""
        return (self.landed - self.ground.ids()).total()

    def duplicated(self) -> int:
        """Rows that are in the table too often."""
        return (self.ground.ids() - self.landed).total()

    def wrong_columns(self) -> list[str]:
        """Columns that the table lacks, has without reason, or has other values of."""
        columns = self.ground.columns()
        expected = {**self.new_columns, **{name: columns[name] for name in ("id", "text")}}
        return sorted(c for c in {*columns, *expected} if columns.get(c) != expected.get(c))

    def batches(self, log: str = "commits") -> int:
        """How many batches a log of the checkpoint has had."""
        names = (self.ground.root / "checkpoint" / log).glob("[0-9]*")
        return max((int(path.name) for path in names), default=-1) + 1

    def _start(self, host: str) -> Driver:
        query = self.ground.query
        limit = (
            {"maxFilesPerTrigger": "1"} if self.suffix == _PLAIN else {"maxRowsPerTrigger": "20"}
        )
        options = {**limit, **query["options"]}  # type: ignore[dict-item]
        command = [sys.executable, "-m", "pyspark_sluice", "run", str(query["source"])]
        command += ["--to", f"delta:{self.ground.table_url}"]
        command += (
            ["--option=schemaHints=id long"] if self.grows else ["--schema", "id long, text string"]
        )
        command += ["--checkpoint", str(self.ground.root / "checkpoint"), "--workers", "2"]
        command += [f"--option={name}={value}" for name, value in options.items()]
        command += ["--spark", "local[2,4]"] if host == "spark" else []
        return Driver(command, lambda _: None)

    def _land(self) -> None:
        first, self.files = self.landed.total(), self.files + 1
        counts = (1, 5, 50) if self.suffix == _PLAIN else (5, 50, 150)
        ids = range(first, first + self.random.choice(counts))
        new = f"c{self.files}"
        rows = [{"id": i, "text": f"row {i}", **({new: str(i)} if self.grows else {})} for i in ids]
        lines = [json.dumps(row).encode() + b"\n" for row in rows]
        members = {
            f"{at}.json": b"".join(lines[at : at + _MEMBER]) for at in range(0, len(lines), _MEMBER)
        }
        packed = PACKERS.get(self.suffix, lambda members: b"".join(members.values()))(members)
        self.ground.land(f"{first:06}{self.suffix}", packed)
        self.landed.update(ids)
        if self.grows:
            self.new_columns[new] = Counter(map(str, ids))

    def _kill(self, host: str) -> None:
        for _ in range(2):
            self._land()
        began = self.batches("offsets")
        driver = self._start(host)
        wait_until(lambda: self.batches("offsets") > began or driver.ended() is not None)
        time.sleep(self.random.uniform(0, 0.6))
        target = self.random.choice(("host", "worker", "group"))
        if driver.ended() is not None:
            self._end(driver)
            return
        self.kills[f"{host} {target}"] += 1
        if target == "worker" and (workers := self._workers(driver, host)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(workers), signal.SIGKILL)
            # The task runs again, and the run ends as if nothing had happened.
            self._end(driver)
        elif target == "host" and host == "embedded":
            workers = descendants(driver.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(driver.pid, signal.SIGKILL)
            # Its workers end by themselves, even in the middle of a task.
            wait_until(lambda: not any(Path(f"/proc/{pid}/status").exists() for pid in workers))
            driver.kill()
        else:
            driver.kill()

    def _workers(self, driver: Driver, host: str) -> list[int]:
        return (
            descendants(driver.pid)
            if host == "embedded"
            else self.ground.victims("worker", driver.pid)
        )

    def _end(self, driver: Driver) -> None:
        batches, status = -1, None
        while status is None:
            # A backlog takes long on a busy machine, but its batches end.
            before, batches = batches, self.batches()
            assert batches > before, f"no batch ended within {PATIENCE} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = driver.wait(PATIENCE)
        if status:
            message = f"the run ended with status {status}:\n" + "\n".join(driver.tail)
            raise AssertionError(message)


def main() -> int:
    """Run once, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--suffix", choices=[_PLAIN, *PACKERS], default=_PLAIN)
    parser.add_argument("--columns", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-hosts-") as home:
        ground = (InS3 if arguments.s3 else OneMachine)(Path(home) / "root", direct=True)
        began = time.monotonic()
        source = random.Random(arguments.seed)
        sweep = Sweep(ground, arguments.changes, arguments.kills, source, 60 * arguments.minutes)
        sweep.suffix, sweep.grows = arguments.suffix, arguments.columns
        try:
            sweep.run()
            lost, duplicated, wrong = sweep.lost(), sweep.duplicated(), sweep.wrong_columns()
        finally:
            ground.close()
        print(
            f"{ground.name}, {sweep.suffix}, seed {arguments.seed}: "
            f"{sweep.changed} changes of the host, {sweep.kills.total()} kills "
            f"{dict(sweep.kills)}, {sweep.batches()} batches, "
            f"{sweep.files} files, {sweep.landed.total()} rows, {lost} lost, "
            f"{duplicated} duplicated, {len(sweep.new_columns)} new columns, {wrong} wrong, "
            f"{time.monotonic() - began:.0f} s"
        )
    return 1 if lost or duplicated or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

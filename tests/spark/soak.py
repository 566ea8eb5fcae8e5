"""Soak: a real query under random SIGKILL, whose rows are compared with those that landed.

`make soak`, or `python tests/spark/soak.py --kills 50 --minutes 20 --seed 7`: a stream of Spark
whose sink fails at random, while files land at random. Its JVM, its driver-side Python and its
workers are killed. With `--cluster-share 0.5` half of the kills hit a query on a standalone cluster
of one master and two workers, with data and state in S3 on loopback; there executors and whole
workers are killed too.

With `--changes 20` the query writes a Delta table, and changes between `sluice run` and Spark. The
host, one of its workers or all processes are killed soon after a batch was begun. `--changes 0`
stays with `sluice run`; with `--suffix .zip` the files are archives that take several batches, and
with `--columns` each file has a new column.

Prints seed and figures; exit status 0 only if nothing is lost and nothing duplicated.
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
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_sluice.examples.demo.driver import Driver, descendants
from pyspark_sluice.examples.demo.watch import Watch
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS
from pyspark_sluice.tests.spark.soak_grounds import Cluster, InHdfs, InS3, OneMachine

PROGRAM = Path(__file__).parent / "programs" / "soak_query.py"
ENDS_AN_INCARNATION = ("jvm", "driver python")

_BY_SPARK = 2
"""Kills between two changes while Spark is the host, which takes long to start."""

_PLAIN, _MEMBER = ".json", 25
"""The suffix of files that are no archives, and the rows of a member at most."""


@dataclass
class Soak(ABC):
    """A query under kills, and its figures."""

    ground: OneMachine
    kills_wanted: int
    seed: int
    seconds: float = math.inf
    """After which nothing is killed any more."""
    suffix: str = _PLAIN
    """Of the files that land."""
    grows: bool = False
    """Each file has a new column, and the schema is inferred."""

    kills: Counter[str] = field(default_factory=Counter)
    drivers: list[Driver] = field(default_factory=list)
    failures: int = 0
    """Times the query ended by itself: failed sinks, and what the kills did to it."""
    files: int = 0
    landed: Counter[int] = field(default_factory=Counter)
    new_columns: dict[str, Counter[str]] = field(default_factory=dict)
    """Column -> its values, which are ids."""

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.random = random.Random(self.seed)
        self.watch = Watch(self.ground.root / "checkpoint")

    def run(self) -> bool:
        """Kill until enough, let the query read the rest, count; False if a figure is wrong."""
        try:
            self.kill_and_drain()
        finally:
            for driver in self.drivers[-1:]:
                driver.kill()
        return self._is_exact()

    @abstractmethod
    def kill_and_drain(self) -> None:
        """Start, land and kill."""

    @property
    def driver(self) -> Driver:
        """The newest one."""
        return self.drivers[-1]

    def batches(self) -> int:
        """How many batches have been committed."""
        return max(self.watch.commits(), default=-1) + 1

    def start(self, command: Sequence[str | Path]) -> None:
        """Start a driver with a command of Python."""
        self.drivers.append(Driver([sys.executable, *command], self._heard))

    def _heard(self, line: str) -> None:
        self.failures += line.startswith("query ended")

    def is_over(self, kills: int) -> bool:
        """True after so many kills, or if the time is up."""
        return self.kills.total() >= kills or time.monotonic() - self.began > self.seconds

    def kill(self, name: str, pids: Sequence[int]) -> None:
        """SIGKILL to one of these processes."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(pids), signal.SIGKILL)
            self.kills[name] += 1
            done = f"kill {self.kills.total()} of {self.kills_wanted}"
            print(f"{self.ground.name}: {done}: {name}", flush=True)

    def land(self) -> None:
        """Land one file of random size."""
        first, self.files = self.landed.total(), self.files + 1
        counts = (1, 5, 50, 400) if self.suffix == _PLAIN else (5, 50, 150)
        ids = range(first, first + self.random.choice(counts))
        new = f"c{self.files}"
        rows = [{"id": i, "text": f"row {i}", **({new: str(i)} if self.grows else {})} for i in ids]
        lines = [json.dumps(row).encode() + b"\n" for row in rows]
        members = {
            f"{at}.json": b"".join(lines[at : at + _MEMBER]) for at in range(0, len(lines), _MEMBER)
        }
        packed = PACKERS.get(self.suffix, lambda members: b"".join(members.values()))(members)
        self.ground.land(f"d{self.files % 4}/{first:06}{self.suffix}", packed)
        self.landed.update(ids)
        if self.grows:
            self.new_columns[new] = Counter(map(str, ids))

    def _is_exact(self) -> bool:
        columns = self.ground.columns()
        lost = (self.landed - columns["id"]).total()
        duplicated = (columns["id"] - self.landed).total()
        expected = {**self.new_columns, **{name: columns[name] for name in ("id", "text")}}
        wrong = sorted(c for c in {*columns, *expected} if columns.get(c) != expected.get(c))
        swept, unnamed = self.ground.unnamed() if self.ground.direct else (0, 0)
        print(
            f"{self.ground.name}, {self.suffix}, seed {self.seed}: {self.kills.total()} kills "
            f"{dict(self.kills)}, {len(self.drivers)} drivers, {self.failures} failed queries, "
            f"{self.ground.newest_epoch()} epochs, {self.batches()} batches, "
            f"{time.monotonic() - self.began:.0f} s\n"
            f"{self.files} files, {self.landed.total()} rows, {lost} lost, "
            f"{duplicated} duplicated, {len(self.new_columns)} new columns, {wrong} wrong, "
            f"{swept} data files swept, {unnamed} left in no table",
            flush=True,
        )
        is_enough = self.kills.total() >= self.kills_wanted
        return is_enough and not (lost or duplicated or wrong or unnamed)


@dataclass
class StreamSoak(Soak):
    """A stream of Spark, which a failing sink and kills end."""

    epochs_killed: int = 0
    turns: list[str] = field(default_factory=list)
    """What is killed before anything is killed again; the last one is next."""

    def kill_and_drain(self) -> None:
        stops = threading.Event()
        lander = threading.Thread(target=self._land_until, args=(stops,), daemon=True)
        lander.start()
        self._start()
        while not self.is_over(self.kills_wanted):
            self._kill_something()
        stops.set()
        lander.join(PATIENCE)
        (self.ground.root / "until").touch()
        self._drain()

    def _land_until(self, stops: threading.Event) -> None:
        moments = random.Random(self.seed)
        while not stops.wait(moments.expovariate(self.ground.files_a_second)):
            self.land()

    def _start(self) -> None:
        ground = self.ground
        query = {"master": ground.master, "source": ground.source, "options": ground.options}
        query["table"] = ground.table if ground.direct else ""
        seed = f"{self.seed}/{len(self.drivers)}"
        self.start([PROGRAM, str(ground.root), seed, json.dumps(query)])

    def _kill_something(self) -> None:
        # Start-up is not what is tested: wait for the incarnation that the last kill called for.
        wait_until(self._has_begun, lambda: "\n".join(["a new epoch", *self.driver.tail]))
        if not self.turns:
            targets = self.ground.targets
            self.turns = self.random.sample(targets, len(targets))
        name = self.turns.pop()
        time.sleep(self.random.uniform(0.0, 2.0))
        victims = self.ground.victims(name, self.driver.pid)
        if not victims:
            if self.driver.ended() is not None:
                self._start()
            return
        self.kill(name, victims)
        self.ground.repair()
        if name in ENDS_AN_INCARNATION:
            self.epochs_killed = self.ground.newest_epoch()
        if name == "jvm":
            self.driver.kill()
            self._start()

    def _has_begun(self) -> bool:
        time.sleep(0.2)  # Asking a bucket costs the query time.
        has_ended = self.driver.ended() is not None
        return has_ended or self.ground.newest_epoch() > self.epochs_killed

    def _drain(self) -> None:
        batches, deadline = 0, 0.0
        while "drained" not in self.driver.tail:
            if self.driver.ended() is not None and "drained" not in self.driver.tail:
                self._start()
            # What has piled up may take long; standing still may not.
            if (count := self.batches()) > batches or not deadline:
                batches, deadline = count, time.monotonic() + PATIENCE
            if time.monotonic() > deadline:
                message = "no batch for 600 s; last lines:\n" + "\n".join(self.driver.tail)
                raise TimeoutError(message)
            time.sleep(0.1)


@dataclass
class HostSoak(Soak):
    """Runs of one query without Spark and by Spark in turn."""

    changes: int = 0

    def kill_and_drain(self) -> None:
        turns = self.changes + 1
        spark_turns = turns // 2
        left = self.kills_wanted - _BY_SPARK * spark_turns
        embedded = max(2, math.ceil(left / (turns - spark_turns)))
        for turn in range(turns):
            host = ("embedded", "spark")[turn % 2]
            enough = self.kills.total() + (_BY_SPARK if host == "spark" else embedded)
            while not self.is_over(enough):
                self._kill_early(host)
        self._start("embedded")
        self._end()

    def _start(self, host: str) -> None:
        limit = "maxFilesPerTrigger=1" if self.suffix == _PLAIN else "maxRowsPerTrigger=20"
        options = [limit, *(f"{name}={value}" for name, value in self.ground.options.items())]
        command = ["-m", "pyspark_sluice", "run", self.ground.source]
        command += ["--to", f"delta:{self.ground.table}", "--workers", "2"]
        command += (
            ["--option=schemaHints=id long"] if self.grows else ["--schema", "id long, text string"]
        )
        command += ["--checkpoint", str(self.ground.root / "checkpoint")]
        command += [f"--option={option}" for option in options]
        self.start(command + (["--spark", self.ground.master] if host == "spark" else []))

    def _kill_early(self, host: str) -> None:
        for _ in range(2):
            self.land()
        began = max(self.watch.offsets(), default=-1)
        self._start(host)
        driver = self.driver
        wait_until(
            lambda: max(self.watch.offsets(), default=-1) > began or driver.ended() is not None
        )
        time.sleep(self.random.uniform(0, 0.6))
        if driver.ended() is not None:
            self._end()
            return
        is_embedded, target = host == "embedded", self.random.choice(("host", "worker", "group"))
        below = descendants(driver.pid)
        workers = below if is_embedded else self.ground.victims("worker", driver.pid)
        if target == "worker" and workers:
            self.kill(f"{host} worker", workers)
            # The task runs again, and the run ends as if nothing had happened.
            self._end()
        elif target == "host" and is_embedded:
            self.kill(f"{host} host", [driver.pid])
            # Its workers end by themselves, even in the middle of a task.
            wait_until(lambda: not any(Path(f"/proc/{pid}/status").exists() for pid in below))
            driver.kill()
        else:
            self.kills[f"{host} group"] += 1
            driver.kill()

    def _end(self) -> None:
        batches, status = -1, None
        while status is None:
            # A backlog takes long on a busy machine, but its batches end.
            before, batches = batches, self.batches()
            assert batches > before, f"no batch ended within {PATIENCE} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self.driver.wait(PATIENCE)
        if status:
            message = f"the run ended with status {status}:\n" + "\n".join(self.driver.tail)
            raise AssertionError(message)


def main() -> int:
    """Run, print the figures, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(16))
    parser.add_argument("--write-to", action="store_true", help="into a Delta table")
    parser.add_argument("--s3", action="store_true", help="files, state and table in S3")
    parser.add_argument(
        "--hdfs", action="store_true", help="state and data in HDFS, with failovers"
    )
    parser.add_argument("--cluster-share", type=float, default=0.0)
    parser.add_argument("--changes", type=int, help="between `sluice run` and Spark")
    parser.add_argument("--suffix", choices=[_PLAIN, *PACKERS], default=_PLAIN, help="--changes")
    parser.add_argument("--columns", action="store_true", help="new ones, with --changes")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    # If the soak is ended from outside, so is the cluster.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    on_cluster = round(arguments.kills * arguments.cluster_share)
    seconds = arguments.minutes * 60 / max(1, arguments.kills)
    alone = InHdfs if arguments.hdfs else InS3 if arguments.s3 else OneMachine
    is_exact = True
    with tempfile.TemporaryDirectory(prefix="sluice-soak-") as root:
        for kind, kills in ((alone, arguments.kills - on_cluster), (Cluster, on_cluster)):
            if not kills:
                continue
            direct = arguments.write_to or arguments.changes is not None
            with contextlib.closing(kind(Path(root) / kind.__name__, direct=direct)) as ground:
                figures = (ground, kills, arguments.seed, seconds * kills)
                if arguments.changes is None:
                    soak: Soak = StreamSoak(*figures)
                else:
                    soak = HostSoak(*figures, arguments.suffix, arguments.columns)
                    soak.changes = arguments.changes
                is_exact &= soak.run()
    return 0 if is_exact else 1


if __name__ == "__main__":
    sys.exit(main())

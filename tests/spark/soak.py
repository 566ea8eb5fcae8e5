"""Soak: a real query under random SIGKILL of its JVM, its driver-side Python and its workers.

`make soak`, or `python tests/spark/soak.py --kills 50 --minutes 20 --seed 7`. Files land at
random, the sink fails at random, and in the end every landed row has to be in the sink exactly
once. With `--cluster-share 0.5` half of the kills hit a query on a standalone cluster of one master
and two workers, with data and state in S3 on loopback; there executors and whole workers are killed
too. Prints seed and figures; exit status 0 only if nothing is lost and nothing duplicated.

Not here: where the query runs and where its files are (`soak_grounds.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.soak_grounds import Cluster, Ground, InHdfs, OneMachine

PROGRAM = Path(__file__).parent / "programs" / "soak_query.py"
ENDS_AN_INCARNATION = ("jvm", "driver python")


@dataclass
class Figures:
    """What a soak has done."""

    ground: str
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    failures: int = 0
    """Times the query ended by itself: failed sinks, and what the kills did to it."""

    landed: int = 0
    ingested: int = 0
    lost: int = 0
    duplicated: int = 0
    epochs: int = 0
    swept: int | None = None
    """Data files of attempts that lost."""

    unnamed: int = 0
    """Data files that no table names, after the sweep."""

    seconds: float = 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return (
            f"{self.ground}, seed {self.seed}: {self.kills.total()} kills ({kills}), "
            f"{self.starts} drivers, {self.failures} failed queries, {self.epochs} epochs, "
            f"{self.seconds:.0f} s\n"
            f"rows landed {self.landed}, rows ingested {self.ingested}, lost {self.lost}, "
            f"duplicated {self.duplicated}"
        ) + (
            ""
            if self.swept is None
            else f"\ndata files swept {self.swept}, left in no table {self.unnamed}"
        )


class Lander(threading.Thread):
    """Lands files of random size at random moments until told to stop."""

    def __init__(self, ground: Ground, seed: int) -> None:
        super().__init__(daemon=True)
        self._ground = ground
        self._random = random.Random(seed)
        self._stop_asked = threading.Event()
        self.rows = 0

    def run(self) -> None:
        number = 0
        while not self._stop_asked.wait(self._random.expovariate(self._ground.files_a_second)):
            count = self._random.choice((1, 5, 50, 400))
            ids = range(self.rows, self.rows + count)
            lines = [json.dumps({"id": i, "text": "x" * self._random.randrange(40)}) for i in ids]
            name = f"d{self._random.randrange(4)}/{number}.json"
            self._ground.land(name, ("\n".join(lines) + "\n").encode())
            self.rows += count
            number += 1

    def finish(self) -> None:
        """Nothing lands after this returns."""
        self._stop_asked.set()
        self.join(PATIENCE)


class Soak:
    """One run."""

    def __init__(self, ground: Ground, kills: int, seconds: float, seed: int) -> None:
        self._ground = ground
        self._root = ground.root
        self._kills = kills
        self._deadline = time.monotonic() + seconds
        self._random = random.Random(seed)
        self.figures = Figures(ground.name, seed)
        self._lander = Lander(ground, seed)
        self._epochs_killed = 0
        self._turns: list[str] = []
        """What is killed before anything is killed again; the last one is next."""

    def run(self) -> Figures:
        """Kill until enough, let it drain, count."""
        began = time.monotonic()
        self._lander.start()
        driver = self._start()
        try:
            while self.figures.kills.total() < self._kills and time.monotonic() < self._deadline:
                driver = self._kill_something(driver)
            self._lander.finish()
            (self._root / "until").touch()
            self._drain(driver)
        finally:
            driver.kill()
        self._count()
        self.figures.seconds = time.monotonic() - began
        return self.figures

    def _start(self) -> Driver:
        self.figures.starts += 1
        seed = f"{self.figures.seed}/{self.figures.starts}"
        arguments = [str(self._root), seed, json.dumps(self._ground.query)]
        return Driver([sys.executable, PROGRAM, *arguments], self._heard)

    def _heard(self, line: str) -> None:
        self.figures.failures += line.startswith("query ended")

    def _kill_something(self, driver: Driver) -> Driver:
        # Start-up is not what is tested: wait for the incarnation that the last kill called for.
        deadline = time.monotonic() + PATIENCE
        while self._ground.newest_epoch() <= self._epochs_killed and driver.ended() is None:
            if time.monotonic() > deadline:
                message = "no new epoch after 180 s; last lines:\n" + "\n".join(driver.tail)
                raise TimeoutError(message)
            time.sleep(self._ground.pause)
        if not self._turns:
            targets = self._ground.targets
            self._turns = self._random.sample(targets, len(targets))
        name = self._turns.pop()
        time.sleep(self._random.uniform(0.0, 2.0))
        victims = self._ground.victims(name, driver.pid)
        if not victims:
            return driver if driver.ended() is None else self._start()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._random.choice(victims), signal.SIGKILL)
            self.figures.kills[name] += 1
            done = f"kill {self.figures.kills.total()} of {self._kills}"
            print(f"{self._ground.name}: {done}: {name}", flush=True)
        self._ground.repair()
        if name in ENDS_AN_INCARNATION:
            self._epochs_killed = self._ground.newest_epoch()
        if name != "jvm":
            return driver
        driver.kill()
        return self._start()

    def _drain(self, driver: Driver) -> None:
        batches, deadline = 0, 0.0
        while "drained" not in driver.tail:
            if driver.ended() is not None and "drained" not in driver.tail:
                driver = self._start()
            # What has piled up may take long; standing still may not.
            if (count := self._ground.batches()) > batches or not deadline:
                batches, deadline = count, time.monotonic() + PATIENCE
            if time.monotonic() > deadline:
                message = "no batch for 600 s; last lines:\n" + "\n".join(driver.tail)
                raise TimeoutError(message)
            time.sleep(0.1)
        driver.kill()

    def _count(self) -> None:
        ingested = self._ground.ids()
        if self._ground.direct:
            self.figures.swept, self.figures.unnamed = self._ground.unnamed()
        self.figures.landed = self._lander.rows
        self.figures.ingested = ingested.total()
        self.figures.lost = len(set(range(self._lander.rows)) - ingested.keys())
        self.figures.duplicated = ingested.total() - len(ingested)
        self.figures.epochs = self._ground.newest_epoch()


def main() -> int:
    """Run, print the figures, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(16))
    parser.add_argument("--write-to", action="store_true", help="into a Delta table")
    parser.add_argument(
        "--hdfs", action="store_true", help="state and data in HDFS, with failovers"
    )
    parser.add_argument("--cluster-share", type=float, default=0.0)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    # If the soak is ended from outside, so is the cluster.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    on_cluster = round(arguments.kills * arguments.cluster_share)
    seconds = arguments.minutes * 60 / max(1, arguments.kills)
    figures = []
    with tempfile.TemporaryDirectory(prefix="sluice-soak-") as root:
        alone = InHdfs if arguments.hdfs else OneMachine
        for kind, kills in ((alone, arguments.kills - on_cluster), (Cluster, on_cluster)):
            if kills:
                with contextlib.closing(
                    kind(Path(root) / kind.__name__, direct=arguments.write_to)
                ) as ground:
                    soak = Soak(ground, kills, seconds * kills, arguments.seed)
                    figures.append(soak.run())
                    print(figures[-1], flush=True)
    kills = sum(one.kills.total() for one in figures)
    lost, doubled = (sum(getattr(one, name) for one in figures) for name in ("lost", "duplicated"))
    print(f"kills {kills} of {arguments.kills}, lost {lost}, doubled {doubled}")
    unnamed = sum(one.unnamed for one in figures)
    return int(bool(lost or doubled or unnamed) or kills < arguments.kills)


if __name__ == "__main__":
    sys.exit(main())

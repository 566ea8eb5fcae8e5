"""Soak: a real query under random SIGKILL of its JVM, its driver-side Python and its workers.

`make soak`, or `python tests/spark/soak.py --kills 50 --minutes 20 --seed 7`. Files land at
random, the sink fails at random, and in the end every landed row has to be in the sink exactly
once. Prints seed and figures; exit status 0 only if nothing is lost and nothing duplicated.
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

import pyarrow.parquet as pq

from pyspark_sluice.examples.demo.driver import Driver, descendants

PROGRAM = Path(__file__).parent / "programs" / "soak_query.py"
TARGETS = {
    "jvm": b"org.apache.spark.deploy.SparkSubmit",
    "driver python": b"python_streaming_source_runner",
    "worker": b"pyspark.daemon",
}
"""What is killed -> what its command line contains."""


@dataclass
class Figures:
    """What a soak has done."""

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
    seconds: float = 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return (
            f"seed {self.seed}: {self.kills.total()} kills ({kills}), {self.starts} drivers, "
            f"{self.failures} failed queries, {self.epochs} epochs, {self.seconds:.0f} s\n"
            f"rows landed {self.landed}, rows ingested {self.ingested}, lost {self.lost}, "
            f"duplicated {self.duplicated}"
        )


class Lander(threading.Thread):
    """Lands files of random size at random moments until told to stop."""

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self._directory = directory
        self._random = random.Random(seed)
        self._stop_asked = threading.Event()
        self.rows = 0

    def run(self) -> None:
        number = 0
        while not self._stop_asked.wait(self._random.expovariate(4)):
            count = self._random.choice((1, 5, 50, 400))
            folder = self._directory / f"d{self._random.randrange(4)}"
            folder.mkdir(parents=True, exist_ok=True)
            ids = range(self.rows, self.rows + count)
            lines = [json.dumps({"id": i, "text": "x" * self._random.randrange(40)}) for i in ids]
            hidden = folder / f".{number}"
            hidden.write_text("\n".join(lines) + "\n")
            os.replace(hidden, folder / f"{number}.json")
            self.rows += count
            number += 1

    def finish(self) -> None:
        """Nothing lands after this returns."""
        self._stop_asked.set()
        self.join(10)


class Soak:
    """One run."""

    def __init__(self, root: Path, kills: int, seconds: float, seed: int) -> None:
        self._root = root
        self._kills = kills
        self._deadline = time.monotonic() + seconds
        self._random = random.Random(seed)
        self.figures = Figures(seed)
        (root / "landing").mkdir()
        self._lander = Lander(root / "landing", seed)
        self._epochs_killed = 0

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
        arguments = [str(self._root), str(self.figures.seed), str(self.figures.starts)]
        return Driver([sys.executable, PROGRAM, *arguments], self._heard)

    def _heard(self, line: str) -> None:
        self.figures.failures += line.startswith("query ended")

    def _kill_something(self, driver: Driver) -> Driver:
        # Start-up is not what is tested: wait for the incarnation that the last kill called for.
        deadline = time.monotonic() + 60
        while self._epochs() <= self._epochs_killed and driver.ended() is None:
            if time.monotonic() > deadline:
                message = "no new epoch after 60 s; last lines:\n" + "\n".join(driver.tail)
                raise TimeoutError(message)
            time.sleep(0.05)
        name = self._random.choice(sorted(TARGETS))
        time.sleep(self._random.uniform(0.0, 2.0))
        victims = _processes(driver.pid, TARGETS[name])
        if not victims:
            return driver if driver.ended() is None else self._start()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._random.choice(victims), signal.SIGKILL)
            self.figures.kills[name] += 1
            print(f"kill {self.figures.kills.total()} of {self._kills}: {name}", flush=True)
        if name != "worker":
            self._epochs_killed = self._epochs()
        if name != "jvm":
            return driver
        driver.kill()
        return self._start()

    def _drain(self, driver: Driver) -> None:
        deadline = time.monotonic() + 180
        while "drained" not in driver.tail:
            if driver.ended() is not None and "drained" not in driver.tail:
                driver = self._start()
            if time.monotonic() > deadline:
                message = "not drained after 180 s; last lines:\n" + "\n".join(driver.tail)
                raise TimeoutError(message)
            time.sleep(0.1)
        driver.kill()

    def _count(self) -> None:
        ingested: Counter[int] = Counter()
        for folder in (self._root / "sink").iterdir():
            for path in folder.glob("*.parquet"):
                ingested.update(pq.read_table(path, columns=["id"]).column("id").to_pylist())
        self.figures.landed = self._lander.rows
        self.figures.ingested = ingested.total()
        self.figures.lost = len(set(range(self._lander.rows)) - ingested.keys())
        self.figures.duplicated = ingested.total() - len(ingested)
        self.figures.epochs = self._epochs()

    def _epochs(self) -> int:
        epochs = self._root / "checkpoint" / "sluice" / "source" / "epochs"
        names = epochs.glob("[0-9]*.json") if epochs.exists() else ()
        return max((int(path.stem) for path in names), default=0)


def _processes(driver: int, mark: bytes) -> list[int]:
    found = []
    for pid in descendants(driver):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def main() -> int:
    """Run, print the figures, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(16))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="sluice-soak-") as root:
        figures = Soak(Path(root), arguments.kills, arguments.minutes * 60, arguments.seed).run()
    print(figures)
    return int(bool(figures.lost or figures.duplicated) or figures.kills.total() < arguments.kills)


if __name__ == "__main__":
    sys.exit(main())

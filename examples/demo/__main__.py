"""Tells the story: land, ingest, kill in mid-batch, continue without Spark, compare."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.stores.open_store import open_store

from . import flights
from .comparison import compare
from .driver import Driver
from .lander import Lander
from .report.html_page import write_report
from .watch import Watch

HOME = Path(__file__).resolve().parent.parent.parent / "build" / "demo"

KILL_AFTER = 5
"""Batches done before the kill."""

TRIES = 5
"""Kills at most, until one has hit the middle of a batch."""

LANDING_SECONDS = 25.0
START_SECONDS = 300.0
DRAIN_SECONDS = 180.0


class Demo:
    """One run in one folder."""

    def __init__(self, home: Path, days: Sequence[tuple[str, bytes]]) -> None:
        self._home = home
        self._days = days
        self._landing = home / "landing"
        self._landing.mkdir()
        self._lander = Lander(self._landing, days, LANDING_SECONDS)
        self._watch = Watch(home / "checkpoint")
        self._started = time.monotonic()
        self._driver: Driver | None = None

    def run(self) -> bool:
        """True if every row that landed was ingested once."""
        try:
            self._lander.start()
            batch = self._kill_in_mid_batch()
            self._continue(batch)
        finally:
            self._lander.stop()
            if self._driver is not None:
                self._driver.kill()
        self._say("comparing what landed with what the data files hold, row for row")
        types = {name: pa.int32() for name in flights.INTEGERS}
        types |= {name: pa.string() for name in flights.TEXTS}
        verdict = compare(self._landing, self._home / "table", pa.schema(types))
        print(verdict, flush=True)
        return verdict.exact

    def _say(self, text: str) -> None:
        seconds = time.monotonic() - self._started
        print(f"{seconds:5.1f} s  [days landed: {self._lander.landed:3}]  {text}", flush=True)

    def _start(self) -> Driver:
        home = self._home
        command = [sys.executable, Path(__file__).with_name("query.py"), "--direct"]
        command += ["--landing", self._landing, "--sink", home / "table", "--home", home]
        command += ["--checkpoint", home / "checkpoint", "--until", home / "never"]
        command += ["--schema", flights.SCHEMA, "--files", "20"]
        self._driver = Driver([str(part) for part in command], self._heard)
        self._say(f"Spark started, process {self._driver.pid}")
        return self._driver

    def _heard(self, line: str) -> None:
        if line.startswith("batch"):
            self._say(line)

    def _kill_in_mid_batch(self) -> int:
        for _ in range(TRIES):
            driver = self._start()
            enough = len(self._watch.commits()) + KILL_AFTER
            self._until(driver, lambda e=enough: self._hit(e))
            driver.kill()
            # Only the files can tell whether the batch was still running when the signal arrived.
            batch = self._watch.running()
            if batch is not None:
                self._say(
                    f"SIGKILL to the whole driver in the middle of batch {batch}: Spark's offset "
                    f"log has {batch}, its commit log ends at {max(self._watch.commits())}"
                )
                return batch
            self._say("the kill fell between two batches; trying again")
        msg = f"none of {TRIES} kills hit the middle of a batch"
        raise SystemExit(msg)

    def _hit(self, enough: int) -> bool:
        return len(self._watch.commits()) >= enough and self._watch.running() is not None

    def _until(self, driver: Driver, condition: object) -> None:
        assert callable(condition)
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            if driver.ended() is not None or time.monotonic() > deadline:
                print("\n".join(driver.tail), file=sys.stderr)
                msg = "the query ended or hung; its last lines are above"
                raise SystemExit(msg)
            time.sleep(0.002)

    def _continue(self, batch: int) -> None:
        """Read the rest without Spark: first the batch that Spark began."""
        checkpoint = self._watch.of_batch(batch)
        assert checkpoint is not None
        if not self._lander.wait(LANDING_SECONDS * 4):
            msg = f"only {self._lander.landed} of {len(self._days)} files have landed"
            raise SystemExit(msg)
        readers, done = self._watch.assigned(checkpoint), self._watch.reader_commits(checkpoint)
        home, before = self._home, self._watch.epochs()
        command = [str(Path(sys.executable).with_name("sluice")), "run", str(self._landing)]
        command += ["--to", f"parquet:{home / 'table'}", "--checkpoint", str(home / "checkpoint")]
        command += ["--schema", flights.SCHEMA, "--option", "maxFilesPerTrigger=20"]
        self._say("no Spark from here on: sluice run with the same checkpoint")
        self._driver = Driver(command, self._heard)
        try:
            status = self._driver.wait(DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            status = -1
        if status != 0:
            print("\n".join(self._driver.tail), file=sys.stderr)
            msg = f"sluice run ended with status {status}; its last lines are above"
            raise SystemExit(msg)
        epoch = max(self._watch.epochs() - before)
        self._say(
            f"it began with batch {batch}, checkpoint {checkpoint.id} of epoch "
            f"{checkpoint.epoch}, in epoch {epoch}: {len(readers)} splits in {len(set(readers))} "
            f"partitions, of which {done} had committed under Spark"
        )


def main() -> int:
    """Run in `build/demo`, where everything stays until the next run."""
    print("preparing the flights of New York, 2013, as one JSON file for each day", flush=True)
    days = list(flights.days(flights.read()))
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    if not Demo(HOME, days).run():
        return 1
    print(next_steps(HOME), flush=True)
    return 0


def next_steps(home: Path) -> str:
    """Write the report, and say what there is to look at."""
    state = open_store(str(home / "checkpoint" / "sluice" / "source"))
    report = write_report(state, home / "report.html")
    # The environment is not active, so `sluice` alone would not be found.
    sluice, checkpoint = Path(sys.executable).with_name("sluice"), home / "checkpoint"
    return (
        f"\nthe table    {home / 'table'} (Parquet; its manifests are in _sluice)\n"
        f"the report   {report} (open it in a browser)\n"
        f"the state    {sluice} status {checkpoint}\n"
        f"the batches  {sluice} checkpoints {checkpoint}\n"
        f"the check    {sluice} verify {checkpoint}\n"
        "next         docs/getting-started.md, your own files; docs/index.md, everything else"
    )


if __name__ == "__main__":
    sys.exit(main())

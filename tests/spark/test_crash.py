"""SIGKILL to the whole driver at six moments, with a restart after each and a row-exact comparison.

The query is the demo's own program. An outside watcher reads nothing but files; it freezes the
driver when the moment seems to have come, looks again, and kills only if it really has. What an
earlier run has left is no moment of the present one: all but the first moment ask for a checkpoint
of the newest incarnation.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pyspark_sluice.examples.demo import query
from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.examples.demo.watch import Watch
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.moments import (
    FILES,
    ROWS,
    _files_read,
    between_tasks_and_commit,
    cut_ahead,
    discovering,
    idle,
    in_the_tasks,
    published_only,
)

pytestmark = pytest.mark.drivers


class Program:
    """The demo's query over a landing directory of its own."""

    def __init__(self, home: Path) -> None:
        self.landing = home / "landing"
        self.sink = home / "sink"
        self.home = home
        self.checkpoint = home / "checkpoint"
        self.until = home / "until"
        self.watch = Watch(self.checkpoint)
        self.driver: Driver | None = None
        self.landed = 0

    def start(self) -> Driver:
        command = [
            sys.executable,
            query.__file__,
            "--files",
            "6",
            "--schema",
            "id long, text string",
        ]
        for name in ("landing", "sink", "checkpoint", "until", "home"):
            command += [f"--{name}", str(getattr(self, name))]
        self.driver = Driver(command, lambda line: None)
        return self.driver

    def land(self, files: int) -> None:
        for number in range(self.landed, self.landed + files):
            rows = [{"id": number * ROWS + i, "text": f"row {i}"} for i in range(ROWS)]
            hidden = self.landing / f"d{number % 7:03}" / f".{number}.json"
            hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
            hidden.rename(hidden.with_name(f"{number}.json"))
        self.landed += files

    def kill_when(self, moment) -> None:
        driver = self.start()
        now = time.monotonic()
        deadline, look = now + PATIENCE, now
        while (now := time.monotonic()) < deadline:
            assert driver.ended() is None, "\n".join(driver.tail)
            if moment(self.watch):
                driver.freeze()
                hit = moment(self.watch)
                if hit:
                    driver.kill()
                    assert moment(self.watch), "something moved after the driver was frozen"
                    return
                driver.thaw()
            if moment not in (idle, discovering) and now > look + 0.5:
                look = now
                # On a busy machine the moment may have passed unseen in every batch.
                if self.watch.running() is None and _files_read(self.watch) == self.landed:
                    self.land(FILES)
            # Starting Spark takes seconds, in which watching closely would only slow it down.
            close = self.watch.epochs() and moment is not idle
            time.sleep(0.001 if close else 0.02)
        pytest.fail(f"{moment.__name__} never came about\n" + "\n".join(driver.tail))

    def drain(self) -> None:
        self.until.touch()
        driver = self.start()
        assert driver.wait(PATIENCE) == 0, "\n".join(driver.tail)


@pytest.fixture
def program(tmp_path):
    made = Program(tmp_path)
    # Empty directories make the listing long enough to be hit.
    for number in range(400):
        (made.landing / f"d{number:03}").mkdir(parents=True)
    yield made
    if made.driver is not None:
        made.driver.kill()


MOMENTS = [discovering, idle, cut_ahead, published_only, in_the_tasks, between_tasks_and_commit]


def _name(moments) -> str:
    return moments[0].__name__ if len(moments) == 1 else "one after another"


@pytest.mark.parametrize(
    "moments",
    [
        MOMENTS,
        *(
            pytest.param([moment], marks=pytest.mark.thorough("the moments in turn"))
            for moment in MOMENTS
        ),
    ],
    ids=_name,
)
def test_kills_lose_nothing_and_double_nothing(spark, program, moments):
    for moment in moments:
        # A first discovery takes milliseconds: too short to be hit. One that finds nothing goes on.
        if moment is not discovering:
            program.land(FILES)
        program.kill_when(moment)
    program.land(FILES if program.landed == 0 else 1)
    program.drain()
    found = spark.read.parquet(str(program.sink)).select("id", "text").collect()
    expected = {(n * ROWS + i, f"row {i}") for n in range(program.landed) for i in range(ROWS)}
    assert Counter(map(tuple, found)) == Counter(expected)

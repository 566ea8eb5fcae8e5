"""SIGKILL to the whole host at moments, with a restart after each and a row-exact comparison.

Under Spark the query is the demo's own program, and without Spark `sluice run`. An outside watcher
reads nothing but files; it freezes the host when the moment seems to have come, looks again, and
kills only if it really has. What an earlier run has left is no moment of the present one: all but
the first moment ask for a checkpoint of the newest incarnation.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice.examples.demo import query
from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.examples.demo.watch import Checkpoint, Watch
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.spark_sink import rows_of_sink

pytestmark = pytest.mark.drivers

SCHEMA = "id long, text string"
FILES = 24
"""Four batches: a moment that needs the third one has two to come in."""

ROWS = 25


def discovering(watch: Watch) -> bool:
    """An incarnation of the coordinator has begun and has not published anything yet."""
    # A kill within Spark's own write of its first offset leaves a temporary file, for which Spark
    # then refuses the checkpoint directory; no source can help that.
    epochs = watch.epochs()
    nothing = all(c.epoch != max(epochs) for c in watch.checkpoints())
    return bool(epochs) and nothing and not watch.writing_offset()


def cut_ahead(watch: Watch) -> bool:
    """Two checkpoints are in flight: a batch runs, and the one after it is durable already."""
    batch = watch.running()
    return batch is not None and batch > 1 and _is_ahead(watch)


def published_only(watch: Watch) -> bool:
    """Spark has finished a batch; the next one is durable, and not in the offset log."""
    return watch.running() is None and len(watch.offsets()) > 2 and _is_ahead(watch)


def _is_ahead(watch: Watch) -> bool:
    newest = watch.checkpoints()[-1]
    return watch.of_batch(max(watch.offsets())) != newest and _is_new(watch, newest)


def _is_new(watch: Watch, checkpoint: Checkpoint) -> bool:
    """The newest incarnation of the coordinator has written it."""
    return checkpoint.epoch == max(watch.epochs())


def in_the_tasks(watch: Watch) -> bool:
    """One task of the running batch has acknowledged, another has not."""
    done, of = _tasks(watch)
    return 0 < done < of


def between_tasks_and_commit(watch: Watch) -> bool:
    """Every task of the running batch has acknowledged, and Spark has not committed it."""
    done, of = _tasks(watch)
    return 0 < done == of


def idle(watch: Watch) -> bool:
    """Spark has committed everything that there was to read, and has begun nothing since."""
    done = watch.of_batch(max(watch.commits())) if watch.commits() else None
    if done is None or not _is_new(watch, done):
        return False
    return watch.running() is None and _files_read(watch) % FILES == 0


def _files_read(watch: Watch) -> int:
    """In batches of Spark; without checkpoints that died with their driver."""
    batches = [watch.of_batch(batch) for batch in watch.offsets()]
    return sum(len(watch.assigned(checkpoint)) for checkpoint in batches if checkpoint)


def _tasks(watch: Watch) -> tuple[int, int]:
    batch = watch.running()
    checkpoint = None if batch is None or batch < 2 else watch.of_batch(batch)
    if checkpoint is None or not _is_new(watch, checkpoint):
        return 0, 0
    return watch.reader_commits(checkpoint), len(set(watch.assigned(checkpoint)))


class Program:
    """A query over a landing directory of its own."""

    def __init__(self, home: Path, folders: int) -> None:
        self.landing = home / "landing"
        # Empty ones make the listing long enough to be hit.
        for number in range(folders):
            (self.landing / f"d{number:03}").mkdir(parents=True)
        self.sink = home / "sink"
        self.home = home
        self.checkpoint = home / "checkpoint"
        self.watch = Watch(self.checkpoint)
        self.driver: Driver | None = None
        self.landed = 0

    def command(self, *, ends: bool) -> list[str]:
        raise NotImplementedError

    def in_sink(self) -> pa.Table:
        raise NotImplementedError

    def start(self, *, ends: bool = False) -> Driver:
        self.driver = Driver([sys.executable, *self.command(ends=ends)], lambda line: None)
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
        driver = self.start(ends=True)
        assert driver.wait(PATIENCE) == 0, "\n".join(driver.tail)


class UnderSpark(Program):
    """The demo's program: rows of a DataFrame, into Spark's own Parquet sink."""

    def command(self, *, ends):
        until = self.home / "until"
        if ends:
            until.touch()
        places = {"landing": self.landing, "sink": self.sink, "checkpoint": self.checkpoint}
        places |= {"until": until, "home": self.home}
        named = [f"--{name}={place}" for name, place in places.items()]
        return [query.__file__, "--files=6", f"--schema={SCHEMA}", *named]

    def in_sink(self):
        return rows_of_sink(self.sink)


class WithoutSpark(Program):
    """`sluice run`: its worker processes write the files of a Delta table."""

    def command(self, *, ends):
        places = [str(self.landing), f"--to=delta:{self.sink}", f"--checkpoint={self.checkpoint}"]
        how = ["--once"] if ends else ["--every=100ms"]
        limit = ["--option=maxFilesPerTrigger=6", "--option=discoveryInterval=200ms"]
        return [
            *("-m", "pyspark_sluice", "run", *places, f"--schema={SCHEMA}", "--workers=2"),
            *(*limit, *how),
        ]

    def in_sink(self):
        return DeltaTable(str(self.sink)).to_pyarrow_table()


IN_SPARK_THOROUGHLY = pytest.mark.thorough("without Spark each moment is met, by the same files")


@pytest.mark.parametrize(
    ("host", "moments"),
    [
        pytest.param(
            WithoutSpark,
            [discovering, idle, cut_ahead, published_only, in_the_tasks, between_tasks_and_commit],
            id="without Spark",
        ),
        pytest.param(UnderSpark, [in_the_tasks], id="Spark, in the tasks"),
        pytest.param(
            UnderSpark,
            [cut_ahead, published_only, between_tasks_and_commit],
            marks=IN_SPARK_THOROUGHLY,
            id="Spark, around a batch",
        ),
    ],
)
def test_kills_lose_nothing_and_double_nothing(tmp_path, host, moments):
    program = host(tmp_path, folders=400 if discovering in moments else 7)
    try:
        for moment in moments:
            # A first discovery takes milliseconds: too short to be hit. One that finds nothing
            # goes on.
            if moment is not discovering:
                program.land(FILES)
            program.kill_when(moment)
        program.land(1)
        program.drain()
    finally:
        if program.driver is not None:
            program.driver.kill()
    rows = program.in_sink().select(["id", "text"]).to_pylist()
    expected = {(n * ROWS + i, f"row {i}") for n in range(program.landed) for i in range(ROWS)}
    assert Counter((row["id"], row["text"]) for row in rows) == Counter(expected)

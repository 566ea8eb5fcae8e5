"""The coordinator with its real threads, over a real directory: what the simulation cannot turn."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of, splits_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.open_store import LocalStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.reader.task import Assignment, Attempt, ReaderTask
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.opened import opened
from pyspark_sluice.tests.protocol.row_reader import reader_maker, rows_in
from pyspark_sluice.tests.protocol.rows import Ledger, LedgerEnumerator, Row, RowSource, World

FILES = 150
SETTINGS = CoordinatorSettings(
    limits=BatchLimits(bytes=12),
    parallelism=3,
    background_interval=0.001,
    discovery_timeout=20.0,
    retained_checkpoints=5,
    deltas_per_base=3,
)


class Query:
    """One query whose driver is replaced now and then; the old one finds out for itself."""

    def __init__(self, directory):
        self.directory = directory
        self.world = World()
        self.sink: Counter[Row] = Counter()
        self.told: list[str] = []
        self.start = NO_CHECKPOINT
        self.batches = 0
        self.drivers: list[Coordinator[FileSplit, Ledger]] = []
        self.replace_driver()

    def replace_driver(self):
        store = LocalStateStore(self.directory)
        self.drivers.append(Coordinator(RowSource(self.world), store, SETTINGS))

    def run_batch(self, pool):
        """False if there is nothing to read."""
        driver = self.drivers[-1]
        end = driver.latest(self.start)
        if end == self.start:
            return False
        (checkpoint,) = driver.assignments(self.start, end)
        serializer = FileSplitSerializer()
        shares = {r: splits_of(checkpoint, r, serializer) for r in readers_of(checkpoint)}
        for task in [pool.submit(self._read, end, reader, of) for reader, of in shares.items()]:
            name, rows = task.result(PATIENCE)
            self.told.append(name)
            self.sink.update(rows)
        self.start = end
        self.batches += 1
        driver.commit(end)
        if self.batches % 20 == 0:
            self.replace_driver()
        return True

    def _read(self, ref, reader, splits):
        name = f"{ref.name}/{reader}"
        commits = ReaderCommits(LocalStateStore(self.directory))
        task = ReaderTask(
            reader_maker((), name), FileSplitSerializer(), commits, frozenset({"told"}), False
        )
        batches = list(task.read(Assignment(ref, reader, splits), Attempt()))
        return name, [row for batch in batches for row in rows_in(batch)]


def test_rows_and_events_are_exact_while_files_land_and_all_threads_run(tmp_path):
    query, landed = Query(str(tmp_path)), threading.Event()

    def land():
        for number in range(FILES):
            query.world.land(number % 9 + 1, number)
            time.sleep(0.002)
        landed.set()

    threading.Thread(target=land, daemon=True).start()
    deadline = time.monotonic() + PATIENCE
    try:
        with ThreadPoolExecutor(3) as pool:
            while len(query.sink) < len(query.world.rows()) or not landed.is_set():
                if not query.run_batch(pool):
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
        assert query.sink == Counter(query.world.rows())
        assert query.batches > 20
        driver = query.drivers[-1]
        assert driver.latest(query.start) == query.start
        enumerator = opened(driver).enumerator
        assert isinstance(enumerator, LedgerEnumerator)
        assert sorted(enumerator.told) == sorted(query.told)
    finally:
        for driver in query.drivers:
            driver.close()

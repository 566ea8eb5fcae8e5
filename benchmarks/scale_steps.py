"""What is measured of the state, over a made-up file system of any size and without Spark."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
from fsspec.spec import AbstractFileSystem
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.stores.open_store import StorageStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files.discovery.api import FoundFiles
from pyspark_sluice.tests.patience import wait_until

BATCH = 100_000
"""Files in a batch while the first listing is drained."""


MORE = 1_700_000
"""Files that are listed on top of all others."""


NEW = 1_000
"""Files that are new in each checkpoint after it."""


_IN_DIRECTORY = 1_000
"""What stores list at a time."""


_PATIENCE = 3600.0
"""Seconds; the bound of waits."""


_ROUND = 0.2
"""Seconds between two looks of the background at what is due."""


_IN_LARGE_DIRECTORY = 10_000
"""What a directory of a file system may hold."""


class MadeUpFiles(AbstractFileSystem):  # type: ignore[misc]
    """`made-up://<n>/`: n files of 100 bytes in directories; more appear on demand."""

    protocol = "made-up"
    cachable = False
    extra = 0
    """Files that have appeared since."""
    in_directory = _IN_DIRECTORY

    @override
    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        root, _, leaf = self._strip_protocol(path).strip("/").partition("/")
        found = self._directories(root) if not leaf else self._files(root, leaf)
        return found if detail else [entry["name"] for entry in found]

    def _directories(self, root: str) -> list[dict[str, Any]]:
        names = [f"d{at:05d}" for at in range(-(-int(root) // self.in_directory))]
        names += ["new"] if MadeUpFiles.extra else []
        return [{"name": f"{root}/{name}", "size": 0, "type": "directory"} for name in names]

    def _files(self, root: str, leaf: str) -> list[dict[str, Any]]:
        if leaf == "new":
            first, count = int(root), MadeUpFiles.extra
        else:
            first = int(leaf[1:]) * self.in_directory
            count = min(self.in_directory, int(root) - first)
        return [
            {
                "name": f"{root}/{leaf}/year=2026/part-{at:010d}-of-a-usual-length.json",
                "size": 100,
                "type": "file",
                "mtime": 1_700_000_000 + at,
            }
            for at in range(first, first + count)
        ]

    @override
    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": self._strip_protocol(path), "size": 0, "type": "directory"}


class Counting(StorageStateStore):
    """Counts what is written to it."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.written: dict[str, int] = {}

    @override
    def publish(self, name: str, data: bytes) -> None:
        kind = name.partition("/")[0]
        self.written[kind] = self.written.get(kind, 0) + len(data)
        super().publish(name, data)


class Driver:
    """One process of a query, without Spark: every batch counts as read."""

    def __init__(
        self, files: int, directory: str, limit: int, *, bounded: bool, **more: str
    ) -> None:
        fsspec.register_implementation("made-up", MadeUpFiles, clobber=True)
        options = parse_options(
            {"path": f"made-up://{files}/", "discoveryTimeout": "1h", "parallelism": "2", **more},
            streaming=False,
        )
        self.store = Counting(directory)
        settings = CoordinatorSettings(
            BatchLimits(files=limit),
            2,
            retained_checkpoints=100,
            discovery_timeout=_PATIENCE,
            background_interval=_ROUND,
            commit_patience=0.0,
        )
        source = FileSource(options, pa.schema([("id", pa.int64())]))
        self.coordinator = Coordinator(source, self.store, settings)
        if bounded:
            self.coordinator.prepare_available_now()

    def batch(self, start: CheckpointRef) -> CheckpointRef:
        """Spark's calls for one batch; the same reference without one."""
        end = self.coordinator.latest(start)
        if end != start:
            self.batch_of(start, end)
        return end

    def batch_of(self, start: CheckpointRef, end: CheckpointRef) -> None:
        """What Spark calls for a batch that is planned."""
        self.coordinator.assignments(start, end)
        self.coordinator.commit(start)

    def batches(self, start: CheckpointRef) -> Iterator[CheckpointRef]:
        """Batch after batch until there is nothing more."""
        while (end := self.batch(start)) != start:
            yield end
            start = end

    def report(self) -> dict[str, Any]:
        """Of the coordinator."""
        return self.coordinator.report()

    def settle(self, rounds: int = 0) -> None:
        """Return when nothing was written in the background for so many of its rounds."""
        began = time.monotonic()

        def is_quiet() -> bool:
            nonlocal began
            opened = self.coordinator._opened  # noqa: SLF001
            if opened is not None and opened.upkeep.is_busy:
                began = time.monotonic()
                return False
            return time.monotonic() >= began + rounds * _ROUND

        wait_until(is_quiet, "the end of what is written in the background", _PATIENCE)


def first_listing(files: int, directory: str) -> dict[str, Any]:
    """An AvailableNow run over files that are all new."""
    began, cpu = time.monotonic(), time.process_time()
    driver = Driver(files, directory, BATCH, bounded=True)
    refs = driver.batches(NO_CHECKPOINT)
    one = next(refs)
    first = time.monotonic() - began
    before_end = driver.report()["filesSeen"] < files
    done = [one, *refs]
    ref = done[-1]
    assert driver.report()["filesSeen"] == files, driver.report()
    return {
        "ref": [ref.checkpoint, ref.epoch],
        "batches": len(done),
        "first batch after, s": round(first, 2),
        "before the listing ended": before_end,
        **_when_idle(driver, files, began, cpu),
    }


def _when_idle(driver: Driver, files: int, began: float, cpu: float) -> dict[str, Any]:
    """What a run has used since `began` and `cpu`, once the driver has nothing more to do."""
    driver.settle()
    return {
        "whole, s": round(time.monotonic() - began, 1),
        "whole, CPU s": round(time.process_time() - cpu, 1),
        "resident, MiB": _resident(),
        "written, bytes a file": {
            kind: round(size / files, 1) for kind, size in sorted(driver.store.written.items())
        },
    }


def passed_over(files: int, directory: str) -> dict[str, Any]:
    """An AvailableNow run with includeExistingFiles=false, in directories of 10,000."""
    MadeUpFiles.in_directory = _IN_LARGE_DIRECTORY
    began, cpu = time.monotonic(), time.process_time()
    driver = Driver(files, directory, BATCH, bounded=True, includeExistingFiles="false")
    done = list(driver.batches(NO_CHECKPOINT))
    assert len(done) == 1, done
    assert driver.report()["filesSeen"] == files, driver.report()
    first = max(path.stat().st_size for path in Path(directory, "checkpoints").iterdir())
    return {
        "ref": [done[0].checkpoint, done[0].epoch],
        "first checkpoint, bytes": first,
        **_when_idle(driver, files, began, cpu),
    }


def new_after_passed_over(files: int, directory: str, checkpoint: int, epoch: int) -> Any:
    """The next start after it, of an AvailableNow run that finds 1,000 new files."""
    MadeUpFiles.in_directory, MadeUpFiles.extra = _IN_LARGE_DIRECTORY, NEW
    driver = Driver(files, directory, BATCH, bounded=True, includeExistingFiles="false")
    done = list(driver.batches(CheckpointRef(checkpoint, epoch)))
    assert driver.report()["filesSeen"] == files + NEW, driver.report()
    assert len(done) == 1, done
    driver.settle()
    return {"written, bytes": sum(driver.store.written.values()), "resident, MiB": _resident()}


def listing_more(files: int, directory: str, checkpoint: int, epoch: int) -> dict[str, Any]:
    """Restored over all files, an AvailableNow run over others, enough for the longest merge."""
    driver = Driver(MORE, directory, BATCH, bounded=True)
    done = list(driver.batches(CheckpointRef(checkpoint, epoch)))
    assert driver.report()["filesSeen"] == files + MORE, driver.report()
    driver.settle()
    return {"batches": len(done), "resident, MiB": _resident()}


def later(files: int, directory: str, checkpoint: int, epoch: int) -> dict[str, Any]:
    """Restored over all files: the first batch, checkpoints of new files, and idle calls."""
    MadeUpFiles.extra = 0
    began, cpu = time.monotonic(), time.process_time()
    driver = Driver(files, directory, NEW, bounded=False)
    start = CheckpointRef(checkpoint, epoch)
    driver.coordinator._open(start)  # noqa: SLF001
    restored, restored_cpu = time.monotonic() - began, time.process_time() - cpu
    resident = _resident()
    opened = driver.coordinator._opened  # noqa: SLF001
    assert opened is not None
    ledger: Any = opened.enumerator
    seen = ledger.ledger.seen
    names = [f"made-up://{files}/d00000/year=2026/part-{at:010d}-x.json" for at in range(NEW)]
    look_ups = _median_cpu(lambda: seen.are_known(names), 20)
    with opened.threads.lock:
        # New files come by hand: listing all of them is not what is measured here.
        ledger._has_discovered = True  # noqa: SLF001
    costs, sizes, walls, calls = [], [], [], []
    for number in range(60):
        found = _new_files(files, number)
        written = dict(driver.store.written)
        cpu, wall = time.thread_time(), time.monotonic()
        sifted = ledger.ledger.select_new([found], number)
        with opened.threads.lock:
            ledger.ledger.enter(sifted)
        called = time.monotonic()
        end = driver.coordinator.latest(start)
        calls.append(time.monotonic() - called)
        assert end != start
        driver.batch_of(start, end)
        costs.append(time.thread_time() - cpu)
        walls.append(time.monotonic() - wall)
        sizes.append(driver.store.written["checkpoints"] - written.get("checkpoints", 0))
        start = end
    driver.coordinator.latest(start)
    idle = _median_cpu(lambda: driver.coordinator.latest(start), 200)
    driver.settle(rounds=10)
    return {
        "restore, s": round(restored, 2),
        "restore, CPU s": round(restored_cpu, 2),
        "resident after restore, MiB": resident,
        "resident, MiB": _resident(),
        "checkpoint, ms": round(1000 * statistics.median(walls), 2),
        "checkpoint, CPU ms": round(1000 * statistics.median(costs), 2),
        "checkpoint, bytes": statistics.median(sizes),
        "look-up of 1,000, ms": round(1000 * look_ups, 2),
        "idle latestOffset, CPU ms": round(1000 * idle, 4),
        "busy latestOffset with its checkpoint, ms": round(1000 * statistics.median(calls), 2),
        "runs": len(seen.runs),
    }


def _new_files(files: int, number: int) -> FoundFiles:
    paths = [f"made-up://{files}/new/{number:05d}-{at:05d}.json" for at in range(NEW)]
    full = np.full(NEW, 100, np.int64)
    return FoundFiles(paths, full, full + 1_800_000_000_000_000 + number)


def _median_cpu(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        before = time.thread_time()
        call()
        taken.append(time.thread_time() - before)
    return statistics.median(taken)


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

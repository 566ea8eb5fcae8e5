"""Ten slow files among ninety quick ones: how long the longest task of their batch takes."""

from __future__ import annotations

import gzip
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import splits_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.tests.connector.queries import Query


def write(path: Path, rows: int, numbers: random.Random) -> None:
    """JSON that compresses about eight to one, and is nested if it is compressed."""
    filling = "x" * 40
    ids = [numbers.randrange(10**6) for _ in range(1000)]
    lines = [f'{{"id": {each}, "text": "{filling}"}}\n' for each in ids]
    if path.suffix == ".gz":
        lines = [
            line.replace('"text": ', '"of": {"a": [1, {"b": "c"}]}, "text": ') for line in lines
        ]
    text = "".join(lines[at % 1000] for at in range(rows)).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)


def land_hundred(query: Query, seed: int) -> None:
    """At one time, ten slow files among ninety quick ones, of like sizes as they are stored."""
    numbers = random.Random(seed)
    folder = query.data.parent / f"batch-{seed}"
    folder.mkdir()
    for number in range(10):
        write(folder / f"slow-{number}.json.gz", numbers.randrange(15_000, 25_000), numbers)
    for number in range(90):
        write(folder / f"quick-{number}.json", numbers.randrange(1500, 2500), numbers)
    folder.rename(query.data / folder.name)


def longest(shares: Iterable[Sequence[FileSplit]], seconds: Mapping[FileSplit, float]) -> float:
    return max(sum(seconds[split] for split in share) for share in shares)


def without_outliers(measured: Mapping[FileSplit, float]) -> dict[FileSplit, float]:
    """Each file costs what is usual for its ending: the machine has other work, too."""
    speeds: dict[str, list[float]] = {}
    for split, microseconds in measured.items():
        speeds.setdefault(split.file.path[-3:], []).append(microseconds / split.length)
    usual = {ending: statistics.median(found) for ending, found in speeds.items()}
    return {split: usual[split.file.path[-3:]] * split.length for split in measured}


def longest_tasks(root: Path) -> tuple[float, float]:
    """Seconds, spread by learned costs and by bytes, as real readers measured their files."""
    readers = 10
    query = Query(root, targetBatchDuration="1h")
    query.settings["parallelism"] = readers
    query.start()
    learned: list[float] = []
    by_bytes: list[float] = []
    try:
        for seed in range(5):
            land_hundred(query, seed)
            ref = query.plan()
            query.read(ref, tuple(range(readers)))
            query.done = ref
            checkpoint = query.coordinator.history.load(ref)
            measured: dict[FileSplit, float] = {}
            shares: list[list[FileSplit]] = []
            for commit in ReaderCommits(query.store).of(ref):
                shares.append(splits_of(checkpoint, commit.reader, query.source.split_serializer))
                measured.update(zip(shares[-1], commit.microseconds, strict=True))
            assert len(measured) == 100
            seconds = without_outliers(measured)
            files = sorted(seconds, key=lambda split: split.split_id)
            others = SplitSpreader(1, 8192, 2).spread(files, readers).values()
            learned.append(longest(shares, seconds))
            by_bytes.append(longest(others, seconds))
    finally:
        query.coordinator.close()
    # Before the first batch nothing is known.
    return statistics.mean(learned[1:]) / 1e6, statistics.mean(by_bytes[1:]) / 1e6

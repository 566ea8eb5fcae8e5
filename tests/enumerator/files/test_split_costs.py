"""What a split costs is learned by kind of file, and readers get equal shares of it."""

from __future__ import annotations

import gzip
import json
import random
import statistics

import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import splits_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.enumerator.api import SplitFigures
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchLimits, BatchRoom
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.enumerator import FilePolicy, FileSplitEnumerator
from pyspark_sluice.enumerator.files.split_costs import SplitCosts, kind_of
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.enumerator.testing import HandCrankedContext
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.enumerator.files.bench import AnyByte
from pyspark_sluice.tests.enumerator.files.listed import Listed


def split(path, size=1000):
    return FileSplit(FileVersion(path, size, 1), 0, size)


def took(path, seconds, size=1000):
    return SplitFigures(split(path, size), 1, size, seconds)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/in/2024/05/part-00017.json.gz", "/in/#/#/part-#.json.gz"),
        ("/in/dt=2024-05-01/orders.csv", "/in/dt=#/orders.csv"),
        ("s3://b/x/3f2b8c9e-1a2b-4c3d-aaef-aabbccddeeff.parquet", "s3://b/x/#.parquet"),
        ("/in/orders_20240501T1200Z.json", "/in/orders_#.json"),
        ("/in/nested/a.json", "/in/nested/a.json"),
    ],
)
def test_files_of_one_kind_differ_in_numbers_only(path, kind):
    assert kind_of(path) == kind


def test_a_kind_costs_what_its_files_took():
    costs = SplitCosts("json", 0)
    costs.learn([took(f"/in/slow-{i}.json.gz", 8.0) for i in range(5)])
    costs.learn([took(f"/in/quick-{i}.json", 1.0) for i in range(5)])
    costs.end_batch()
    assert costs.seconds(split("/in/slow-77.json.gz")) == pytest.approx(8.0)
    assert costs.seconds(split("/in/quick-77.json", 500)) == pytest.approx(0.5)


def test_a_new_kind_costs_what_files_of_its_ending_cost_and_then_what_all_cost():
    costs = SplitCosts("json", 0)
    before = costs.seconds(split("/in/a-1.json.gz"))
    assert before == pytest.approx(1e-4)
    costs.learn([took("/in/a-1.json.gz", 6.0), took("/in/b-1.json", 2.0)])
    costs.end_batch()
    assert costs.seconds(split("/other/x.json.gz")) == pytest.approx(6.0)
    assert costs.seconds(split("/other/x.json.zst")) == pytest.approx(4.0)


def test_a_cost_that_is_ten_times_wrong_is_right_after_three_batches():
    costs = SplitCosts("json", 0)
    costs.learn([took("/in/1.json", 10.0)])
    costs.end_batch()
    costs.learn([took("/in/2.json", 1.0)])
    assert costs.seconds(split("/in/3.json")) == pytest.approx(10.0), "a batch counts at its end"
    for _ in range(6):
        costs.end_batch()
        costs.learn([took("/in/2.json", 1.0)])
    assert costs.seconds(split("/in/3.json")) == pytest.approx(1.0, rel=0.25)


def test_opening_a_file_counts_as_so_many_bytes():
    costs = SplitCosts("json", 1000)
    costs.learn([took("/in/1.json", 2.0)])
    costs.end_batch()
    assert costs.seconds(split("/in/2.json", 3000)) == pytest.approx(4.0)
    assert costs.bytes_within(split("/in/2.json", 9000), 4.0) == 3000


def test_kinds_are_forgotten_that_were_not_seen_for_long():
    costs = SplitCosts("json", 0)
    for number in range(200):
        name = "".join("ghijklmnop"[int(digit)] for digit in str(number))
        costs.learn([took(f"/in/{name}.json", 1.0)])
        costs.end_batch()
    assert len(costs.to_json()) <= 64
    restored = SplitCosts("json", 0)
    restored.restore(json.loads(json.dumps(costs.to_json())))
    assert restored.to_json() == costs.to_json()


def write(path, rows, numbers):
    """JSON that compresses about eight to one."""
    filling = "x" * 40
    ids = [numbers.randrange(10**6) for _ in range(1000)]
    lines = [f'{{"id": {each}, "text": "{filling}"}}\n' for each in ids]
    text = "".join(lines[at % 1000] for at in range(rows)).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)


def land_hundred(query, seed):
    """At one time, ten slow files among ninety quick ones, of like sizes as they are stored."""
    numbers = random.Random(seed)
    folder = query.data.parent / f"batch-{seed}"
    folder.mkdir()
    for number in range(10):
        write(folder / f"slow-{number}.json.gz", numbers.randrange(15_000, 25_000), numbers)
    for number in range(90):
        write(folder / f"quick-{number}.json", numbers.randrange(1500, 2500), numbers)
    folder.rename(query.data / folder.name)


def longest(shares, seconds):
    return max(sum(seconds[split] for split in share) for share in shares)


def without_outliers(measured):
    """Each file costs what is usual for its ending: the machine has other work, too."""
    speeds: dict[str, list[float]] = {}
    for split, microseconds in measured.items():
        speeds.setdefault(split.file.path[-3:], []).append(microseconds / split.length)
    usual = {ending: statistics.median(found) for ending, found in speeds.items()}
    return {split: usual[split.file.path[-3:]] * split.length for split in measured}


def test_ten_slow_files_among_ninety_quick_ones_make_the_longest_task_a_third_shorter(tmp_path):
    """Times are those that real readers have measured and committed."""
    readers = 10
    query = Query(tmp_path, targetBatchDuration="1h")
    query.settings["parallelism"] = readers
    query.start()
    learned, by_bytes = [], []
    try:
        for seed in range(5):
            land_hundred(query, seed)
            ref = query.plan()
            query.read(ref, tuple(range(readers)))
            query.done = ref
            checkpoint = query.coordinator.history.load(ref)
            measured, shares = {}, []
            for commit in ReaderCommits(query.store).of(ref):
                shares.append(splits_of(checkpoint, commit.reader, query.source.split_serializer))
                measured.update(zip(shares[-1], commit.microseconds, strict=True))
            assert len(measured) == 100
            seconds = without_outliers(measured)
            others = SplitSpreader(1, 8192, 2).spread(sorted(seconds), readers).values()
            learned.append(longest(shares, seconds))
            by_bytes.append(longest(others, seconds))
    finally:
        query.coordinator.close()
    # Before the first batch nothing is known.
    assert sum(learned[1:]) <= 2 / 3 * sum(by_bytes[1:])


def enumerator_of(*files, seconds_a_byte):
    costs = SplitCosts("json", 0)
    costs.learn([took("/in/known.json", 1000 * seconds_a_byte)])
    costs.end_batch()
    made = FileSplitEnumerator(
        HandCrankedContext(2, False, False),
        Listed(lambda: files, chunk=100),
        SplitCutter(AnyByte(), 128 * 2**20),
        SplitSpreader(128 * 2**20, 0, 2, costs),
        FilePolicy(interval=7.0),
        None,
    )
    made.start()
    made._context.run_calls()
    return made


def planned(enumerator, work, limits=UNLIMITED):
    """What one batch of so many seconds of reading takes: splits and their seconds."""
    before = len(enumerator._context.assigned)
    room = BatchRoom(limits)
    room.work_limit = work
    enumerator.plan_batch(room)
    enumerator.snapshot_state(1)
    splits = [split for _, split in enumerator._context.assigned[before:]]
    assert room.work == pytest.approx(sum(map(enumerator._costs.seconds, splits)))
    return splits, room.work


def test_a_large_file_is_cut_so_that_a_batch_has_its_work():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), seconds_a_byte=1e-7)
    at = 0
    for work in (10.0, 10.0, 30.0):
        splits, found = planned(enumerator, work)
        assert found == pytest.approx(work, rel=0.02)
        for split in sorted(splits, key=lambda split: split.start):
            assert split.start == at, "nothing is left out, and nothing comes twice"
            at = split.end


def test_a_batch_of_little_work_has_one_split_that_is_not_cut_smaller_than_worth_it():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), seconds_a_byte=1e-7)
    splits, _ = planned(enumerator, 0.001)
    assert [split.length for split in splits] == [4 * 2**20]


def test_whole_files_are_taken_to_what_is_nearest_and_hard_limits_hold():
    files = [FileVersion(f"/in/{number}.json", 1000, number) for number in range(50)]
    enumerator = enumerator_of(*files, seconds_a_byte=0.001)
    assert len(planned(enumerator, 7.4)[0]) == 7
    assert len(planned(enumerator, 7.6)[0]) == 8
    assert len(planned(enumerator, 7.6, BatchLimits(files=3))[0]) == 3
    by_bytes, _ = planned(enumerator, 7.6, BatchLimits(bytes=4500))
    assert sum(split.length for split in by_bytes) == 4500


def test_what_was_learned_goes_with_the_checkpoint():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), seconds_a_byte=1e-5)
    cursors = json.loads(json.dumps(enumerator.cursors()))
    other = enumerator_of(FileVersion("/in/1.json", 10**9, 1), seconds_a_byte=1.0)
    other.go_on_from(cursors)
    assert other._costs.seconds(split("/in/2.json")) == pytest.approx(0.01)
    assert other.backlog()["readingSpeeds"] == [
        {"files": "json:/in/known.json", "megabytesPerSecond": 0.1}
    ]

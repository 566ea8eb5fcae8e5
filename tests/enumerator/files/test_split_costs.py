"""What a split costs is learned by kind of file, and readers get equal shares of it."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.api import SplitFigures
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.split_costs import SplitCosts, kind_of
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.tests.enumerator.files.bench import AnyByte
from pyspark_sluice.tests.enumerator.files.listed import Listed
from pyspark_sluice.tests.enumerator.files.slow_files import longest_tasks
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext

pytestmark = pytest.mark.thorough("a measurement; the order of splits has tests of its own")


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


def test_a_byte_of_a_slow_kind_counts_for_several():
    costs = SplitCosts("json", 0)
    assert costs.work(split("/in/slow-1.json.gz")) == 1000.0, "nothing is known"
    costs.learn([took(f"/in/slow-{i}.json.gz", 8.0) for i in range(5)])
    costs.learn([took(f"/in/quick-{i}.json", 1.0) for i in range(5)])
    costs.end_batch()
    slow, quick = costs.work(split("/in/slow-77.json.gz")), costs.work(split("/in/quick-77.json"))
    assert slow / quick == pytest.approx(8.0)
    assert 5 * slow + 5 * quick == pytest.approx(10_000), "as a whole they weigh what they did"
    assert costs.batch_work == pytest.approx(10_000)
    assert costs.work(split("/in/quick-77.json", 500)) == pytest.approx(quick / 2)


def test_a_new_kind_costs_what_files_of_its_ending_cost_and_then_what_all_cost():
    costs = SplitCosts("json", 0)
    costs.learn([took("/in/a-1.json.gz", 6.0), took("/in/b-1.json", 2.0)])
    costs.end_batch()
    assert costs.work(split("/other/x.json.gz")) == costs.work(split("/in/a-2.json.gz"))
    assert costs.work(split("/other/x.json.zst")) == pytest.approx(1000.0)


def test_weights_stay_when_all_becomes_slower_or_the_mixture_changes():
    costs = SplitCosts("json", 0)
    slow, quick = took("/in/slow-1.json.gz", 8.0), took("/in/quick-1.json", 1.0)
    costs.learn([slow, quick])
    costs.end_batch()
    before = costs.work(slow.split), costs.work(quick.split)
    # A machine with other work for a while.
    costs.learn([took("/in/slow-1.json.gz", 24.0), took("/in/quick-1.json", 3.0)])
    costs.end_batch()
    assert (costs.work(slow.split), costs.work(quick.split)) == pytest.approx(before)
    for _ in range(20):
        costs.learn([slow, quick])
        costs.end_batch()
    # Slow files alone, then none of them.
    for only in (slow, quick):
        for _ in range(9):
            costs.learn([only])
            costs.end_batch()
        assert costs.work(only.split) == pytest.approx(before[only is quick], rel=1e-6)


def test_a_new_slow_kind_does_not_make_the_known_ones_cheaper():
    costs = SplitCosts("json", 0)
    costs.learn([took("/in/quick-1.json", 1.0)])
    costs.end_batch()
    costs.learn([took("/in/quick-2.json", 1.0), took("/in/nested/1.json", 10.0)])
    costs.end_batch()
    assert costs.work(split("/in/quick-3.json")) == pytest.approx(1000.0)
    assert costs.work(split("/in/nested/2.json")) == pytest.approx(10_000.0)
    assert costs.batch_work == pytest.approx(11_000.0)


def test_a_cost_that_is_ten_times_wrong_is_right_after_five_batches():
    costs = SplitCosts("json", 0)
    other = took("/in/other.json", 1.0)
    costs.learn([took("/in/1.json", 10.0), other])
    costs.end_batch()
    costs.learn([took("/in/2.json", 1.0), other])
    wrong = costs.work(split("/in/3.json")) / costs.work(other.split)
    assert wrong == pytest.approx(10.0), "a batch counts at its end"
    for _ in range(6):
        costs.end_batch()
        costs.learn([took("/in/2.json", 1.0), other])
    assert costs.work(split("/in/3.json")) / costs.work(other.split) == pytest.approx(1, rel=0.25)


def test_opening_a_file_counts_as_so_many_bytes():
    costs = SplitCosts("json", 1000)
    costs.learn([took("/in/1.json", 2.0)])
    costs.end_batch()
    assert costs.work(split("/in/2.json", 3000)) == pytest.approx(4000.0)
    assert costs.bytes_within(split("/in/2.json", 9000), 4000.0) == 3000


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


@pytest.mark.slow
def test_ten_slow_files_among_ninety_quick_ones_make_the_longest_task_a_third_shorter(tmp_path):
    """Times are those that real readers have measured and committed."""
    learned, by_bytes = longest_tasks(tmp_path)
    assert learned <= 2 / 3 * by_bytes


def enumerator_of(*files, weight=1.0):
    """Files in `/in` have a weight; one of the weight 1 is known."""
    costs = SplitCosts("json", 0)
    costs.restore({"kinds": {"json:/in/#.json": [1000, 1000 * weight]}})
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
    """What one batch of so much work takes: splits and their work."""
    before = len(enumerator._context.assigned)
    budget = BatchBudget(limits)
    budget.work_limit = work
    enumerator.plan_batch(budget)
    enumerator.snapshot_state(1)
    splits = [split for _, split in enumerator._context.assigned[before:]]
    assert budget.work == pytest.approx(sum(map(enumerator.costs.work, splits)))
    return splits, budget.work


def test_a_large_file_is_cut_so_that_a_batch_has_its_work():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), weight=5.0)
    at = 0
    for work in (5e8, 5e8, 15e8):
        splits, found = planned(enumerator, work)
        assert found == pytest.approx(work, rel=0.02)
        for split in sorted(splits, key=lambda split: split.start):
            assert split.start == at, "nothing is left out, and nothing comes twice"
            at = split.end


def test_a_batch_of_little_work_has_one_split_that_is_not_cut_smaller_than_worth_it():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), weight=5.0)
    splits, _ = planned(enumerator, 1000.0)
    assert [split.length for split in splits] == [4 * 2**20]


def test_whole_files_are_taken_to_what_is_nearest_and_hard_limits_hold():
    files = [FileVersion(f"/in/{number}.json", 1000, number) for number in range(50)]
    enumerator = enumerator_of(*files, weight=5.0)
    assert len(planned(enumerator, 37e3)[0]) == 7
    assert len(planned(enumerator, 38e3)[0]) == 8
    assert len(planned(enumerator, 38e3, BatchLimits(files=3))[0]) == 3
    by_bytes, _ = planned(enumerator, 38e3, BatchLimits(bytes=4500))
    assert sum(split.length for split in by_bytes) == 4500


def test_what_was_learned_goes_with_the_checkpoint():
    enumerator = enumerator_of(FileVersion("/in/1.json", 10**9, 1), weight=20.0)
    cursors = json.loads(json.dumps(enumerator.cursors()))
    other = enumerator_of(FileVersion("/in/1.json", 10**9, 1))
    other.resume_from(cursors)
    assert other.costs.work(split("/in/2.json")) == pytest.approx(20_000.0)
    assert other.backlog()["readingSpeeds"] == [
        {"files": "json:/in/#.json", "megabytesPerSecond": 0.0}
    ]

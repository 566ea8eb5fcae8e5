"""The file enumerator, turned by hand."""

import time

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.enumerator.batch_budget import BatchBudget, BatchLimits
from pyspark_sluice.tests.enumerator.files.bench import Bench, Listed, document, file, folded, whole


def test_a_bounded_run_discovers_once():
    bench = Bench(file("a"), bounded=True)
    bench.discover()
    assert bench.context.calls == []


def test_a_restored_enumerator_goes_on_and_does_not_read_known_files_again():
    a, b, c = file("a", 30, 1), file("b", 10, 2), file("c", 10, 3)
    bench = Bench(a, b, c, parallelism=1)
    bench.discover()
    first = bench.plan(BatchLimits(bytes=20))
    chain = [document(1, bench.enumerator.snapshot_state(1), first)]
    second = bench.plan(BatchLimits(bytes=15))
    chain.append(document(2, bench.enumerator.snapshot_state(2), second))
    state = folded(chain)
    again = Bench(a, b, c, file("d", 10, 4), state=state, parallelism=1)
    again.discover()
    rest = [(s.file.path, s.start, s.end) for s in again.plan()]
    assert [(s.start, s.end) for s in first] == [(0, 20)]
    assert [(s.file.path, s.start, s.end) for s in second] == [("a", 20, 30), ("b", 0, 5)]
    assert rest == [("b", 5, 10), ("c", 0, 10), ("d", 0, 10)]


def test_a_first_pass_that_meets_files_of_an_order_leaves_no_record():
    # An order may have made them known to the enumerator before any checkpoint knows them.
    class Recorded(Listed):
        records = 0

        def remember(self):
            self.records += 1

    for ordered, records in (([], 1), ([whole(file("a"))], 0)):
        discovery = Recorded(lambda: [file("a")])
        bench = Bench(discovery=discovery)
        bench.enumerator.requeue_splits(ordered)
        bench.discover()
        assert discovery.records == records


def test_figures_of_readers_add_up_in_the_backlog():
    bench = Bench(file("a", 10))
    bench.discover()
    for rows in (3, 4):
        bench.enumerator.handle_reader_event(0, "figures", {"rows": rows, "bytes": 10})
    backlog = bench.enumerator.backlog()
    assert (backlog["backlogSplits"], backlog["backlogBytes"]) == (1, 10)
    assert backlog["filesSeen"] == 1
    assert backlog["read"] == {"rows": 7, "bytes": 20, "droppedRecords": 0, "skippedFiles": 0}


def test_a_split_sent_back_keeps_its_identity_and_is_not_cut_again():
    a, b = file("a", 8, 1), file("b", 8, 2)
    bench = Bench(a, b, parallelism=1)
    bench.discover()
    first = bench.plan(BatchLimits(bytes=8))
    second = bench.plan(BatchLimits(bytes=8))
    assert (first, second) == ([whole(a)], [whole(b)])
    bench.files.append(file("early", 5, 0))
    bench.discover()
    bench.enumerator.add_splits_back([whole(b)], 0)
    assert bench.plan(BatchLimits(bytes=8)) == [whole(file("early", 5, 0))]
    assert bench.plan(BatchLimits(bytes=8)) == [whole(b)]


def test_bytes_cut_a_file_apart_that_files_alone_would_not():
    bench = Bench(file("big", 250), file("small", 10, 1), parallelism=1)
    bench.discover()
    found = [bench.plan(BatchLimits(files=1, bytes=120)) for _ in range(4)]
    lengths = [[s.length for s in batch] for batch in found]
    assert lengths == [[100, 20], [100, 20], [10], [10]]


def test_a_file_from_the_end_of_the_order_is_taken_whole_though_it_is_cut():
    bench = Bench(file("old", 10, 1), file("new", 250, 2), parallelism=1, fresh_share=0.5)
    bench.discover()
    taken = [(s.file.path, s.start) for s in bench.plan(BatchLimits(files=1))]
    assert taken == [("new", 0), ("new", 100), ("new", 200)]


def test_a_batch_is_planned_before_the_listing_has_ended():
    files = [file(f"{i:02}", 10, i) for i in range(40)]
    bench = Bench(*files, parallelism=1, portion=4, bounded=True)
    bench.discover()
    assert not bench.enumerator.has_discovered
    assert len(bench.plan(BatchLimits(files=3))) == 3
    assert bench.enumerator.is_decided(BatchBudget(BatchLimits(files=3)))


def test_after_a_long_pass_discovery_rests_unless_it_brought_many_new_files():
    files = [file(str(i)) for i in range(1000)]

    def slowly():
        time.sleep(0.05)
        return files

    bench = Bench(discovery=Listed(slowly), interval=0.01)
    delays = []
    for _ in range(2):
        bench.discover()
        while not bench.context.calls[0].delay:
            bench.discover()
        delays.append(bench.context.calls[0].delay)
    assert delays[0] == 0.01
    assert delays[1] >= 0.2


def test_the_backlog_says_how_much_is_outstanding_how_old_it_is_and_how_listings_go():
    bench = Bench(file("a", 250, 1_000_000), file("b", 10, 3_000_000), parallelism=1)
    bench.enumerator._backlog._clock = lambda: 61.0
    assert bench.enumerator.backlog()["backlogFiles"] == 0
    assert "lastListing" not in bench.enumerator.backlog()
    bench.discover()
    backlog = bench.enumerator.backlog()
    assert backlog["backlogFiles"] == 2
    assert (backlog["backlogSplits"], backlog["backlogBytes"]) == (2, 260)
    assert backlog["backlogOldestSeconds"] == 60.0
    assert backlog["lastListing"]["new"] == 2
    assert set(backlog["lastListing"]) == {"endedAt", "seconds", "new"}
    # Two parts of one file that are sent back are one file.
    halves = [FileSplit(file("c", 20), 0, 10), FileSplit(file("c", 20), 10, 20)]
    bench.enumerator.add_splits_back(halves, 0)
    bench.enumerator._backlog._looked_at = (0.0, 2)
    backlog = bench.enumerator.backlog()
    assert (backlog["backlogFiles"], backlog["backlogSplits"]) == (3, 4)
    bench.plan()
    backlog = bench.enumerator.backlog()
    assert backlog["backlogFiles"] == 0
    assert "backlogOldestSeconds" not in backlog
    bench.errors.append(OSError("away"))
    bench.discover()
    assert bench.enumerator.backlog()["listingError"] == "OSError: away"
    bench.discover()
    assert "listingError" not in bench.enumerator.backlog()

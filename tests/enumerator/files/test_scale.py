"""The short form of the benchmark of scale: 200,000 files, counted rather than timed."""

from __future__ import annotations

import gc
import statistics
import time

import numpy as np
import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.file_columns import ranges_of
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.index.fingerprints import SeenKeys, names_of
from pyspark_sluice.checkpoint_meta.index.run import read_files
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files.discovery.api import FoundFiles
from pyspark_sluice.enumerator.files.ledger.file_state import FileState, FileStateSerializer
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy, flush
from pyspark_sluice.enumerator.files.ledger.ledger import Ledger, LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.seen_files import Piece, SeenFiles, Tail
from pyspark_sluice.tests.enumerator.files.chains import document, folded

pytestmark = [pytest.mark.slow, pytest.mark.thorough("a measurement of costs with many files")]

POLICY = LedgerPolicy(merging=MergePolicy(flush_at=10_000, fan_in=4, longest=100_000))


def files(first, count):
    numbers = np.arange(first, first + count, dtype=np.int64)
    paths = [f"/data/year=2026/month=01/part-{number:09d}.json" for number in numbers.tolist()]
    return FoundFiles(paths, np.full(count, 100, np.int64), numbers)


def grown(ledger, attachments, first, last, checkpoint=0):
    """Finds files a thousand at a time, each thousand assigned in a checkpoint of its own."""
    costs = []
    for at in range(first, last, 1000):
        found = files(at, 1000)
        before = time.thread_time()
        ledger.enter(ledger.sift([found], at))
        while ledger.pending.first() is not None:
            ledger.pending.take(None)
        checkpoint += 1
        FileStateSerializer().serialize_all(ledger.snapshot(checkpoint))
        costs.append(time.thread_time() - before)
        while improve := ledger.improve():
            improve(attachments)
    return costs


def test_what_a_checkpoint_costs_does_not_follow_what_has_been_seen():
    store = MemoryStateStore()
    attachments = Attachments(store, 1)
    ledger = Ledger(POLICY)
    few = grown(ledger, attachments, 0, 10_000)
    gc.collect()
    objects = len(gc.get_objects())
    many = grown(ledger, attachments, 10_000, 200_000)
    gc.collect()
    assert len(ledger.seen) == 200_000
    # A file that is not in the next batch is not an object.
    assert len(gc.get_objects()) - objects < 5_000
    assert sum(run.keys.names.high.nbytes for run in ledger.seen.runs) <= 8 * 200_000
    assert len(ledger.seen.runs) <= 12
    # The machine may be busy: the median of the last ones, and generously.
    assert statistics.median(many[-20:]) < 3 * statistics.median(few)
    # Sealed once, and merged twice or three times, at 32 bytes and a name.
    assert sum(map(len, store.objects.values())) / 200_000 < 4 * 60
    written = ledger.freeze().write(attachments)
    in_base = sum(row.nbytes for row in written.rows)
    assert in_base < 1_000
    base = document(200, FileState(written.rows), (), written.attachments)
    again = Ledger(POLICY, folded([base], attachments))
    paths = files(0, 200_000).paths
    assert again.seen.are_known(paths[::7]).all()
    assert not again.seen.are_known([path + "x" for path in paths[::7]]).any()


def flush_cost(count):
    """Processor time of writing a run of files that were found one by one."""
    found = [FileVersion(f"/data/part-{number:09d}.json", 100, number) for number in range(count)]
    end = np.array([100], np.int64)
    pieces = tuple(Piece(ranges_of([FileSplit(file, 0, 100)]), end, 0) for file in found)
    names = names_of([file.path for file in found])
    keys = SeenKeys.sort(names, np.zeros(count, np.uint64), np.full(count, 100, np.int64))
    tail = Tail(keys, pieces)
    attachments, seen = Attachments(MemoryStateStore(), 1), SeenFiles((), [tail])
    before = time.thread_time()
    flush(seen, [tail], attachments)
    spent = time.thread_time() - before
    (run,) = seen.runs
    batches = list(read_files(attachments.read(run.attachments[1])))
    assert [batch.num_rows for batch in batches] == [count]
    return spent


def test_the_cost_of_a_run_follows_the_number_of_files_found_one_by_one():
    flush_cost(100)
    assert flush_cost(24_000) < 8 * flush_cost(6_000)

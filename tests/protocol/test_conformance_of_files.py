"""Flink's scenarios of its file source: what discovery and a snapshot owe each other.

Each docstring names Flink's case; `CONFORMANCE.md` lists all of them.
"""

from __future__ import annotations

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.tests.enumerator.files.listed import Listed
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext


class _Anywhere:
    def may_cut_anywhere(self, file):
        return True

    def blocks(self, file):
        return None


def _file_enumerator(context, files):
    return FileSplitEnumerator(
        context,
        Listed(lambda: files),
        SplitCutter(_Anywhere(), 100),
        SplitSpreader(100, 1, 1),
        FilePolicy(1.0),
        None,
    )


def test_a_file_found_before_a_batch_is_planned_is_pending_in_the_snapshot():
    """testDiscoverSplitWhenNoReaderRegistered, testRequestingReaderUnavailable..."""
    context: HandCrankedContext[FileSplit] = HandCrankedContext()
    file = FileVersion("f", 3, 0)
    enumerator = _file_enumerator(context, [file])
    enumerator.start()
    context.run_calls()
    assert list(enumerator.snapshot_state(1)) == [FileSplit(file, 0, 3)]
    assert context.assigned == []


def test_a_file_found_and_planned_is_assigned_and_not_in_the_snapshot():
    """testDiscoverWhenReaderRegistered."""
    context: HandCrankedContext[FileSplit] = HandCrankedContext(parallelism=1)
    file = FileVersion("f", 3, 0)
    enumerator = _file_enumerator(context, [file])
    enumerator.start()
    context.run_calls()
    enumerator.plan_batch(BatchBudget(UNLIMITED))
    assert context.assigned == [(0, FileSplit(file, 0, 3))]
    assert list(enumerator.snapshot_state(1)) == []


def test_every_split_of_a_file_found_by_a_later_scan_is_assigned():
    """FLINK-29757: Flink loses all but the first split of a file found by a later scan."""
    context: HandCrankedContext[FileSplit] = HandCrankedContext(parallelism=1)
    files = [FileVersion("first", 250, 0)]
    enumerator = _file_enumerator(context, files)
    enumerator.start()
    context.run_calls()
    files.append(FileVersion("second", 250, 1))
    context.run_calls()
    enumerator.plan_batch(BatchBudget(UNLIMITED))
    lengths = [(split.file.path, split.start, split.end) for _, split in context.assigned]
    borders = [(0, 100), (100, 200), (200, 250)]
    assert lengths == [(name, *border) for name in ("first", "second") for border in borders]

"""A file enumerator over a list of files, turned by hand."""

from __future__ import annotations

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.enumerator.files.cutting import SplitCutter
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.spreading import SplitSpreader
from pyspark_sluice.tests.enumerator.files.listed import Listed
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext


class AnyByte:
    def may_cut_anywhere(self, file):
        return True

    def blocks(self, file):
        return None


class Bench:
    """An enumerator over a list of files."""

    def __init__(
        self,
        *files,
        state=None,
        bounded=False,
        parallelism=2,
        grows=False,
        discovery=None,
        interval=7.0,
        **policy,
    ):
        self.files = list(files)
        self.errors: list[Exception] = []
        self.context: HandCrankedContext[FileSplit] = HandCrankedContext(
            parallelism, bounded, grows
        )
        self.enumerator = FileSplitEnumerator(
            self.context,
            discovery or Listed(self.list, chunk=2),
            SplitCutter(AnyByte(), 100),
            SplitSpreader(1000, 1, 1),
            FilePolicy(interval=interval, attempts=3, **policy),
            state,
        )
        self.enumerator.start()

    def list(self):
        if self.errors:
            raise self.errors.pop(0)
        return self.files

    def snapshot(self, checkpoint_id):
        return list(self.enumerator.snapshot_state(checkpoint_id))

    def discover(self):
        self.context.run_calls()

    def plan(self, limits=UNLIMITED):
        before = len(self.context.assigned)
        self.enumerator.plan_batch(BatchBudget(limits))
        return [split for _, split in self.context.assigned[before:]]


def file(name, size=10, modified=0):
    return FileVersion(name, size, modified)


def whole(file):
    return FileSplit(file, 0, file.size)

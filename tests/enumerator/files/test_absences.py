"""Since when files are absent: what is written of it, and when; files that are gone."""

import numpy as np
import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.index.fingerprints import names_of
from pyspark_sluice.checkpoint_meta.index.run import AbsentFiles
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files import absences
from pyspark_sluice.enumerator.files.ledger.index_merge import flush, merge
from pyspark_sluice.enumerator.files.ledger.seen_files import Marks
from pyspark_sluice.tests.enumerator.files.bench import (
    DELETING,
    Bench,
    Deleting,
    Query,
    file,
)


class Absent(Query):
    """A query whose files a, b, c and d are read."""

    def __init__(self):
        super().__init__({name: file(name) for name in "abcd"})
        self.discover()
        self.cut(self.bench.plan())

    def delete(self, *names):
        for name in names:
            super().delete(name)
        self.discover()

    def discover(self, seconds=0):
        self.now += seconds
        super().discover()

    def gone(self):
        """The names of files whose rows leave the table in the next batch."""
        gone = self.bench.plan()
        self.cut(gone)
        return sorted(split.file.path for split in gone)


@pytest.fixture
def absent():
    return Absent()


def paths_in(query, attachment):
    names = AbsentFiles.from_bytes(query.attachments.read(attachment)).names
    known = names_of("abcd")
    return sorted(name for name, high in zip("abcd", known.high, strict=True) if high in names.high)


def test_an_object_is_written_when_more_files_are_absent_or_one_came_back(absent):
    assert absent.cut() is None
    absent.delete("a")
    first = absent.cut()
    assert paths_in(absent, first) == ["a"]
    absent.discover(1)
    assert absent.cut() is None
    absent.delete("b")
    assert absent.bench.enumerator.wants_checkpoint
    assert paths_in(absent, absent.cut()) == ["a", "b"]
    absent.files["a"] = file("a")
    absent.discover()
    # No checkpoint is due for that, but the next one says it.
    assert not absent.bench.enumerator.wants_checkpoint
    assert paths_in(absent, absent.cut()) == ["b"]
    absent.files["b"] = file("b")
    absent.discover()
    assert paths_in(absent, absent.cut()) == []


def test_an_object_that_no_checkpoint_names_yet_is_in_use(absent):
    absent.delete("a")
    enumerator = absent.bench.enumerator
    (name,) = enumerator.attachments_in_use()
    assert absent.cut().name == name
    absent.delete("b")
    assert len(enumerator.attachments_in_use()) == 2


def test_the_longest_absent_files_are_looked_for_first(absent, monkeypatch):
    monkeypatch.setattr(absences, "_MOST", 1)
    absent.delete("c")
    absent.now = 1
    absent.delete("a", "b")
    absent.now = 20
    leaving = []
    for _ in range(4):
        absent.discover()
        leaving += absent.gone()
    assert leaving[0] == "c"
    assert sorted(leaving) == ["a", "b", "c"]


def test_files_that_are_gone_are_dropped_from_the_object_by_halves(absent, monkeypatch):
    monkeypatch.setattr(absences, "_MOST", 1)
    absent.delete("a", "b", "c")
    absent.cut()
    absent.now = 20
    sizes = []
    for _ in range(5):
        absent.discover()
        absent.gone()
        written = absent.bench.enumerator.ledger.absent
        sizes.append(len(paths_in(absent, written)))
    assert sizes == [3, 3, 1, 0, 0]


def test_without_the_state_of_a_pass_times_are_counted_again(absent):
    absent.delete("a")
    absent.now = 5
    absent.crash()
    absent.discover()
    absent.discover(5)
    assert absent.gone() == []
    absent.discover(5)
    assert absent.gone() == ["a"]


def test_what_a_pass_came_to_is_marked_though_runs_are_merged_meanwhile():
    written = Attachments(MemoryStateStore(), 1)
    files = {name: file(name) for name in "abcd"}
    bench = Bench(parallelism=1, ledger=DELETING, discovery=Deleting({}), attachments=written)
    seen = bench.enumerator.ledger.seen
    for name in "abcd":
        files = {name: file(name)}
        bench.enumerator._discovery._files = files.values
        bench.discover()
        flush(seen, seen.freeze()[1], written)
    marks = Marks(seen.parts())
    seen.details_of(names_of("a"), marks)
    merge(seen, seen.runs[:3], written)
    seen.details_of(names_of("bx"), marks)
    found = {int(high) for keys, flags in marks.parts for high in keys.names.high[flags]}
    assert found == set(map(int, names_of("ab").high))


def test_an_object_of_many_files_is_as_it_was():
    many = np.random.default_rng(1).integers(0, 2**63, (2, 1000)).astype(np.uint64)
    names = names_of(map(str, range(1000)))
    some = AbsentFiles(names, many[0].astype(np.int64))
    again = AbsentFiles.from_bytes(some.to_bytes())
    assert again.names.high.tolist() == names.high.tolist()
    assert again.names.low.tolist() == names.low.tolist()
    assert again.since.tolist() == some.since.tolist()

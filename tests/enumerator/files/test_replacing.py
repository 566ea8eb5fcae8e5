"""Files that replace rows of their earlier versions: what is pending, batches, and the table."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.files.file_split import (
    REPLACES,
    RETRACTS,
    replaced,
    retraction_of,
)
from pyspark_sluice.checkpoint_meta.index.run import AbsentFiles
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchLimits
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.tests.enumerator.files.bench import (
    DELETING,
    Query,
    bench_of,
    document,
    file,
    folded,
    whole,
)

POLICY = LedgerPolicy(on_overwrite=OnOverwrite.REPLACE)
SECOND = 1_000_000
OLD, NEW = file("a", 250, SECOND), file("a", 150, 2 * SECOND)


def pieces(splits):
    return [(s.file.path, s.file.modified // SECOND, s.start, s.end, s.replaces) for s in splits]


def test_batches_that_replace_rows_take_turns_with_others():
    files = {name: file(name) for name in "abcd"}
    bench = bench_of(files, ledger=POLICY)
    assert len(bench.plan()) == 4
    files |= {name: file(name, modified=SECOND) for name in "abc"} | {n: file(n) for n in "xyz"}
    bench.discover()
    batches = []
    for number in range(1, 8):
        bench.enumerator.snapshot_state(number)
        batches.append([s.file.path for s in bench.plan(BatchLimits(files=1))])
    assert batches == [["a"], ["x"], ["b"], ["y"], ["c"], ["z"], []]


def test_a_batch_that_replaces_rows_waits_for_parts_that_readers_may_leave():
    files = {"a": file("a")}
    bench = bench_of(files, ledger=POLICY)
    bench.plan()
    bench.enumerator.snapshot_state(1)
    files["a"] = file("a", modified=SECOND)
    bench.discover()
    bench.context.continuing_readers = [0]
    assert bench.plan(BatchLimits(rows=5)) == []
    bench.context.continuing_readers = []
    assert pieces(bench.plan(BatchLimits(rows=5))) == [("a", 1, 0, 10, REPLACES)]
    # Nor may a reader leave a part of it to another batch.
    assert bench.enumerator.part_budgets(2, [0]) == {}


def test_what_readers_send_back_replaces_nothing_and_what_was_replaced_stays_away():
    files = {"a": OLD}
    bench = bench_of(files, ledger=POLICY)
    old = bench.plan()
    files["a"] = NEW
    bench.enumerator.snapshot_state(1)
    bench.discover()
    new = bench.plan()
    bench.enumerator.snapshot_state(2)
    bench.enumerator.add_splits_back([*old, *new, retraction_of("b")], 0)
    assert pieces(bench.plan()) == [("a", 2, 0, 100, 0), ("a", 2, 100, 150, 0)]


@pytest.mark.parametrize("policy", [OnOverwrite.REPLACE, OnOverwrite.REPROCESS])
def test_rows_of_a_file_go_with_a_version_that_is_found_after_the_order(policy):
    files = {"a": OLD, "b": file("b")}
    bench = bench_of(files, ledger=LedgerPolicy(on_overwrite=policy))
    bench.plan()
    bench.enumerator.snapshot_state(1)
    bench.enumerator.requeue_splits([retraction_of("a")])
    files["a"] = NEW
    bench.discover()
    assert pieces(bench.plan()) == [("a", 2, 0, 100, REPLACES), ("a", 2, 100, 150, 0)]


def test_a_version_that_is_found_before_an_order_is_carried_out_is_read():
    files = {"a": OLD, "b": file("b")}
    bench = bench_of(files, ledger=POLICY)
    chain = [document(1, bench.enumerator.snapshot_state(1), bench.plan())]
    files["a"] = NEW
    again = bench_of(files, folded(chain, details=True), ledger=POLICY)
    # The order is older: it was given while the query did not run.
    again.enumerator.requeue_splits([retraction_of("a"), retraction_of("b")])
    assert pieces(again.plan()) == [
        ("b", -1, 0, 1, RETRACTS),
        ("a", 2, 0, 100, REPLACES),
        ("a", 2, 100, 150, 0),
    ]


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.sampled_from("ab"), st.sampled_from([40, 150, 250])),
        st.tuples(st.just("retract"), st.sampled_from("ab"), st.just(0)),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(1, 20)),
        st.tuples(st.just("discover"), st.just(""), st.just(0)),
        st.tuples(
            st.just("batch"), st.sampled_from(["", "0", "1", "01"]), st.sampled_from([60, 300])
        ),
        st.tuples(st.just("count"), st.just(""), st.just(0)),
        st.tuples(st.just("crash"), st.just(""), st.integers(0, 2)),
        st.tuples(st.just("base"), st.just(""), st.just(0)),
    ),
    min_size=6,
    max_size=25,
)


class Table(Query):
    """A query and its table: the bytes that it has of each file."""

    def __init__(self):
        super().__init__()
        self.rows, self.retracted, self.clock = {}, {}, 0

    def deliver(self, name, size):
        self.clock += 1
        self.files[name] = file(name, size, self.clock * SECOND)

    def wait(self, _, seconds):
        self.now += seconds

    def retract(self, name, _):
        # An order about the version that the state knows: it is carried out when all of what was
        # in flight is counted.
        if name in self.files:
            self.discover()
            self.cut()
            self.count()
            self.bench.enumerator.requeue_splits([retraction_of(name)])
            self.retracted[name] = self.files[name]
            self.batch("", 300)

    def batch(self, sent_back, size):
        """Readers send back pieces by the parity of their place; what they say is counted later."""
        if len(self.commits) > 1:
            self.count()
        if size == 300:
            self.discover()
        assigned = self.bench.plan(BatchLimits(bytes=size))
        self.cut(assigned)
        keys = {split.file.path for split in assigned if split.replaces}
        assert keys in (set(), {split.file.path for split in assigned})
        for key in keys:
            self.rows[key] = []
        back, events = [], []
        for split in assigned:
            if split.replaces == RETRACTS or split.file == self.files.get(split.file.path):
                if str(split.start // 100 % 2) in sent_back:
                    back.append(split)
                elif split.replaces != RETRACTS:
                    self.rows.setdefault(split.file.path, []).append(split[:3])
            elif split.file.path not in self.files:
                # The query fails until the file is there again, or an order gives it up.
                continue
            else:
                events.append(replaced(split.file, self.files[split.file.path]))
        self.commits.append([self.number, back, events, [], False])
        return assigned

    def crash(self, _, plans):
        if plans:
            self.bench.plan()
        super().crash()
        self.count()

    def check(self):
        for _ in range(3):
            # Until what is gone is absent for long enough.
            self.discover()
            self.wait("", 11)
        for _ in range(100):
            self.discover()
            self.count()
            if not self.batch("", 300) and not len(self.bench.enumerator.ledger.pending):
                break
        assert [name for name in self.rows if self.rows[name] and name not in self.files] == []
        for name, version in self.files.items():
            at = 0
            for split in sorted(self.rows.get(name, [])):
                assert (split[0], split[1]) == (version, at)
                at = split[2]
            gone = self.retracted.get(name) == version
            assert at == (0 if gone else version.size)


@given(DEEDS)
@settings(max_examples=250, deadline=None)
def test_the_table_has_each_file_once_in_the_version_that_is_there(deeds):
    table = Table()
    for deed, name, number in deeds:
        getattr(table, deed)(name, number)
    table.check()


def test_a_whole_version_that_replaces_is_planned_without_limits():
    bench = bench_of({"a": OLD}, ledger=POLICY)
    bench.plan()
    bench.enumerator.snapshot_state(1)
    bench.enumerator.requeue_splits([whole(OLD)._replace(replaces=REPLACES)])
    assert len(bench.plan(UNLIMITED)) == 3


def test_a_file_that_is_gone_takes_its_rows_along_after_the_delay_also_over_restarts():
    files, now = {"a": file("a"), "b": file("b")}, [0]
    written = Attachments(MemoryStateStore(), 1)
    bench = bench_of(files, ledger=DELETING, clock=lambda: now[0], attachments=written)
    chain = [document(1, bench.enumerator.snapshot_state(1), bench.plan())]
    del files["a"]
    bench.discover()
    assert bench.enumerator.wants_checkpoint
    chain.append(document(2, bench.enumerator.snapshot_state(2)))
    assert not bench.enumerator.wants_checkpoint
    now[0] = 9
    bench.discover()
    assert bench.plan() == []
    state = folded(chain, written, details=True)
    again = bench_of(files, state, DELETING, lambda: now[0], written)
    now[0] = 10
    again.discover()
    assert again.plan() == [retraction_of("a")]
    chain.append(document(3, again.enumerator.snapshot_state(3), [retraction_of("a")]))
    now[0] = 100
    again.discover()
    assert again.plan() == []
    # None is absent any more.
    absent = again.enumerator.snapshot_state(4).absent
    assert len(AbsentFiles.from_bytes(written.read(absent)).names) == 0
    # A file that comes back is read, also by a query that has seen it go before it was started.
    files["a"] = file("a")
    last = bench_of(files, folded(chain, written, details=True), LedgerPolicy(retracts=True))
    assert pieces(last.plan()) == [("a", 0, 0, 10, REPLACES)]


def test_a_file_that_is_there_although_no_listing_has_it_keeps_its_rows():
    files, now = {"a": file("a"), "b": file("b")}, [0]
    bench = bench_of(files, ledger=DELETING, clock=lambda: now[0])
    bench.plan()
    bench.enumerator._discovery._files = lambda: [file("b")]
    for _ in range(3):
        bench.discover()
        now[0] += 11
    assert bench.plan() == []


def test_a_pass_that_fails_says_nothing_of_what_is_gone():
    files, now = {"a": file("a"), "b": file("b")}, [0]
    bench = bench_of(files, ledger=DELETING, clock=lambda: now[0])
    bench.plan()
    del files["a"]

    def broken():
        raise OSError("no answer")

    bench.enumerator._discovery._files = broken
    for _ in range(2):
        bench.discover()
        now[0] += 11
    bench.enumerator._discovery._files = files.values
    bench.discover()
    assert bench.plan() == []

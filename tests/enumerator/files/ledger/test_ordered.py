"""Orders in the ledger: bytes read again or dropped, the same in memory and in every chain."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files.ledger.byte_ranges import byte_ranges_of
from pyspark_sluice.enumerator.files.ledger.file_state import FileState
from pyspark_sluice.enumerator.files.ledger.ledger import Ledger, LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.tests.enumerator.files.bench import document, folded, found

pytestmark = pytest.mark.slow

SIZE = 6
FILES = [FileVersion(name, SIZE, at) for at, name in enumerate("abc")]

NAMES = st.integers(0, 2)
BORDERS = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted)
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("find"), NAMES, BORDERS),
        st.tuples(st.just("take"), NAMES, BORDERS),
        st.tuples(st.just("return"), NAMES, BORDERS),
        st.tuples(st.just("requeue"), NAMES, BORDERS),
        st.tuples(st.just("forget"), NAMES, BORDERS),
        st.tuples(st.just("cut"), NAMES, BORDERS),
        st.tuples(st.just("base"), NAMES, BORDERS),
    ),
    max_size=30,
)


def bytes_of(splits):
    return [(s.file.path, at) for s in splits for at in range(s.start, s.end)]


def enter(ledger, *files):
    ledger.enter(ledger.select_new([found(files)], 1))


class Model:
    """A ledger and its chain next to a plain set of bytes."""

    def __init__(self, policy):
        self.policy = policy
        self.ledger = Ledger(policy)
        self.pending, self.read = set(), set()
        self.attachments = Attachments(MemoryStateStore(), 1)
        self.chain, self.assigned, self.number = [], [], 0

    def find(self, file, _start, _end):
        if not self.ledger.seen.are_known([file.path])[0]:
            self.pending.update((file.path, at) for at in range(SIZE))
        enter(self.ledger, file)

    def take(self, _file, start, end):
        split = self.ledger.pending.first()
        if split is None:
            return
        length = max(1, min(split.length, end - start))
        rest = split._replace(start=split.start + length) if length < split.length else None
        self.ledger.pending.take(rest)
        taken = FileSplit(split.file, split.start, split.start + length)
        self.assigned.append(taken)
        self.pending.difference_update(bytes_of([taken]))

    def return_(self, file, start, end):
        """A reader sends back what it was given in a checkpoint before, and is pending no more."""
        back = {(file.path, at) for at in range(start, end)}
        if start < end and back <= self.read and back.isdisjoint(bytes_of(self.assigned)):
            self.ledger.put_back([FileSplit(file, start, end)])
            self.pending |= back

    def requeue(self, file, start, end):
        # Orders are carried out before anything is planned.
        if start < end and not self.assigned:
            self.ledger.requeue([FileSplit(file, start, end)], 1)
            self.pending.update((file.path, at) for at in range(start, end))

    def forget(self, file, start, end):
        if start < end and not self.assigned:
            self.ledger.forget([FileSplit(file, start, end)], 1)
            self.pending.difference_update((file.path, at) for at in range(start, end))

    def cut(self):
        self.number += 1
        self.chain.append(document(self.number, self.ledger.snapshot(self.number), self.assigned))
        # No reader has what no checkpoint has.
        self.read.update(bytes_of(self.assigned))
        self.assigned = []

    def base(self):
        self.cut()
        written = self.ledger.freeze().write(self.attachments)
        state = FileState(written.rows)
        self.chain = [document(self.number, state, (), written.attachments)]

    def check(self):
        in_memory = sorted(bytes_of(self.ledger.pending))
        assert in_memory == sorted(self.pending)
        assert self.ledger.pending.bytes == len(self.pending)
        assert len(self.ledger.pending) == len(list(self.ledger.pending))
        if self.chain and not self.assigned:
            details = self.policy.on_overwrite is not OnOverwrite.IGNORE
            state = folded(self.chain, self.attachments, details=details)
            assert sorted(bytes_of(state)) == in_memory
            paths = [file.path for file in FILES]
            again = Ledger(self.policy, state).seen.are_known(paths).tolist()
            assert again == self.ledger.seen.are_known(paths).tolist()


@given(DEEDS, st.sampled_from([OnOverwrite.IGNORE, OnOverwrite.REPROCESS]))
@settings(max_examples=60)
def test_memory_and_chain_agree_after_any_orders(deeds, on_overwrite):
    model = Model(LedgerPolicy(on_overwrite=on_overwrite))
    for deed, which, (start, end) in deeds:
        if deed in ("cut", "base"):
            getattr(model, deed)()
            model.check()
        elif deed == "return":
            # What comes back was made pending by an order meanwhile, or not: it is a set.
            file = FILES[which]
            pending = {at for path, at in model.pending if path == file.path}
            overlap = pending.intersection(range(start, end))
            if not overlap or file in model.ledger._ordered:
                model.return_(file, start, end)
        else:
            getattr(model, deed)(FILES[which], start, end)
        assert sorted(bytes_of(model.ledger.pending)) == sorted(model.pending)
    model.cut()
    model.check()


def test_a_replaced_file_that_is_ordered_again_is_not_found_a_second_time():
    """The listing has it in its hands while the order is carried out."""
    ledger = Ledger(LedgerPolicy(on_overwrite=OnOverwrite.REPROCESS))
    enter(ledger, FILES[0])
    ledger.pending.take(None)
    newer = FILES[0]._replace(modified=99, size=8)
    in_hand = ledger.select_new([found([newer])], 1)
    ledger.requeue([FileSplit(newer, 0, 8)], 1)
    ledger.enter(in_hand)
    assert byte_ranges_of(ledger.pending) == {newer: [(0, 8)]}
    enter(ledger, newer)
    assert len(ledger.pending) == 1
    # And what is written down says that this version is known.
    state = folded([document(1, ledger.snapshot(1))], details=True)
    again = Ledger(LedgerPolicy(on_overwrite=OnOverwrite.REPROCESS), state)
    enter(again, newer)
    assert len(again.pending) == 1


def test_a_file_that_is_forgotten_before_it_is_found_stays_forgotten():
    ledger = Ledger(LedgerPolicy())
    in_hand = ledger.select_new([found([FILES[0]])], 1)
    ledger.forget([FileSplit(FILES[0], 0, SIZE)], 1)
    ledger.enter(in_hand)
    enter(ledger, FILES[0])
    assert len(ledger.pending) == 0
    state = folded([document(1, ledger.snapshot(1))])
    assert Ledger(LedgerPolicy(), state).seen.are_known(["a"]).tolist() == [True]


def test_bytes_and_rows_of_what_is_pending_are_counted_after_a_withdrawal():
    ledger = Ledger(LedgerPolicy())
    enter(ledger, *FILES)
    ledger.forget([FileSplit(FILES[1], 2, 4)], 1)
    assert ledger.pending.bytes == 3 * SIZE - 2
    assert len(ledger.pending) == len(list(ledger.pending)) == 4
    order = []
    while (split := ledger.pending.first()) is not None:
        order.append((split.file.path, split.start, split.end))
        ledger.pending.take(None)
    assert order == [("a", 0, 6), ("b", 0, 2), ("b", 4, 6), ("c", 0, 6)]
    assert ledger.pending.bytes == 0

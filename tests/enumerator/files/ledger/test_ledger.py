"""The ledger: what is found, taken, written down and restored, against plain lists and sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.files.file_columns import ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.index.fingerprints import Names, SeenKeys, names_of, versions_in
from pyspark_sluice.checkpoint_meta.index.run import Run, read_files, read_keys, write_keys
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files.ledger import pending as pending_ranges
from pyspark_sluice.enumerator.files.ledger.file_state import FileState
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import Ledger, LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder, FileOrder, PendingRanges
from pyspark_sluice.enumerator.files.ledger.seen_files import SeenFiles
from pyspark_sluice.errors import FileChangedError
from pyspark_sluice.tests.enumerator.files.bench import document, file, folded, found, times

pytestmark = pytest.mark.slow

FILES = [FileVersion(name, 8, 0) for name in "abc"]
A = FILES[0]


def seen_in(state):
    return SeenFiles(state.runs, state.tails, details=True)


def enter(ledger, *files, wanted=True):
    sifted = ledger.select_new([found(files)], 1, wanted=wanted)
    ledger.enter(sifted)
    return sifted


def drain(ledger):
    taken = []
    while (split := ledger.pending.first()) is not None:
        ledger.pending.take(None)
        taken.append(split)
    return taken


# Keys -----------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.text("ab/é", max_size=4), max_size=20), max_size=5))
@settings(max_examples=60)
def test_merged_keys_find_what_a_dictionary_does_and_the_newest_entry_counts(parts):
    model = {}
    made = []
    for number, paths in enumerate(parts):
        model.update(dict.fromkeys(paths, number))
        numbers = np.full(len(paths), number)
        made.append(SeenKeys.sort(names_of(paths), numbers.astype(np.uint64), numbers))
    merged = read_keys(write_keys(SeenKeys.merge(made))) if made else SeenKeys.merge(made)
    assert len(merged) == len(model)
    asked = [*model, "absent", "x"]
    at = merged.find(names_of(asked))
    assert merged.end is not None
    assert [int(merged.end[i]) if i >= 0 else None for i in at] == [model.get(p) for p in asked]


def test_names_that_share_half_their_fingerprint_are_distinguished():
    high = np.array([7, 7, 7, 9], np.uint64)
    low = np.array([3, 1, 2, 1], np.uint64)
    keys = SeenKeys.sort(Names(high, low), None, None)
    assert (keys.find(Names(high, low)) >= 0).all()
    absent = Names(np.array([7, 9], np.uint64), np.array([4, 2], np.uint64))
    assert keys.find(absent).tolist() == [-1, -1]


# Pending --------------------------------------------------------------------------------------


SPLITS = st.builds(
    lambda name, modified, start: FileSplit(
        file(f"date=2026-01-{31 - name:02}/f{name}", 9, modified), start, 9
    ),
    st.integers(0, 30),
    st.integers(0, 3),
    st.integers(0, 8),
)


ORDERS = [FileOrder.MTIME, FileOrder.NAME, FileOrder.NEWEST_FIRST, EventTimeOrder(times())]


@given(
    order=st.sampled_from(ORDERS),
    groups=st.lists(st.lists(SPLITS, max_size=6), max_size=12),
    lasts=st.lists(st.booleans(), max_size=80),
    small=st.sampled_from([0, 20_000]),
)
@settings(max_examples=40)
def test_ranges_come_in_order_from_either_end_however_they_were_added(order, groups, lasts, small):
    """Few ranges are sorted one by one, many by columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending_ranges, "_SMALL", small)
        check_order(order, groups, lasts)


def check_order(order, groups, lasts):
    pending, model = PendingRanges(order), []
    for number, group in enumerate(groups):
        new = list(dict.fromkeys(split for split in group if split not in model))
        if new:
            pending.add(ranges_of(new))
        model += new
        if lasts and model:
            last = lasts.pop()
            expected = (max if last else min)(model, key=order.key)
            assert (pending.last() if last else pending.first()) == expected
            rest = expected._replace(start=expected.start + 1) if number % 2 else None
            if rest is not None and (rest in model or rest.length == 0):
                rest = None
            pending.take(rest, last=last)
            model.remove(expected)
            model += [rest] if rest is not None else []
        assert len(pending) == len(model)
        assert pending.bytes == sum(split.length for split in model)
    taken = []
    while (split := pending.first()) is not None:
        pending.take(None)
        taken.append(split)
    assert taken == sorted(model, key=order.key)


def test_many_small_additions_are_kept_in_few_chunks():
    pending = PendingRanges()
    for number in range(500):
        pending.add(ranges_of([FileSplit(file(f"{number:03}", modified=number % 7), 0, 10)]))
    assert len(pending._chunks) <= 65
    assert [split.file.modified for split in sorted(pending, key=FileOrder.MTIME.key)] == [
        modified for modified in range(7) for _ in range(500) if _ % 7 == modified
    ]


# Folding --------------------------------------------------------------------------------------


def pending_bytes(state):
    return [(split.file.path, i) for split in state for i in range(split.start, split.end)]


@given(
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(0, 8)), max_size=4),
        max_size=6,
    )
)
@settings(max_examples=50)
def test_folding_equals_a_set_of_bytes(steps):
    """Files become known whole; ranges are assigned and some come back."""
    chain, model, seen, assigned_before = [], set(), set(), []
    for step in steps:
        changes, assigned = [], []
        for number, one, two in step:
            chosen = FILES[number]
            if chosen.path not in seen:
                seen.add(chosen.path)
                changes.append(FileSplit(chosen, 0, chosen.size))
                model |= {(chosen.path, i) for i in range(chosen.size)}
                continue
            start, end = sorted((one, two))
            wanted = {(chosen.path, i) for i in range(start, end)}
            if wanted and wanted <= model:
                assigned.append(FileSplit(chosen, start, end))
                model -= wanted
            elif wanted and not wanted & model and assigned_before:
                back = assigned_before.pop()
                if not set(pending_bytes([back])) & model:
                    changes.append(back)
                    model |= set(pending_bytes([back]))
        assigned_before.extend(assigned)
        chain.append(document(len(chain) + 1, changes, assigned))
        state = folded(chain)
        assert sorted(pending_bytes(state)) == sorted(model)
        assert len(seen_in(state)) == len(seen)
        assert seen_in(state).are_known([f.path for f in FILES]).tolist() == [
            f.path in seen for f in FILES
        ]


def test_a_range_that_comes_back_and_goes_out_again_in_one_checkpoint_is_not_pending():
    chain = [document(1, [], [FileSplit(A, 0, 4), FileSplit(A, 4, 8)])]
    assert list(folded([*chain, document(2, [], [FileSplit(A, 0, 4)])])) == []


def test_a_base_of_version_1_lists_every_file_ever_seen():
    seen_only = [FileSplit(f, f.size, f.size) for f in FILES[1:]]
    state = folded([document(7, [FileSplit(A, 2, 8), *seen_only])])
    assert list(state) == [FileSplit(A, 2, 8)]
    assert seen_in(state).are_known(["a", "b", "c", "d"]).tolist() == [True, True, True, False]


# Files that change ----------------------------------------------------------------------------


def versioned(what, state=None):
    return Ledger(LedgerPolicy(on_overwrite=what), state)


def test_what_is_left_of_a_version_that_was_begun_stays_pending():
    ledger = versioned(OnOverwrite.REPROCESS)
    enter(ledger, file("a", 10, 1))
    rest = FileSplit(file("a", 10, 1), 4, 10)
    ledger.pending.take(rest)
    enter(ledger, file("a", 12, 2))
    assert [(split.file.size, split.start) for split in drain(ledger)] == [(10, 4), (12, 0)]


def test_a_change_is_an_error_on_demand():
    ledger = versioned(OnOverwrite.FAIL)
    enter(ledger, file("a", 10, 1, "x"), file("b"))
    enter(ledger, file("a", 10, 1, "x"), file("b"))
    with pytest.raises(FileChangedError, match=r"has changed: a; found another version of 10"):
        enter(ledger, file("b"), file("a", 10, 1, "y"))


@pytest.mark.parametrize("details", [False, True])
def test_known_files_that_are_there_in_another_version_are_found_with_or_without_versions(details):
    listed = [file(name, 10, 5_000_000, "e") for name in "abcd"]
    versions = versions_in(ranges_of([FileSplit(one, 0, 10) for one in listed]))
    keys = SeenKeys.sort(names_of("abcd"), versions, np.full(4, 10))
    seen = SeenFiles([Run(keys, ())], details=details)
    # A time of the same second is the same time, which another request gives in microseconds.
    now = [listed[0], file("b", 11, 5_000_000, "e"), file("c", 10, 5_000_001, "e"), file("x")]
    flags = seen.compare(found([*now, file("d", 10, 5_000_000, "f")]))
    expected = [[True, True, True, False, True], [False, True, False, False, True]]
    assert [flag.tolist() for flag in flags] == expected


def test_a_state_says_the_same_before_and_after_it_was_written_in_runs():
    store = MemoryStateStore()
    attachments = Attachments(store, 3)
    policy = LedgerPolicy(merging=MergePolicy(flush_at=1, fan_in=2, longest=1000))
    ledger, known = Ledger(policy), []
    state = FileState()
    for number in range(12):
        new = [file(f"{number}-{i}", modified=i) for i in range(number + 1)]
        known += new
        enter(ledger, *new)
        changes = ledger.snapshot(number + 1)
        enter(ledger, file(f"later-{number}"))
        known.append(file(f"later-{number}"))
        if number % 4 == 0:
            ledger.pending.take(None)
        frozen = ledger.freeze()
        if number % 3 == 2:
            # Sealed as part of something else while it waited.
            ledger.snapshot(100 + number)
        written = frozen.write(attachments)
        while improve := ledger.improve():
            improve(attachments)
        base = document(number + 1, FileState(written.rows), (), written.attachments)
        state = folded([base], attachments)
        assert len(seen_in(state)) == len(known)
        assert len(seen_in(state)) == len(ledger.seen)
        assert sorted(state) == sorted(ledger.pending)
        assert changes is not None
    assert len(ledger.seen.runs) <= 4
    assert ledger.seen.are_known([f.path for f in known]).all()
    in_files = [
        path
        for run in state.runs
        for batch in read_files(attachments.read(run.attachments[1]))
        for path in batch.column("path").to_pylist()
    ]
    assert sorted(in_files) == sorted(f.path for f in known)


def test_what_is_found_after_the_cut_is_in_no_run_of_that_base():
    attachments = Attachments(MemoryStateStore(), 1)
    ledger = Ledger(LedgerPolicy())
    enter(ledger, file("before"))
    ledger.snapshot(1)
    frozen = ledger.freeze()
    enter(ledger, file("after"))
    written = frozen.write(attachments)
    state = folded([document(1, FileState(written.rows), (), written.attachments)], attachments)
    assert seen_in(state).are_known(["before", "after"]).tolist() == [True, False]
    assert ledger.seen.are_known(["before", "after"]).all()


def test_a_file_that_a_listing_comes_upon_twice_is_entered_once():
    ledger = Ledger(LedgerPolicy())
    enter(ledger, file("a"), file("b"), file("a"))
    enter(ledger, file("b"), file("c"))
    assert [split.file.path for split in drain(ledger)] == ["a", "b", "c"]
    assert len(ledger.seen) == 3

"""Folding of the file enumerator's changes, against a set of single bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.splits import FileSplit, FileVersion
from pyspark_sluice.enumerator.files.state import advance, seen_only

FILES = [FileVersion(name, 8, 0) for name in "abc"]
A = FILES[0]


def pending_bytes(state):
    return [(split.file.path, i) for split in state for i in range(split.start, split.end)]


@given(
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(0, 8)), max_size=4),
        max_size=6,
    )
)
def test_folding_equals_a_set_of_bytes(steps):
    """Files become known whole; ranges are assigned and some come back."""
    state, model, seen, assigned_before = None, set(), set(), []
    for step in steps:
        changes, assigned = [], []
        for number, one, two in step:
            file = FILES[number]
            if file.path not in seen:
                seen.add(file.path)
                changes.append(FileSplit(file, 0, file.size))
                model |= {(file.path, i) for i in range(file.size)}
                continue
            start, end = sorted((one, two))
            wanted = {(file.path, i) for i in range(start, end)}
            if wanted and wanted <= model:
                assigned.append(FileSplit(file, start, end))
                model -= wanted
            elif wanted and not wanted & model and assigned_before:
                back = assigned_before.pop()
                if not set(pending_bytes([back])) & model:
                    changes.append(back)
                    model |= set(pending_bytes([back]))
        before = [(split.file, split.start, split.end) for split in state or ()]
        following = advance(state, changes, assigned)
        assert [(split.file, split.start, split.end) for split in state or ()] == before
        state = following
        assigned_before.extend(assigned)
        assert sorted(pending_bytes(state)) == sorted(model)
        assert {split.file.path for split in state} == seen


def test_a_file_assigned_in_the_checkpoint_that_found_it_is_remembered_as_seen():
    assert advance(None, [], [FileSplit(A, 0, 8)]) == [seen_only(FileSplit(A, 0, 8))]


def test_a_file_assigned_in_part_keeps_the_rest():
    state = advance(None, [FileSplit(A, 3, 8)], [FileSplit(A, 0, 3)])
    assert state == [FileSplit(A, 3, 8)]
    state = advance(state, [], [FileSplit(A, 3, 5)])
    assert state == [FileSplit(A, 5, 8)]
    state = advance(state, [], [FileSplit(A, 5, 8)])
    assert state == [FileSplit(A, 8, 8)]


def test_a_range_that_comes_back_is_pending_again():
    state = advance(None, [], [FileSplit(A, 0, 8)])
    state = advance(state, [FileSplit(A, 0, 8)], [])
    assert state == [FileSplit(A, 0, 8)]


def test_a_range_that_comes_back_and_goes_out_again_in_one_checkpoint_is_not_pending():
    state = advance(None, [], [FileSplit(A, 0, 4), FileSplit(A, 4, 8)])
    state = advance(state, [], [FileSplit(A, 0, 4)])
    assert state == [FileSplit(A, 8, 8)]

"""SplitAssignmentTracker: Flink's SplitAssignmentTrackerTest and what is ours."""

from __future__ import annotations

import pytest

from pyspark_sluice.enumerator import SplitAssignmentTracker


def assign(tracker, subtasks, start):
    """Give k + 1 consecutive split ids to subtask k."""
    following = iter(range(start, start + 100))
    tracker.record({k: [next(following) for _ in range(k + 1)] for k in range(subtasks)})


@pytest.fixture
def tracker():
    return SplitAssignmentTracker()


@pytest.fixture
def two_checkpoints(tracker):
    assign(tracker, 2, 0)
    tracker.on_checkpoint(100)
    assign(tracker, 2, 3)
    tracker.on_checkpoint(101)
    return tracker


def test_assignments_add_up_in_order(tracker):
    """testRecordIncrementalSplitAssignment."""
    assign(tracker, 3, 0)
    assign(tracker, 2, 6)
    assert tracker.uncheckpointed == {0: [0, 6], 1: [1, 2, 7, 8], 2: [3, 4, 5]}


def test_a_checkpoint_takes_what_was_assigned_before_it(tracker):
    """testOnCheckpoint."""
    assign(tracker, 3, 0)
    tracker.on_checkpoint(123)
    assert tracker.uncheckpointed == {}
    assert tracker.by_checkpoint == {123: {0: [0], 1: [1, 2], 2: [3, 4, 5]}}


def test_a_checkpoint_without_assignments_has_an_empty_bucket(tracker):
    tracker.on_checkpoint(7)
    assert tracker.by_checkpoint == {7: {}}


def test_completion_forgets_that_checkpoint_and_keeps_later_ones(two_checkpoints):
    """testOnCheckpointComplete."""
    two_checkpoints.on_checkpoint_complete(100)
    assert two_checkpoints.by_checkpoint == {101: {0: [3], 1: [4, 5]}}


def test_completion_forgets_earlier_checkpoints_too(two_checkpoints):
    two_checkpoints.on_checkpoint_complete(101)
    assert two_checkpoints.by_checkpoint == {}


def test_the_cut_gets_what_it_assigns(tracker):
    assign(tracker, 2, 0)
    assert tracker.on_checkpoint(100) == {0: [0], 1: [1, 2]}


def test_a_reopened_checkpoint_goes_into_the_next_one_ahead_of_later_assignments(two_checkpoints):
    assign(two_checkpoints, 1, 6)
    two_checkpoints.reopen(101)
    assert two_checkpoints.uncheckpointed == {0: [3, 6], 1: [4, 5]}
    assert two_checkpoints.by_checkpoint == {100: {0: [0], 1: [1, 2]}}


def test_an_assignment_is_copied_when_it_is_recorded(tracker):
    splits = [1]
    tracker.record({0: splits})
    splits.append(2)
    assert tracker.uncheckpointed == {0: [1]}

"""The gateway of one reader, as the list of checkpoints in flight shows it.

Flink's SubtaskGatewayImplTest and SplitAssignmentTrackerTest, and the cases of the holder's test
that concern one reader.
"""

import re

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyspark_sluice.checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    CustomEvent,
)
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_IDENTITY, CheckpointRef
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchLimits
from pyspark_sluice.enumerator.coordinator.in_flight import CheckpointsInFlight, Stage
from pyspark_sluice.enumerator.coordinator.subtask_gateway import Gateways
from pyspark_sluice.errors import ProtocolError

SPLITS = pa.record_batch({"json": ["1"]})


class Readers:
    """Some readers, each with a split in every checkpoint, and the list of what is in flight."""

    def __init__(self, readers=(0,), limits=UNLIMITED):
        self.flight = CheckpointsInFlight(NO_IDENTITY, 1, limits)
        self.gateways = Gateways(self.flight)
        self.readers = readers

    def send(self, event, reader=0):
        self.gateways[reader].send(CustomEvent(event=event))

    def cut(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self.flight._last_id = checkpoint_id - 1
        for reader in self.readers:
            self.gateways[reader].send(SPLITS)
        ref = self.flight.new_ref()
        header = CheckpointHeader(
            kind="delta", checkpoint=ref.checkpoint, epoch=1, lineage="0" * 16, enumerator="e",
            split_version=1, state_version=1, created=0, assigned_splits=1, state_rows=0,
        )  # fmt: skip
        self.flight.cut(Checkpoint(header, SPLITS.schema, SPLITS.schema))
        return ref

    def commit(self, checkpoint_id, reader=0):
        return self.gateways[reader].open(CheckpointRef(checkpoint_id, 1))

    def abort(self, checkpoint_id):
        self.flight.abort(CheckpointRef(checkpoint_id, 1))

    def complete(self, ref):
        record = self.flight.find(ref)
        record.stage = Stage.HANDED_OUT
        self.flight.advance(ref, "")

    def delivered(self, reader=0):
        """What the reader may have by now, in order."""
        return [
            event
            for record in [*self.flight.cut_records, self.flight.open_record]
            if self.gateways[reader].held_under(record) is None
            for event in record.events(reader)
        ]


@pytest.fixture
def one():
    return Readers()


COURSES = {
    "eventsPassThroughOpenGateway": "send a, gets a",
    "closingMarkedGateway, eventsBlockedByClosedGateway": "cut, send a, gets, commit 1, gets a",
    "eventsBeforeCheckpointFutureCompletionPassThrough": "send a, cut, gets a",
    "abortedCheckpointReleasesBlockedEvents": "cut, send a, abort 1, gets a",
    "acknowledgeCheckpointEventReleasesBlockedEvents": "cut, send a, complete 1, gets a",
    "takeCheckpointAfterSuccessfulCheckpoint": (
        "send a, cut, send b, commit 1, send c, cut, send d, gets abc, commit 2, gets abcd"
    ),
    "takeCheckpointAfterAbortedCheckpoint": (
        "send a, cut, send b, abort 1, send c, cut, send d, gets abc, commit 2, gets abcd"
    ),
    "FLINK-28941, commits out of order": (
        "cut, send a, cut, send b, cut, send c, commit 3, commit 2, gets, commit 1, gets abc"
    ),
    "FLINK-28941, commits in order": (
        "cut, send a, cut, send b, commit 1, gets a, commit 2, gets ab"
    ),
}
"""Case of Flink's tests -> what happens, and what the reader may have by then."""


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_a_reader_gets_the_events_that_it_gets_in_flink_s_case(one, course):
    cuts = []
    for step in course.split(", "):
        verb, _, value = step.partition(" ")
        if verb == "gets":
            assert one.delivered() == list(value), step
        elif verb == "send":
            one.send(value)
        elif verb == "cut":
            cuts.append(one.cut(len(cuts) + 1))
        elif verb == "complete":
            one.complete(cuts[int(value) - 1])
        else:
            getattr(one, verb)(int(value))


def test_an_id_that_was_never_cut_is_a_protocol_error(one):
    one.cut(5)
    expected = "found checkpoint 6 of epoch 1; expected at most checkpoint 5"
    with pytest.raises(ProtocolError, match=re.escape(expected)):
        one.commit(6)
    with pytest.raises(ProtocolError):
        Readers().commit(1)


def test_a_late_a_repeated_and_an_aborted_commit_do_nothing(one):
    one.cut(5)
    assert one.commit(5)
    one.cut(6)
    one.abort(6)
    one.cut(7)
    one.send("e")
    assert [one.commit(late) for late in (5, 5, 6)] == [False, False, False]
    assert one.delivered() == []


# Assignments: SplitAssignmentTrackerTest ------------------------------------------------------


def numbered(count, start):
    return pa.record_batch({"json": [str(start + i) for i in range(count)]})


def splits_of(record, reader):
    return [value for batch in record.splits(reader) for value in batch["json"].to_pylist()]


def test_assignments_add_up_in_order_and_a_checkpoint_takes_what_was_sent_before_it(one):
    """testRecordIncrementalSplitAssignment, testOnCheckpoint."""
    one.gateways[0].send(numbered(1, 0))
    one.gateways[1].send(numbered(2, 1))
    one.gateways[0].send(numbered(1, 6))
    assert splits_of(one.flight.open_record, 0) == ["0", "6"]
    assert splits_of(one.flight.open_record, 1) == ["1", "2"]
    one.cut(1)
    one.gateways[0].send(numbered(1, 5))
    assert splits_of(one.flight.cut_records[0], 0) == ["0", "6", "1"]
    assert splits_of(one.flight.open_record, 0) == ["5"]


def test_completion_completes_that_checkpoint_and_all_before_it(one):
    """testOnCheckpointComplete."""
    first, second, third = one.cut(), one.cut(), one.cut()
    for ref in (first, second, third):
        one.flight.find(ref).stage = Stage.HANDED_OUT
    one.flight.advance(second, "")
    stages = [record.stage for record in one.flight.cut_records]
    assert stages == [Stage.COMPLETE, Stage.COMPLETE, Stage.HANDED_OUT]


def test_what_an_aborted_checkpoint_took_of_the_limits_is_taken_of_the_next_one():
    readers = Readers(limits=BatchLimits(files=2))
    flight = readers.flight
    flight.open_record.budget.take("a", 1)
    readers.cut(1)
    flight.open_record.budget.take("b", 1)
    readers.abort(1)
    assert (flight.open_record.budget.files, flight.open_record.budget.is_full) == (2, True)


class GatewayMachine(RuleBasedStateMachine):
    """Against a model without lists by id: an event waits for every open cut before its send."""

    def __init__(self):
        super().__init__()
        self.readers = Readers()
        self.sent = []
        self.closed = []

    @precondition(lambda self: len(self.closed) < 6)
    @rule()
    def cut(self):
        self.closed.append(self.readers.cut().checkpoint)

    @rule()
    def send(self):
        self.sent.append((len(self.sent), set(self.closed)))
        self.readers.send(len(self.sent) - 1)

    @precondition(lambda self: self.closed)
    @rule(pick=st.integers(0, 5))
    def commit(self, pick):
        checkpoint = self.closed.pop(pick % len(self.closed))
        self.readers.commit(checkpoint)

    @precondition(lambda self: self.closed)
    @rule(pick=st.integers(0, 5))
    def abort(self, pick):
        checkpoint = self.closed[pick % len(self.closed)]
        self.readers.abort(checkpoint)
        self.closed = [known for known in self.closed if known < checkpoint]

    @invariant()
    def delivered_is_what_nothing_holds(self):
        free = [event for event, waits_for in self.sent if not waits_for & set(self.closed)]
        assert self.readers.delivered() == free


TestGatewayAgainstModel = GatewayMachine.TestCase

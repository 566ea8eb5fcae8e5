"""SubtaskGateway: Flink's SubtaskGatewayImplTest, and what of the holder's test concerns it.

The name of Flink's case stands in each docstring.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pyspark_sluice.enumerator import SubtaskGateway
from pyspark_sluice.errors import ProtocolError


class Reader:
    """A gateway and what came through it."""

    def __init__(self):
        self.delivered = []
        self.gateway = SubtaskGateway(self.delivered.append)

    def cut(self, checkpoint_id):
        self.gateway.mark(checkpoint_id)
        assert self.gateway.close(checkpoint_id)


@pytest.fixture
def reader():
    return Reader()


# flink-protocol 6.1 -------------------------------------------------------------------------


def test_events_pass_through_an_open_gateway(reader):
    """eventsPassThroughOpenGateway."""
    sent = reader.gateway.send("e")
    assert reader.delivered == ["e"]
    assert sent.done()
    assert sent.exception() is None


def test_closing_a_marked_gateway_succeeds(reader):
    """closingMarkedGateway."""
    reader.gateway.mark(200)
    assert reader.gateway.close(200)


def test_a_gateway_that_is_not_marked_does_not_close(reader):
    """notClosingUnmarkedGateway."""
    assert not reader.gateway.close(123)
    reader.gateway.send("e")
    assert reader.delivered == ["e"]


def test_a_gateway_marked_for_another_checkpoint_does_not_close(reader):
    """notClosingGatewayForOtherMark."""
    reader.gateway.mark(100)
    assert not reader.gateway.close(123)
    reader.gateway.send("e")
    assert reader.delivered == ["e"]


def test_a_closed_gateway_holds_events(reader):
    """eventsBlockedByClosedGateway."""
    reader.cut(1)
    sent = reader.gateway.send("e")
    assert reader.delivered == []
    assert not sent.done()
    assert reader.gateway.held_events == 1


def test_opening_releases_the_events_of_each_reader():
    """eventsReleasedAfterOpeningGateway."""
    delivered = []
    three = SubtaskGateway(lambda event: delivered.append((3, event)))
    zero = SubtaskGateway(lambda event: delivered.append((0, event)))
    for gateway in (three, zero):
        gateway.mark(17)
        gateway.close(17)
    sent = [three.send("e1"), zero.send("e2")]
    three.open_all()
    zero.open_all()
    assert delivered == [(3, "e1"), (0, "e2")]
    assert all(future.done() for future in sent)


def test_a_failed_delivery_fails_the_send_and_not_the_opening():
    """releasedEventsForwardSendFailures."""

    def deliver(event):
        raise ConnectionError(event)

    gateway = SubtaskGateway(deliver)
    gateway.mark(17)
    gateway.close(17)
    sent = gateway.send("e")
    gateway.open_all()
    assert isinstance(sent.exception(), ConnectionError)


# flink-protocol 6.2, what concerns one gateway ----------------------------------------------


def test_events_before_the_close_pass_through(reader):
    """eventsBeforeCheckpointFutureCompletionPassThrough."""
    reader.gateway.mark(1)
    reader.gateway.send("e1")
    reader.gateway.open(1)
    assert reader.delivered == ["e1"]


def test_events_are_held_after_the_close(reader):
    """eventsAreBlockedAfterCheckpointFutureCompletes."""
    reader.cut(10)
    reader.gateway.send(1337)
    assert reader.delivered == []


@pytest.mark.parametrize("checkpoint_id", [123, 1111])
def test_an_abort_or_an_acknowledgement_releases_held_events(reader, checkpoint_id):
    """abortedCheckpointReleasesBlockedEvents, acknowledgeCheckpointEventReleasesBlockedEvents."""
    reader.cut(checkpoint_id)
    reader.gateway.send(1337)
    reader.gateway.open(checkpoint_id)
    assert reader.delivered == [1337]


def test_a_gateway_made_by_a_restore_is_open():
    """restoreOpensGatewayEvents."""
    old, new = Reader(), Reader()
    old.cut(1000)
    new.gateway.send(999)
    assert new.delivered == [999]
    assert old.delivered == []


def test_a_close_that_comes_after_the_abort_holds_nothing(reader):
    """lateCompleteCheckpointFutureDoesNotBlockEvents."""
    reader.gateway.mark(1000)
    reader.gateway.open(1000)
    reader.cut(1010)
    reader.gateway.open(1010)
    assert not reader.gateway.close(1000)
    reader.gateway.send(123)
    assert reader.delivered == [123]


def test_events_keep_their_order_over_successful_checkpoints(reader):
    """takeCheckpointAfterSuccessfulCheckpoint."""
    reader.gateway.send(0)
    reader.cut(22)
    reader.gateway.send(1)
    reader.gateway.open(22)
    reader.gateway.send(2)
    reader.cut(23)
    reader.gateway.send(3)
    reader.gateway.open(23)
    assert reader.delivered == [0, 1, 2, 3]


def test_events_keep_their_order_over_an_aborted_checkpoint(reader):
    """takeCheckpointAfterAbortedCheckpoint."""
    reader.gateway.send(0)
    reader.cut(22)
    reader.gateway.send(1)
    reader.gateway.open(22)  # aborted, by id
    reader.gateway.send(2)
    reader.cut(23)
    reader.gateway.send(3)
    assert reader.delivered == [0, 1, 2]
    reader.gateway.open(23)
    assert reader.delivered == [0, 1, 2, 3]


def test_each_reader_is_released_by_its_own_acknowledgement():
    """testControlGatewayAtSubtaskGranularity."""
    zero, one = Reader(), Reader()
    for reader in (zero, one):
        reader.cut(1)
    zero.gateway.send(0)
    one.gateway.send(1)
    one.gateway.open(1)
    assert (zero.delivered, one.delivered) == ([], [1])
    zero.gateway.open(1)
    assert zero.delivered == [0]


# flink-protocol 1.1 and 7 -------------------------------------------------------------------


def test_a_new_event_joins_the_newest_closed_checkpoint_and_old_ones_release_only_theirs(reader):
    """FLINK-28941: several checkpoints are closed at once."""
    reader.cut(1)
    reader.gateway.send("a")
    reader.cut(2)
    reader.gateway.send("b")
    reader.gateway.open(1)
    assert reader.delivered == ["a"]
    reader.gateway.open(2)
    assert reader.delivered == ["a", "b"]


def test_opening_a_newer_checkpoint_first_delivers_nothing_and_keeps_the_order(reader):
    reader.cut(1)
    reader.gateway.send("a")
    reader.cut(2)
    reader.gateway.send("b")
    reader.cut(3)
    reader.gateway.send("c")
    reader.gateway.open(3)
    reader.gateway.open(2)
    assert reader.delivered == []
    assert reader.gateway.held_events == 3
    reader.gateway.open(1)
    assert reader.delivered == ["a", "b", "c"]


def test_an_id_that_was_never_seen_is_a_protocol_error(reader):
    reader.cut(5)
    expected = "found checkpoint 6; expected at most checkpoint 5"
    with pytest.raises(ProtocolError, match=re.escape(expected)):
        reader.gateway.open(6)
    with pytest.raises(ProtocolError):
        Reader().gateway.open(1)


def test_a_late_or_repeated_opening_does_nothing(reader):
    reader.cut(5)
    reader.gateway.open(5)
    reader.cut(7)
    reader.gateway.send("e")
    for late in (5, 5, 6):
        reader.gateway.open(late)
    assert reader.delivered == []


def test_an_older_mark_is_ignored(reader):
    reader.gateway.mark(5)
    reader.gateway.mark(4)
    assert not reader.gateway.close(4)
    assert reader.gateway.close(5)


def test_closing_twice_keeps_what_is_held(reader):
    reader.cut(1)
    reader.gateway.send("a")
    assert reader.gateway.close(1)
    reader.gateway.open(1)
    assert reader.delivered == ["a"]


def test_open_all_releases_oldest_first_and_remembers_which_ids_it_has_seen(reader):
    reader.cut(1)
    reader.gateway.send("a")
    reader.cut(2)
    reader.gateway.send("b")
    reader.gateway.open_all()
    assert reader.delivered == ["a", "b"]
    reader.gateway.mark(2)
    assert not reader.gateway.close(2)
    reader.gateway.open(2)


def test_an_event_is_frozen_when_it_is_sent(reader):
    event = {"splits": [1]}
    reader.cut(1)
    reader.gateway.send(event)
    event["splits"].append(2)
    reader.gateway.open(1)
    assert reader.delivered == [{"splits": [1]}]


class GatewayMachine(RuleBasedStateMachine):
    """Against a model without lists by id: an event waits for every close before its send."""

    gateway_class: type[SubtaskGateway[int]] = SubtaskGateway

    def __init__(self):
        super().__init__()
        self.delivered = []
        self.gateway = self.gateway_class(self.delivered.append)
        self.sent = []
        self.closed = set()
        self.marked = set()
        self.latest = 0

    @rule(step=st.integers(1, 2))
    def mark(self, step):
        self.latest += step
        self.gateway.mark(self.latest)
        self.marked.add(self.latest)

    @rule(back=st.integers(0, 4))
    def close(self, back):
        checkpoint = self.latest - back
        if checkpoint < max(self.closed, default=0):
            return  # Checkpoints are cut in the order of their ids.
        assert self.gateway.close(checkpoint) == (checkpoint in self.marked)
        if checkpoint in self.marked:
            self.closed.add(checkpoint)

    @rule()
    def send(self):
        waits_for = set(self.closed)
        self.sent.append((len(self.sent), waits_for))
        self.gateway.send(len(self.sent) - 1)

    @rule(back=st.integers(0, 4))
    def open(self, back):
        checkpoint = self.latest - back
        if self.latest == 0:
            return
        self.gateway.open(checkpoint)
        self.closed.discard(checkpoint)
        self.marked.discard(checkpoint)

    @invariant()
    def delivered_is_what_nothing_holds(self):
        free = [event for event, waits_for in self.sent if not waits_for & self.closed]
        assert self.delivered == free


class OpensTheLast(SubtaskGateway[int]):
    """A planted bug: an abort opens the newest checkpoint instead of the one it names."""

    def open(self, checkpoint_id):
        super().open(max(self._marked, default=checkpoint_id))


class BrokenGatewayMachine(GatewayMachine):
    gateway_class = OpensTheLast


TestGatewayAgainstModel = GatewayMachine.TestCase


def test_the_model_catches_a_gateway_that_opens_the_last_instead_of_by_id():
    from hypothesis import Phase, settings
    from hypothesis.stateful import run_state_machine_as_test

    search = settings(max_examples=500, derandomize=True, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BrokenGatewayMachine, settings=search)

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
        self.gateway.close(checkpoint_id)


@pytest.fixture
def reader():
    return Reader()


# flink-protocol 6.1 -------------------------------------------------------------------------


def test_events_pass_through_an_open_gateway(reader):
    """eventsPassThroughOpenGateway."""
    reader.gateway.send("e")
    assert reader.delivered == ["e"]


def test_a_closed_gateway_holds_events(reader):
    """eventsBlockedByClosedGateway, closingMarkedGateway."""
    reader.cut(1)
    reader.gateway.send("e")
    assert reader.delivered == []
    assert reader.gateway.held_events == 1


def test_opening_releases_the_events_of_each_reader():
    """eventsReleasedAfterOpeningGateway."""
    delivered = []
    three = SubtaskGateway(lambda event: delivered.append((3, event)))
    zero = SubtaskGateway(lambda event: delivered.append((0, event)))
    for gateway in (three, zero):
        gateway.close(17)
    three.send("e1")
    zero.send("e2")
    three.open(17)
    zero.open(17)
    assert delivered == [(3, "e1"), (0, "e2")]


def test_what_need_not_wait_passes_a_closed_gateway_but_never_what_was_sent_before_it(reader):
    reader.cut(1)
    reader.gateway.send("split", waits=False)
    reader.gateway.send("event")
    reader.gateway.send("later split", waits=False)
    assert reader.delivered == ["split"]
    reader.gateway.open(1)
    assert reader.delivered == ["split", "event", "later split"]


# flink-protocol 6.2, what concerns one gateway ----------------------------------------------


def test_events_before_the_close_pass_through(reader):
    """eventsBeforeCheckpointFutureCompletionPassThrough."""
    reader.gateway.send("e1")
    reader.cut(1)
    assert reader.delivered == ["e1"]
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
    reader.cut(1010)
    reader.gateway.open(1010)
    reader.gateway.close(1000)
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


def test_closing_twice_keeps_what_is_held(reader):
    reader.cut(1)
    reader.gateway.send("a")
    reader.cut(1)
    reader.gateway.open(1)
    assert reader.delivered == ["a"]


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
        self.latest = 0

    @rule(step=st.integers(-2, 2))
    def close(self, step):
        checkpoint = max(1, self.latest + step)
        self.gateway.close(checkpoint)
        if checkpoint > self.latest:
            self.closed.add(checkpoint)
            self.latest = checkpoint

    @rule(waits=st.booleans())
    def send(self, waits):
        before = set().union(*(of for _, of in self.sent if of & self.closed))
        waits_for = set(self.closed) if waits or before & self.closed else set()
        self.sent.append((len(self.sent), waits_for))
        self.gateway.send(len(self.sent) - 1, waits=waits)

    @rule(back=st.integers(0, 4))
    def open(self, back):
        checkpoint = self.latest - back
        if not self.closed:
            return
        self.gateway.open(checkpoint)
        self.closed.discard(checkpoint)

    @invariant()
    def delivered_is_what_nothing_holds(self):
        free = [event for event, waits_for in self.sent if not waits_for & self.closed]
        assert self.delivered == free


class OpensTheLast(SubtaskGateway[int]):
    """A planted bug: an abort opens the newest checkpoint instead of the one it names."""

    def open(self, checkpoint_id):
        super().open(max(self._held, default=checkpoint_id))


class BrokenGatewayMachine(GatewayMachine):
    gateway_class = OpensTheLast


TestGatewayAgainstModel = GatewayMachine.TestCase


def test_the_model_catches_a_gateway_that_opens_the_last_instead_of_by_id():
    from hypothesis import Phase, settings
    from hypothesis.stateful import run_state_machine_as_test

    search = settings(max_examples=500, derandomize=True, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BrokenGatewayMachine, settings=search)

"""What is sent to one reader keeps its order and its value, in a checkpoint and after a restart."""

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Continuation, CustomEvent
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    part_of,
    sent_to,
    splits_of,
    stream_of,
)
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import rest
from pyspark_sluice.tests.protocol.numbers import Harness, Number
from pyspark_sluice.tests.protocol.opened import events_in, opened


@pytest.fixture
def query():
    query = Harness()
    query.start()
    return query


def stream(query, start, end, reader=0):
    """The reader's stream of the newest checkpoint, as a task receives it."""
    checkpoint = query.coordinator.assignments(start, end)[-1]
    splits = splits_of(checkpoint, reader, query.source.split_serializer)
    entries = stream_of(sent_to(checkpoint, reader), splits)
    return [
        entry.event
        if isinstance(entry, CustomEvent)
        else entry.split
        if isinstance(entry, Continuation)
        else entry.value
        for entry in entries
    ]


def test_splits_continuations_and_events_keep_their_order_in_a_checkpoint_and_in_its_replay(query):
    context = query.enumerator.context
    context.send_event(0, "schema A")
    context.assign_splits({0: [Number(1), Number(2)]})
    context.send_event(0, "schema B")
    context.assign_splits({0: [Number(3)]})
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert stream(query, NO_CHECKPOINT, first) == ["schema A", 1, 2, "schema B", 3]
    context.assign_splits({0: [Number(4)]})
    assert context.continue_split(0, "n2")
    context.send_event(0, "schema C")
    context.assign_splits({0: [Number(5)]})
    query.acknowledge(first, 0, unfinished=[rest(20, index=1)])
    second = query.coordinator.latest(first)
    expected = [4, "n2", "schema C", 5]
    assert stream(query, first, second) == expected
    sent = opened(query.coordinator).flight.cut_records[-1].stream(0)
    query.restart()
    assert stream(query, first, second) == expected
    assert opened(query.coordinator).flight.cut_records[-1].stream(0) == sent
    (checkpoint,) = query.coordinator.assignments(first, second)
    part = part_of(checkpoint, 0, query.source.split_serializer, query.commits.find)
    assert [split.value for split in part] == [4, 20, 5], "a commit names them by this order"


def test_a_replay_receives_the_value_that_the_first_run_received(query):
    value = {"b": [1, 2.5, None], "a": {"ü": True}}
    query.enumerator.context.send_event(0, value)
    value["b"].append("changed after it was sent")
    query.enumerator.context.assign_splits({0: [Number(1)]})
    first = query.coordinator.latest(NO_CHECKPOINT)

    def received():
        (checkpoint,) = query.coordinator.assignments(NO_CHECKPOINT, first)
        ((event,),) = events_in(checkpoint.header).values()
        return repr(event)

    sent = received()
    assert sent == repr({"a": {"ü": True}, "b": [1, 2.5, None]})
    query.restart()
    assert received() == sent


def deep(levels):
    return [deep(levels - 1)] if levels else []


NOT_JSON = {
    "a tuple": (("a", "b"), "value is of the type tuple"),
    "a key": ({"x": [{1: "a"}]}, r"value\['x'\]\[0\] has the key 1"),
    "an object": ([object()], r"value\[0\] is of the type object"),
    "not a number": ({"x": float("nan")}, r"value\['x'\] is nan"),
    "half a character": ("\ud800", ".*surrogates not allowed"),
    "too deep": (deep(200), "more than 100 levels"),
}


@pytest.mark.parametrize(("value", "fault"), NOT_JSON.values(), ids=NOT_JSON)
def test_a_value_that_json_changes_is_refused_where_it_is_sent(query, value, fault):
    with pytest.raises(ProtocolError, match=f"cannot be stored as it is: reader 0; found {fault}"):
        query.enumerator.context.send_event(0, value)
    assert opened(query.coordinator).flight.open_record.sent == {}


def test_a_value_of_all_permitted_levels_is_stored(query):
    query.enumerator.context.send_event(0, deep(100))
    query.enumerator.context.assign_splits({0: [Number(1)]})
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.restart()
    assert stream(query, NO_CHECKPOINT, first) == [deep(100), 1]


def test_the_stop_of_a_continuation_is_refused_where_it_is_sent(query):
    query.enumerator.context.assign_splits({0: [Number(1)]})
    query.coordinator.latest(NO_CHECKPOINT)
    with pytest.raises(ProtocolError, match="reader 0, the stop of n1; found value is of the type"):
        query.enumerator.context.continue_split(0, "n1", stop={1, 2})


def test_events_that_wait_for_a_reader_without_work_are_bounded(query):
    context = query.enumerator.context
    for number in range(1000):
        context.send_event(0, number)
    expected = "reader 0; found 1,001 events; expected at most 1,000"
    with pytest.raises(ProtocolError, match=expected):
        context.send_event(0, "one more")
    context.assign_splits({0: [Number(1)]})
    context.send_event(0, "together with work there is no bound")
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert len(stream(query, NO_CHECKPOINT, first)) == 1002


def test_a_continuation_of_a_continuation_is_found_by_the_order_of_sending(query):
    context = query.enumerator.context
    context.assign_splits({0: [Number(1)]})
    first = query.coordinator.latest(NO_CHECKPOINT)
    context.assign_splits({0: [Number(2)]})
    context.continue_split(0, "n1")
    context.assign_splits({0: [Number(3)]})
    query.acknowledge(first, 0, unfinished=[rest(10)])
    second = query.coordinator.latest(first)
    assert context.continue_split(0, "n1")
    query.acknowledge(second, 0, unfinished=[rest(11, index=1)])
    third = query.coordinator.latest(second)
    (checkpoint,) = query.coordinator.assignments(second, third)
    part = part_of(checkpoint, 0, query.source.split_serializer, query.commits.find)
    assert [split.value for split in part] == [11]

"""A driver that dies at every operation around an order; and sources that take none."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.orders import Order, Orders
from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.simulation import Simulation

pytestmark = pytest.mark.slow

KINDS = ("crash before", "crash after", "crash half-way")


def ordered():
    """Three files are in the sink, and one of them is ordered again."""
    machine = Simulation()
    machine.begin(files=[(3, 0), (2, 1), (2, 2)], batches=3, scripts=[], moves=[], lane=(0, 1))
    machine.order_again(pick=1, fault=None, part=False)
    assert len(machine.ordered) == 1
    return machine


def go_on(machine):
    """Two batches more, the checkpoints cut ahead and their bases."""
    for _ in range(3):
        if not machine.spark.is_running:
            machine._guarded(machine._discover_and_trigger)
        if machine.spark.is_running:
            machine._run_tasks([])
            machine.finish_batch(crash=False)
        machine._guarded(machine.run.tick)


def operations():
    machine = ordered()
    machine._restart(None)
    go_on(machine)
    return machine.run.store.operations


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_delivered_as_ordered_no_matter_where_the_driver_dies(kind):
    count = operations()
    assert count > 15
    for after in range(count):
        machine = ordered()
        machine._restart(None)
        machine.run.store.fault = Fault(kind, after)
        go_on(machine)
        machine.teardown()


@pytest.mark.parametrize("action", ["requeue", "forget"])
def test_a_source_that_takes_no_orders_refuses_by_name(action):
    harness = Harness(numbers=[1, 2])
    first = harness.coordinator.latest(NO_CHECKPOINT)
    harness.acknowledge_all(first)
    splits = {"json": ["1"]}
    order = Order(action=action, enumerator="numbers", split_version=1, splits=splits)
    Orders(harness.state).publish(order)
    harness.restart()
    with pytest.raises(ProtocolError, match=f"NumberEnumerator; found no method {action}_splits"):
        harness.coordinator.latest(first)


def test_an_order_of_another_source_is_refused_by_name():
    harness = Harness(numbers=[1, 2])
    first = harness.coordinator.latest(NO_CHECKPOINT)
    harness.acknowledge_all(first)
    Orders(harness.state).publish(
        Order(action="requeue", enumerator="files", split_version=1, splits={})
    )
    harness.restart()
    with pytest.raises(ProtocolError, match="order 1; found files; expected numbers"):
        harness.coordinator.latest(first)


def test_orders_are_numbered_one_by_one_by_any_writer():
    harness = Harness()
    orders = Orders(harness.state)
    made = [
        orders.publish(
            Order(action="forget", enumerator="x", split_version=1, splits={}, nonce=str(at))
        )
        for at in range(3)
    ]
    assert [order.number for order in made] == [1, 2, 3]
    assert [order.nonce for order in orders.after(1)] == ["1", "2"]


def test_an_order_after_the_folder_was_lost_is_carried_out_and_those_before_stay_done():
    harness = Harness(numbers=[1, 2])
    orders = Orders(harness.state)
    order = Order(action="waive", enumerator="numbers", split_version=1, splits={"json": []})
    for _ in range(3):
        orders.publish(order)
    first = harness.coordinator.latest(NO_CHECKPOINT)
    contained = harness.coordinator.history.load(first).header.orders
    assert contained == 3
    harness.state.delete("orders")
    assert orders.publish(order, contained).number == 4
    harness.acknowledge_all(first)
    harness.restart()
    second = harness.coordinator.latest(first)
    assert harness.coordinator.history.load(second).header.orders == 4
    assert [link.ref for link in StateView(harness.state).chain()] == [second, first]


def test_splits_are_given_up_in_every_checkpoint_of_a_range_that_is_read_again():
    limits = BatchLimits(files=1)
    settings = CoordinatorSettings(limits=limits, parallelism=1, discovery_timeout=0.0)
    harness = Harness([1, 2, 3], settings)
    first = harness.coordinator.latest(NO_CHECKPOINT)
    harness.coordinator.assignments(NO_CHECKPOINT, first)
    second = harness.coordinator.latest(first)
    harness.coordinator.assignments(first, second)
    for ref, number in ((first, 1), (second, 2)):
        to = {"to_checkpoint": ref.checkpoint, "to_epoch": ref.epoch, "nonce": str(number)}
        given_up = {"splits": {"json": [str(number)]}, "split_version": 1, **to}
        Orders(harness.state).publish(Order(action="waive", enumerator="numbers", **given_up))
    # Asynchronous progress tracking has written down neither of them.
    harness.restart()
    harness.coordinator.assignments(NO_CHECKPOINT, second)
    assert harness.coordinator.waived(first) == {"n1"}
    assert harness.coordinator.waived(second) == {"n2"}

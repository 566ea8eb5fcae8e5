"""A driver that dies at every operation around an order; and sources that take none."""

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.orders import Order, Orders
from pyspark_sluice.checkpoint_meta.files.file_columns import ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.source.api import Source
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.row_reader import SCHEMA, RowReader
from pyspark_sluice.tests.protocol.rows import Ledger, RowSource, World

pytestmark = pytest.mark.slow

KINDS = ("crash before", "crash after", "crash half-way")


class Rows(RowSource, Source[FileSplit, Ledger]):
    """The source of countable rows, with its reader."""

    schema = SCHEMA

    def create_reader(self, context):
        return RowReader(context)


def ordered(fault=None):
    """Three files are in the sink, one of them is ordered again, and the query goes on."""
    world = World()
    for rows in (3, 2, 2):
        world.land(rows, 0)
    trial = Trial(lambda: Rows(world), limits=BatchLimits(files=1))
    trial.run_to_end()
    file = world.files[1]
    splits = ranges_of([FileSplit(file, 0, file.size)])
    columns = {name: splits.column(name).to_pylist() for name in splits.schema.names}
    order = Order(action="requeue", enumerator="rows", split_version=1, splits=columns)
    Orders(trial.objects).publish(order)
    trial.kill_at(fault)
    trial.restart()
    trial.run_to_end()
    due = world.rows() + [(file.path, row) for row in range(file.size)]
    trial.check({"file": name, "row": row} for name, row in due)
    return trial


@pytest.mark.sample("crash half-way", why="the other side of each operation")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_delivered_as_ordered_no_matter_where_a_process_dies(kind):
    after = 0
    while ordered(Fault(kind, after)).kills:
        after += 1
    assert after > 15


@pytest.mark.parametrize(
    ("action", "enumerator", "splits", "found"),
    [
        ("requeue", "numbers", {"json": ["1"]}, "NumberEnumerator; found no method requeue_splits"),
        ("forget", "numbers", {"json": ["1"]}, "NumberEnumerator; found no method forget_splits"),
        ("requeue", "files", {}, "order 1; found files; expected numbers"),
    ],
)
def test_an_order_that_a_source_does_not_take_is_refused_by_name(action, enumerator, splits, found):
    harness = Harness(numbers=[1, 2])
    first = harness.coordinator.latest(NO_CHECKPOINT)
    harness.acknowledge_all(first)
    order = Order(action=action, enumerator=enumerator, split_version=1, splits=splits)
    Orders(harness.state).publish(order)
    harness.restart()
    with pytest.raises(ProtocolError, match=found):
        harness.coordinator.latest(first)


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

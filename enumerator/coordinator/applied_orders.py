"""Carries out the orders that a restored state does not contain yet.

They are carried out once the commits of what was in flight are counted, before anything is planned
or cut. The first checkpoint after that has them, and says so; a crash before it leaves a state that
does not, and they are carried out again on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...checkpoint_meta.documents.orders import Order, Orders
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import ProtocolError
from ..api import Journal, SplitEnumerator
from ..source_api import EnumeratorSource
from .in_flight import CheckpointsInFlight
from .returned_splits import ReturnedSplits
from .start_position import newest_acknowledged


def orders_contained(store: StateStore, lineage: StateStore | None, restored: int) -> int:
    """Number of the newest order of `store` that the state a query begins with contains.

    Args:
        store: the query's own state directory.
        lineage: where the state was restored from; None for a query without state.
        restored: what the checkpoint restored from says, which is of the orders next to it.
    """
    if lineage is not None and lineage.location.rstrip("/") == store.location.rstrip("/"):
        return restored
    # Orders belong to their directory. Those of another one stay there; those found here are meant
    # for this query, unless an earlier one has been read with them (`startingState`).
    newest = Orders(store).newest()
    return newest if newest and newest_acknowledged(store) is not None else 0


class AppliedOrders:
    """For one open coordinator; under its lock."""

    def __init__(
        self,
        source: EnumeratorSource[Any, Any],
        enumerator: SplitEnumerator[Any, Any],
        returned_splits: ReturnedSplits,
        journal: Journal,
        flight: CheckpointsInFlight,
        waiting: Sequence[Order],
    ) -> None:
        """`waiting` are those after the newest order in the restored state, which `flight` has."""
        self._source = source
        self._enumerator = enumerator
        self._returned_splits = returned_splits
        self._journal = journal
        self._waiting = list(waiting)
        self._flight = flight
        self.contained = flight.orders
        """The newest order that is carried out; the next checkpoint says so."""

    @property
    def are_waiting(self) -> bool:
        """True as long as orders are to be carried out before anything is planned."""
        return bool(self._waiting)

    @property
    def wants_checkpoint(self) -> bool:
        """True if orders are carried out that no checkpoint has: an empty one if need be."""
        return self._flight.orders < self.contained

    def apply(self) -> None:
        """Carry out what waits. Every commit of what was in flight has been counted.

        Raises:
            ProtocolError: the source is another one, or takes no orders.
        """
        while self._waiting:
            order = self._waiting[0]
            self._carry_out(order)
            # Removed once it is carried out: an order that fails is met again at the next question.
            self._waiting.pop(0)
            self.contained = order.number

    def _carry_out(self, order: Order) -> None:
        if order.enumerator != self._source.name:
            raise ProtocolError(
                "an order is of another source",
                f"order {order.number}",
                order.enumerator,
                self._source.name,
                "Use the source that created this state.",
            )
        # The batch that it is about was read again when the state was opened, or is past.
        is_done = order.action == "reread"
        splits = () if is_done else order.read_splits(self._source.split_serializer)
        self._returned_splits.release(order.released)
        if splits and order.makes_pending:
            self._enumerator.requeue_splits(splits)
        elif splits and order.action == "forget":
            self._enumerator.forget_splits(splits)
        self._journal.info(
            "orders", "order %d is carried out: %s %d splits, %d leave the quarantine",
            order.number, order.action, len(splits), len(order.released),
        )  # fmt: skip

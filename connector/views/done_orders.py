"""What orders have done to files, as far as the newest checkpoint contains them.

Not here: orders themselves (`checkpoint_meta/documents/orders.py`), the command that lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ...checkpoint_meta.documents.file_split import FileSplit
from ...checkpoint_meta.documents.orders import Order, Orders
from ...enumerator.files.ledger.byte_ranges import byte_ranges_of, splits_without
from .state_view import splits_of_order

if TYPE_CHECKING:
    from .state_view import StateView


@dataclass(frozen=True)
class DoneOrders:
    """Orders that a state contains, in turn."""

    orders: Sequence[Order]

    @classmethod
    def of(cls, view: StateView) -> DoneOrders:
        """Those that the newest checkpoint contains.

        Raises:
            StateError: one of them is gone or damaged.
        """
        if view.head == NO_CHECKPOINT:
            return cls(())
        done = view.history.load(view.head).header.orders
        store = Orders(view.store)
        return cls([store.read(number) for number in range(1, done + 1)])

    def forgotten(self) -> list[tuple[Order, list[FileSplit]]]:
        """What was dropped and was not ordered again since."""
        found: list[tuple[Order, list[FileSplit]]] = []
        for order in self.orders:
            if order.action == "waive":
                continue
            splits = splits_of_order(order)
            found = [(by, splits_without(of, byte_ranges_of(splits))) for by, of in found]
            if not order.reads_again:
                found.append((order, splits))
        return [(order, splits) for order, splits in found if splits]

    def read_again_after(self, contained: int) -> set[str]:
        """Paths that were ordered to be read again, by orders after that number."""
        return {
            path
            for order in self.orders
            if order.number > contained and order.reads_again
            for path in order.splits.get("path", ())
        }

"""What a person has asked of a query: ranges to be read again, to be dropped, or given up.

An order is written once, by a command, next to a query that is stopped or runs; it is the audit
record, too, and stays. A coordinator applies the orders that its state does not contain when it
opens the state, and its next checkpoint says up to which number they are in it. So:

- a crash before an order is created: nothing has happened;
- after it: the order is applied at the next start;
- between that and the next checkpoint: it is applied again, to the same state as before;
- a restore from a checkpoint that does not contain it yet: likewise. Once on every chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import Field

from ...errors import StateCorruptError, StateMissingError
from ..stores.contract import StateStore, next_created
from .checkpoint_ref import CheckpointRef
from .checksummed_json import Document
from .layout import ORDERS, numbered, numbers_in
from .serializer import VersionedSerializer, read_columns

T = TypeVar("T")

Action = Literal["requeue", "rewind", "forget", "waive", "reread", "retract"]


class Order(Document):
    """One order."""

    noun = "an order"
    remedy = "Restore the object from a copy; the order cannot be carried out without it."

    number: int = Field(default=0, ge=0)
    """The place among the orders of this directory, from 1; 0 before it is published."""

    action: Action
    """requeue and rewind: the splits become pending. forget: they are pending no longer. waive:
    they were assigned in a batch that is under way and cannot be read (again); its replay leaves
    them out. reread: they were assigned in a batch that the sink does not have; what its readers
    have committed no longer counts, and they are read again. retract: rows of these files leave the
    table; the versions that are known are not read again."""

    enumerator: str
    """Name of the source that the splits are of."""

    split_version: int
    splits: Mapping[str, Sequence[Any]]
    """Column -> values, of the source's split serializer."""

    released: Sequence[str] = ()
    """Ids of splits that leave the quarantine."""

    checkpoint: int = 0
    epoch: int = 0
    """The newest checkpoint when the order was made."""

    to_checkpoint: int = 0
    to_epoch: int = 0
    """rewind: what was assigned after this one is read again. waive: this one assigned the
    splits. reread: the last one of the batch."""

    rows: int = 0
    """waive, reread: rows of the splits that readers had acknowledged."""

    matching: str = ""
    reason: str = ""
    who: str = ""
    host: str = ""
    created: int = 0
    """Microseconds since the epoch, for people."""

    nonce: str = ""
    """Makes two orders differ that say the same."""

    @property
    def reads_again(self) -> bool:
        """True if the files of its splits are read again."""
        return self.action in {"requeue", "rewind"}

    @property
    def makes_pending(self) -> bool:
        """True if its splits become pending; those of `retract` are not read."""
        return self.reads_again or self.action == "retract"

    @property
    def count(self) -> int:
        """Return how many splits it names."""
        return len(next(iter(self.splits.values()), ()))

    def read_splits(self, serializer: VersionedSerializer[Sequence[T]]) -> Sequence[T]:
        """The splits that it names.

        Raises:
            StateVersionError: written by a newer release of the source.
        """
        return read_columns(serializer, self.split_version, self.splits)


class Orders:
    """The orders of one state directory. Any thread."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def numbers(self) -> list[int]:
        """The numbers of the orders that are there, ascending."""
        return numbers_in(self._store.list(ORDERS))

    def newest(self) -> int:
        """The number of the newest order; 0 without orders."""
        return max(self.numbers(), default=0)

    def after(self, number: int) -> list[Order]:
        """The orders with a greater number, in order.

        Raises:
            StateMissingError: one before the newest is gone.
            StateCorruptError: one is damaged.
            StateVersionError: one was written by a newer release.
        """
        # By number, not by what the listing shows: a lost order must be reported, never left out.
        return [self.read(each) for each in range(number + 1, self.newest() + 1)]

    def waived(self, contained: int) -> dict[CheckpointRef, list[Order]]:
        """Checkpoint -> the orders that give up splits of it; raises like `after`.

        Args:
            contained: the newest order in the oldest of the checkpoints: later ones can name them.
        """
        return self._about_batches("waive", contained)

    def rereads(self, contained: int) -> dict[CheckpointRef, list[Order]]:
        """Checkpoint -> the orders that give back the batch that ends with it; as `waived`."""
        return self._about_batches("reread", contained)

    def _about_batches(self, action: Action, contained: int) -> dict[CheckpointRef, list[Order]]:
        by_checkpoint: dict[CheckpointRef, list[Order]] = {}
        for order in self.after(contained):
            if order.action == action:
                ref = CheckpointRef(order.to_checkpoint, order.to_epoch)
                by_checkpoint.setdefault(ref, []).append(order)
        return by_checkpoint

    def read(self, number: int) -> Order:
        """The order of that number; raises like `after`."""
        where = f"{self._store.location}/{numbered(ORDERS, number)}"
        try:
            order = Order.read(self._store, numbered(ORDERS, number))
        except FileNotFoundError as error:
            raise StateMissingError(
                "an order is missing",
                where,
                "no such object",
                "orders numbered consecutively",
                Order.remedy,
            ) from error
        # The checksum does not cover the name: a copy under another number would be carried out
        # twice.
        if order.number != number or len({len(column) for column in order.splits.values()}) > 1:
            raise StateCorruptError(
                "an order is damaged",
                where,
                f"order {order.number}, with columns of length "
                + ", ".join(str(len(column)) for column in order.splits.values()),
                f"order {number}, with columns of one length",
                Order.remedy,
            )
        return order

    def publish(self, order: Order, contained: int = 0) -> Order:
        """Write an order down under the next number; durable when this returns.

        A query that runs applies it at its next start. If the folder was lost, numbers go on after
        the newest order that is `contained` in a checkpoint: those up to it count as done.
        """

        def created() -> Order:
            number = max(self.newest(), contained) + 1
            numbered_order = order.model_copy(update={"number": number})
            self._store.publish(numbered(ORDERS, number), numbered_order.to_bytes())
            return numbered_order

        return next_created(self._store, ORDERS, created)

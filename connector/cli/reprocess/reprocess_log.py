"""Shows what an order would do, writes it down, and lists what was written.

Not here: what it names (`reprocess_plan.py`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import typer

from ....checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ....checkpoint_meta.documents.file_serializer import FileSplitSerializer
from ....checkpoint_meta.documents.orders import Action, Order, Orders
from ....checkpoint_meta.stores.contract import StateStore
from ...views.amounts import format_bytes
from ...views.owner import owner_of
from ...views.state_view import StateView, consistent
from ..output import Ended, Exit, print_json, print_table
from ..running_check import refuse_if_held, who_and_where
from ..spark_offset_log import newest_in_spark
from ..state_argument import parsed_storage_options
from .file_check import as_present
from .reprocess_plan import Chosen

_SHOWN = 10
"""First ranges that a person sees."""

_WORDS = {
    "requeue": "read again",
    "rewind": "read again",
    "forget": "discarded",
    "waive": "given up",
}

_AGAIN_BY = frozenset({"requeue", "rewind"})

_AGAIN = (
    "rows that were read are delivered again: use a sink that upserts, or delete the rows "
    "from it first"
)

ORDERS = pa.schema(
    [
        ("order", pa.int64()),
        ("action", pa.string()),
        ("state", pa.string()),
        ("created", pa.timestamp("us", "UTC")),
        ("who", pa.string()),
        ("host", pa.string()),
        ("files", pa.int64()),
        ("ranges", pa.int64()),
        ("bytes", pa.int64()),
        ("released", pa.int64()),
        ("rows", pa.int64()),
        ("matching", pa.string()),
        ("reason", pa.string()),
        ("checkpoint", pa.int64()),
        ("to_checkpoint", pa.int64()),
    ]
)
"""`state`: done (the newest checkpoint contains it), or waiting for the next start."""


@dataclass(frozen=True)
class OrderRequest:
    """The arguments of the command line, without those that choose files."""

    action: Action
    matching: str
    reason: str
    skip_missing: bool
    yes: bool
    force: bool
    as_json: bool
    lists_all: bool = False
    """True: every range that is chosen is shown, and not only the first."""


def submit_order(
    store: StateStore,
    storage_options: str,
    choose: Callable[[StateView], Chosen],
    request: OrderRequest,
) -> None:
    """Show what is chosen; with `--yes` write the order, unless a query is at work.

    Raises:
        FencedError: a query holds the state.
        MissingPathError: files are gone.
        OptionError: the choice makes no sense.
        StateError: there is no state, or it is damaged.
        Ended: nothing was chosen.
    """
    if request.yes:
        refuse_if_held(store, force=request.force)
    options = parsed_storage_options(storage_options)

    def look() -> tuple[StateView, Chosen]:
        view = StateView(store)
        view.check_is_state()
        newest = newest_in_spark(store, options)
        if newest is not None and newest in view.refs:
            # What was cut ahead of Spark may never be taken up, so the choice ignores it.
            view.head = newest
        return view, choose(view)

    view, chosen = consistent(look)
    if request.action in _AGAIN_BY and chosen.splits:
        present = as_present(chosen.splits, options, skip_missing=request.skip_missing)
        left_out = dict(chosen.left_out)
        if present.missing:
            left_out["gone"] = len(present.missing)
        chosen = replace(chosen, splits=present.splits, left_out=left_out)
    order = _written(store, view, chosen, request) if chosen and request.yes else None
    _tell(store, chosen, request, order)
    if not chosen:
        raise Ended(Exit.FOUND)


def _written(store: StateStore, view: StateView, chosen: Chosen, request: OrderRequest) -> Order:
    serializer = FileSplitSerializer()
    batch = serializer.serialize(list(chosen.splits))
    who, host = who_and_where()
    order = Order(
        action=request.action,
        enumerator=view.history.load(view.head).header.enumerator,
        split_version=serializer.version,
        splits={name: batch.column(name).to_pylist() for name in batch.schema.names},
        released=list(chosen.released),
        checkpoint=view.head.checkpoint,
        epoch=view.head.epoch,
        to_checkpoint=chosen.rewound_to.checkpoint,
        to_epoch=chosen.rewound_to.epoch,
        rows=chosen.rows,
        matching=request.matching,
        reason=request.reason,
        who=who,
        host=host,
        created=int(time.time() * 1_000_000),
        # An order whose answer was lost is found by its content, which must be nobody else's.
        nonce=uuid.uuid4().hex,
    )
    # Again: a query may have been started while the files were looked at.
    refuse_if_held(store, force=request.force)
    return Orders(store).publish(order)


def _tell(store: StateStore, chosen: Chosen, request: OrderRequest, order: Order | None) -> None:
    files = len({split.file.path for split in chosen.splits})
    size = sum(split.length for split in chosen.splits)
    shown = chosen.splits[:_SHOWN]
    if request.lists_all:
        shown = sorted(chosen.splits, key=lambda split: (split.file.path, split.start))
    rows = [{"path": split.file.path, "start": split.start, "end": split.end} for split in shown]
    if request.as_json:
        print_json(
            {
                "action": request.action,
                "order": order.number if order else None,
                "files": files,
                "ranges": len(chosen.splits),
                "bytes": size,
                "released": len(chosen.released),
                "rows": chosen.rows,
                "left_out": dict(chosen.left_out),
                "first": rows,
            }
        )
        return
    for why, count in chosen.left_out.items():
        typer.echo(f"not all: {count:,} ranges, {why}")
    if not chosen:
        typer.echo("nothing was selected, and nothing is written")
        return
    print_table(rows, ("path", "start", "end"))
    if len(chosen.splits) > len(shown):
        typer.echo(f"and {len(chosen.splits) - len(shown):,} ranges more")
    what = f"{files:,} files, {len(chosen.splits):,} ranges, {format_bytes(size)}"
    typer.echo(f"{_WORDS[request.action]}: {what}")
    if chosen.released:
        typer.echo(f"leave the quarantine: {len(chosen.released):,} splits")
    if request.action in _AGAIN_BY:
        typer.echo(_AGAIN)
    if request.action == "waive":
        typer.echo(
            f"{chosen.rows:,} of their rows were acknowledged; the sink may have some of those"
        )
    if order is not None:
        typer.echo(f"order {order.number} is written; the query carries it out when it starts")
    else:
        typer.echo(f"nothing is written yet: add --yes ({owner_of(store)})")


def recorded_orders(store: StateStore) -> pa.Table:
    """All orders, the newest first: rows of `ORDERS`.

    Raises:
        StateError: there is no state, or an order is damaged.
    """
    return consistent(lambda: _recorded(StateView(store)))


def _recorded(view: StateView) -> pa.Table:
    view.check_is_state()
    head = view.head
    done = 0 if head == NO_CHECKPOINT else view.history.load(head).header.orders
    rows = [_row(order, done) for order in Orders(view.store).after(0)]
    return pa.Table.from_pylist(rows[::-1], schema=ORDERS)


def _row(order: Order, done: int) -> dict[str, Any]:
    spans = zip(order.splits.get("start", ()), order.splits.get("end", ()), strict=True)
    return {
        "order": order.number,
        "action": order.action,
        "state": "done" if order.number <= done else "waiting",
        "created": pa.scalar(order.created, ORDERS.field("created").type),
        "who": order.who,
        "host": order.host,
        "files": len(set(order.splits.get("path", ()))),
        "ranges": order.count,
        "bytes": sum(end - start for start, end in spans),
        "released": len(order.released),
        "rows": order.rows or None,
        "matching": order.matching,
        "reason": order.reason,
        "checkpoint": order.checkpoint,
        "to_checkpoint": order.to_checkpoint or None,
    }

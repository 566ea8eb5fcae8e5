"""Shows what an order would do, writes it down, and lists what was written."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ....checkpoint_meta.documents.orders import Action, Order, Orders
from ....checkpoint_meta.files.file_columns import FileSplitSerializer
from ....checkpoint_meta.files.file_split import REPLACES
from ....checkpoint_meta.index.fingerprints import file_key
from ....checkpoint_meta.stores.contract import StateStore
from ...query.owner import who_and_where
from ...query.spark_checkpoint import newest_in_spark
from ...views.state_view import TIME, StateView, fields
from ..answer import Answer, Exit
from ..arguments import FileOrderArguments, OrderArguments, parsed_storage_options
from ..offline_edit import Plan, edit
from .known_files import as_present
from .reprocess_plan import OrderPlan, check_file_column, replacing

_SHOWN = 10
"""First ranges that a person sees."""

_AGAIN_BY = frozenset({"requeue", "rewind"})

ORDERS = pa.schema(
    [
        ("order", pa.int64()),
        *fields(pa.string(), "action", "state"),
        ("created", TIME),
        *fields(pa.string(), "who", "host"),
        *fields(pa.int64(), "files", "ranges", "bytes", "released", "rows"),
        *fields(pa.string(), "matching", "reason"),
        *fields(pa.int64(), "checkpoint", "to_checkpoint"),
    ]
)
"""`state`: done (the newest checkpoint contains it), or waiting for the next start."""


def submit_order(
    arguments: OrderArguments,
    action: Action,
    choose: Callable[[StateView], OrderPlan],
    *,
    event_time: str = "",
    skip_missing: bool = False,
    replaces: bool = False,
) -> Answer:
    """Show what is chosen; with `--yes` write the order, unless a query is at work.

    Args:
        arguments: the arguments of the command.
        action: its name.
        choose: picks the splits.
        event_time: the range that selects files, if one does: all are shown then.
        skip_missing: leave out files that are gone.
        replaces: what is read takes the place of the rows that the table has of these files.
    """
    options = parsed_storage_options(arguments.storage_options)

    def decide(store: StateStore) -> Plan:
        view = StateView(store)
        newest = newest_in_spark(store, options)
        if newest is not None and newest in view.refs:
            # What was cut ahead of Spark may never be taken up, so the choice ignores it.
            view.head = newest
        chosen = replacing(view, choose(view)) if replaces else choose(view)
        if replaces or action == "retract":
            check_file_column(store, f"{action} --replace" if replaces else action)
        if action in _AGAIN_BY and chosen.splits:
            # Now, when a person can choose: the query would find out in the middle of a batch.
            splits, missing = as_present(chosen.splits, options, skip_missing=skip_missing)
            gone = {"gone": len(missing)} if missing else {}
            splits = [split._replace(replaces=REPLACES * replaces) for split in splits]
            chosen = replace(chosen, splits=splits, left_out={**chosen.left_out, **gone})
        report = _report(action, chosen, show_all=bool(event_time))
        notes = list(_notes(action, chosen))
        if not chosen:
            return Plan(report, None, notes, exit_code=Exit.FOUND)
        pattern = arguments.matching if isinstance(arguments, FileOrderArguments) else ""
        matching = filter(None, [pattern, event_time and f"event time {event_time}"])
        order = _order(arguments, action, view, chosen, " ".join(matching))
        done = "order {order} is written; the query carries it out when it starts"

        def write() -> dict[str, Any]:
            return {"order": Orders(store).publish(order, view.orders_done).number}

        return Plan(report, write, notes, done)

    return edit(arguments, decide)


def _order(
    arguments: OrderArguments, action: Action, view: StateView, chosen: OrderPlan, matching: str
) -> Order:
    serializer = FileSplitSerializer()
    batch = serializer.serialize(list(chosen.splits))
    who, host = who_and_where()
    return Order(
        action=action,
        enumerator=view.source,
        split_version=serializer.version,
        # As JSON columns, because an order is a document that people read, too.
        splits={name: batch.column(name).to_pylist() for name in batch.schema.names},
        released=list(chosen.released),
        checkpoint=view.head.checkpoint,
        epoch=view.head.epoch,
        to_checkpoint=chosen.rewound_to.checkpoint,
        to_epoch=chosen.rewound_to.epoch,
        rows=chosen.rows,
        matching=matching,
        reason=arguments.reason,
        who=who,
        host=host,
        created=int(time.time() * 1_000_000),
        # An order whose answer was lost is found by its content, which must be unique.
        nonce=uuid.uuid4().hex,
    )


def _report(action: Action, chosen: OrderPlan, *, show_all: bool) -> dict[str, Any]:
    first = chosen.splits[:_SHOWN]
    if show_all:
        # A person checks what a pattern finds in paths by looking at every one of them.
        first = sorted(chosen.splits, key=lambda split: (split.file.path, split.start))
    return {
        "action": action,
        "order": None,
        "files": len({split.file.path for split in chosen.splits}),
        "ranges": len(chosen.splits),
        "bytes": sum(split.length for split in chosen.splits),
        "released": len(chosen.released),
        "rows": chosen.rows,
        "data_files": chosen.data_files,
        "left_out": dict(chosen.left_out),
        "first": [
            # What names the file in the table.
            {"path": split.file.path, "key": file_key(split.file.path)}
            if split.replaces
            else {"path": split.file.path, "start": split.start, "end": split.end}
            for split in first
        ],
    }


def _notes(action: Action, chosen: OrderPlan) -> Iterator[str]:
    if not chosen:
        yield (
            "no reader has committed anything of the batch: the next start reads it under its "
            "options anyway"
            if action == "reread"
            else "nothing was selected, and nothing is written"
        )
    elif any(split.replaces for split in chosen.splits):
        yield "rows that the table has of these files go, in the commit of the same batch"
    elif action in _AGAIN_BY:
        yield (
            "rows that were read are delivered again: use a sink that upserts, or delete the rows "
            "from it first"
        )
    elif action == "waive":
        yield "the sink may have some of the rows, which readers have committed"
    elif action == "reread":
        yield "the splits are read again under the options of the next start"


def recorded_orders(view: StateView) -> pa.Table:
    """All orders, the newest first: rows of `ORDERS`."""
    rows = [_row(order, view.orders_done) for order in Orders(view.store).after(0)]
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

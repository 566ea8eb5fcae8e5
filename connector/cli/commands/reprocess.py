"""The commands that change what a query does at its next start: requeue, rewind, forget ...

Each shows what it would do, and writes one order with `--yes`. Also `orders`, their record.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import pyarrow as pa

from ....checkpoint_meta.documents.orders import Action, Order, Orders
from ....checkpoint_meta.files.file_columns import FileSplitSerializer
from ....checkpoint_meta.files.file_split import REPLACES
from ....checkpoint_meta.index.fingerprints import file_key
from ....checkpoint_meta.stores.contract import StateStore
from ...query.owner import who_and_where
from ...query.spark_checkpoint import newest_in_spark, under_way_in_spark
from ...views.state_view import TIME, StateView, fields, with_view
from ..answer import Answer, Exit, Rows
from ..arguments import (
    EventTimeArguments,
    FileOrderArguments,
    OrderArguments,
    ViewArguments,
    flag,
    parsed_storage_options,
    setting,
)
from ..offline_edit import Plan, edit
from ..reprocess.known_files import as_present, in_event_time
from ..reprocess.reprocess_plan import (
    OrderPlan,
    check_file_column,
    plan_forget,
    plan_requeue,
    plan_retract,
    plan_rewind,
    plan_waive,
    replacing,
    reread_batch,
    sink_of,
)

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


Quarantined = Annotated[
    bool, flag("--quarantined", "Select quarantined splits, without the rest of their files.")
]
SkipMissing = Annotated[
    bool, flag("--skip-missing", "Leave out files that no longer exist, instead of refusing.")
]

Replace = Annotated[
    bool,
    flag(
        "--replace",
        "Read the files whole, and remove the rows that the table has of them. The query "
        "needs writeFileColumn.",
    ),
]


def requeue(
    order: FileOrderArguments,
    times: EventTimeArguments,
    quarantined: Quarantined = False,
    in_state: Annotated[
        str, setting("STATE", "Select only files in this state: read, ...", "--in-state")
    ] = "",
    skip_missing: SkipMissing = False,
    replace: Replace = False,
) -> Answer:
    """Read files again when the query starts.

    Select them with one or more of the options.
    """
    in_range = (
        in_event_time(times.event_time, times.event_time_pattern, times.time_zone)
        if times.event_time
        else None
    )

    return submit_order(
        order,
        "requeue",
        lambda view: plan_requeue(
            view, order.matching, in_state, in_range, quarantined=quarantined
        ),
        event_time=times.event_time,
        skip_missing=skip_missing,
        replaces=replace,
    )


def rewind(
    order: FileOrderArguments,
    to: Annotated[str, setting("ID", "Go back to this checkpoint: 42 or 42-3.")] = "",
    to_time: Annotated[
        str,
        setting("TIME", "Go back to the newest checkpoint that was cut by this time, in ISO 8601."),
    ] = "",
    skip_missing: SkipMissing = False,
    replace: Replace = False,
) -> Answer:
    """Read again what was read after a checkpoint.

    The query reads it when it starts.
    """
    return submit_order(
        order,
        "rewind",
        lambda view: plan_rewind(view, order.matching, to, to_time),
        skip_missing=skip_missing,
        replaces=replace,
    )


def forget(order: FileOrderArguments, quarantined: Quarantined = False) -> Answer:
    """Discard pending or quarantined files.

    They count as seen and are not read.
    """
    return submit_order(
        order,
        "forget",
        lambda view: plan_forget(view, order.matching, quarantined=quarantined),
    )


def retract(order: FileOrderArguments) -> Answer:
    """Remove the rows of files from the table.

    These versions of the files are not read again; a later version is, as onOverwrite says. The
    query removes the rows when it starts. It needs writeFileColumn.
    """
    return submit_order(order, "retract", lambda view: plan_retract(view, order.matching))


def waive(order: FileOrderArguments) -> Answer:
    """Give up files that the batch in flight cannot read.

    They were deleted or replaced. The lost rows are counted.
    """
    # Only Spark's log says which batch is under way: the state may have checkpoints that were cut
    # ahead.
    options = parsed_storage_options(order.storage_options)

    return submit_order(
        order,
        "waive",
        lambda view: plan_waive(
            view, order.matching, under_way_in_spark(view.store, options), options
        ),
    )


def reread(
    order: OrderArguments,
    to: Annotated[
        str,
        setting(
            "TABLE",
            "Check that this table does not have the batch: delta:URL, iceberg:CATALOG.TABLE "
            "or parquet:URL, as in run. Not needed if the data files are in the directory of a "
            "Delta table or next to manifests.",
        ),
    ] = "",
    not_in_sink: Annotated[
        bool,
        flag(
            "--not-in-sink",
            "Use this for any other sink, after checking that it does not have the batch.",
        ),
    ] = False,
) -> Answer:
    """Give back the batch that the sink refuses.

    When the query starts, the data files of the batch are replaced: its files are read again
    under the options of that start.
    """
    options = parsed_storage_options(order.storage_options)
    sink = sink_of(to, options, not_in_sink=not_in_sink)
    return submit_order(order, "reread", lambda view: reread_batch(view, options, sink))


def orders(arguments: ViewArguments) -> Answer:
    """List the orders of these commands.

    The list has what requeue, rewind, forget, retract, waive and reread ordered. It says who
    ordered it, when and why, and whether it is done.
    """
    columns = ["order", "action", "state", "created", "who", "files", "released", "rows", "reason"]
    table = with_view(arguments.opened(), recorded_orders)
    return Answer(table, [Rows(table, columns)])

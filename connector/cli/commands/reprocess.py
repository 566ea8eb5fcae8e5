"""The commands that change what a query does at its next start: requeue, rewind, forget ...

Each shows what it would do, and writes one order with `--yes`. Also `orders`, their record.
"""

from __future__ import annotations

from typing import Annotated

from ...query.spark_checkpoint import under_way_in_spark
from ...views.state_view import with_view
from ..answer import Answer, Rows
from ..arguments import (
    EventTimeArguments,
    FileOrderArguments,
    OrderArguments,
    ViewArguments,
    flag,
    parsed_storage_options,
    setting,
)
from ..reprocess.known_files import in_event_time
from ..reprocess.reprocess_log import recorded_orders, submit_order
from ..reprocess.reprocess_plan import (
    plan_forget,
    plan_requeue,
    plan_retract,
    plan_rewind,
    plan_waive,
    reread_batch,
    sink_of,
)

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

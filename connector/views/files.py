"""The view `files`: every version of a file that was ever seen, and what became of it.

All that is known is concatenated and grouped by file at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.documents.checkpoint import QuarantinedSplit
from ...checkpoint_meta.files.file_columns import FILES as FILE_VERSION
from ...checkpoint_meta.files.file_columns import Numbers, words_in
from ...checkpoint_meta.files.file_split import GONE_MARK, GROWS
from ...checkpoint_meta.index.fingerprints import file_keys, names_in
from ..query.file_rows import UNKNOWN, recorded_rows
from .files_as_of import FILE_OF_SPLIT, FilesAsOf, file_of
from .splits import (
    SPLITS,
    assigned_splits,
    done_orders,
    ended_parts,
    files_as_of_head,
    finder,
    forgotten_splits,
    moments,
    pending_splits,
)
from .state_view import TIME, StateView, fields, matching

FILES: Final = pa.schema(
    [
        *FILE_OF_SPLIT,
        *fields(pa.string(), "state", "reason"),
        *fields(TIME, "discovered", "planned", "processed", "committed"),
        *fields(pa.int64(), "checkpoint", "epoch"),
        ("reader", pa.int32()),
        *fields(pa.int64(), "rows", "bytes", "microseconds", "pending_bytes"),
        ("key", pa.string()),
        *fields(pa.int64(), "all_rows"),
    ]
)

STATES: Final = (
    "done",
    "read",
    "retracted",
    "skipped",
    "abandoned",
    "assigned",
    "unfinished",
    "returned",
    "waived",
    "forgotten",
    "pending",
    "quarantined",
)
"""Where ranges of one file differ, the last in this order counts. `done`: handed to a reader by a
checkpoint that is not retained any more, or nothing was in it."""

PASSED_OVER: Final = "its content was read from another file (identity=content)"

_KEY: Final = list(FILE_OF_SPLIT.names)


def files(view: StateView, pattern: str = "") -> pa.Table:
    """One row for each version of a file, rows of `FILES`; of the same state in the same order.

    Only paths that match the pattern, unless it is empty: the others take no memory.
    """
    head = files_as_of_head(view)
    orders = done_orders(view)
    chain = view.chain()
    find, ended = finder(view, chain), ended_parts(chain)
    parts = [matching(table, pattern) for table in pending_splits(head)]
    parts += forgotten_splits(orders, chain, find)
    for link in chain:
        # A checkpoint contains all orders up to a number; only later ones change what became of its
        # files.
        contained = link.checkpoint.header.orders
        later = [order for order in orders if order.number > contained and order.reads_again]
        again = {path for order in later for path in order.splits.get("path", ())}
        assigned = (matching(table, pattern) for table in assigned_splits([link], find, ended))
        parts += [_superseded(table, again) for table in assigned]
    parts.append(given_up(head.quarantined()))
    ranges = pa.concat_tables([matching(part, pattern) for part in parts]).combine_chunks()
    described = _described(_grouped(_seen(head, pattern), _facts(ranges)), ranges)
    names = names_in(described.column("path").combine_chunks())
    rows, _, _ = recorded_rows(view.store, chain, names)
    all_rows = pa.array(rows, pa.int64(), mask=rows == UNKNOWN)
    return described.append_column("key", pa.array(file_keys(names), pa.string())).append_column(
        "all_rows", all_rows
    )


def _superseded(table: pa.Table, again: set[str]) -> pa.Table:
    """Let an order to read ranges again replace their earlier state."""
    if not again:
        return table
    old = pc.is_in(table.column("path"), value_set=pa.array(sorted(again), pa.string()))
    for name, instead in (("state", "done"), ("reason", None)):
        at = table.schema.get_field_index(name)
        column = pc.if_else(old, pa.scalar(instead, pa.string()), table.column(name))
        table = table.set_column(at, table.schema.field(name), column)
    return table


def given_up(quarantined: Sequence[QuarantinedSplit]) -> pa.Table:
    """What is in quarantine, as rows of `SPLITS`."""
    rows = [
        {**file, "state": "quarantined", "reason": split.reason, "checkpoint": split.checkpoint}
        for split in quarantined
        if (file := file_of(split.split_id))
    ]
    return pa.Table.from_pylist(rows, schema=SPLITS)


def _seen(head: FilesAsOf, pattern: str) -> pa.Table:
    columns = [*_KEY, "discovered", "end"]
    batches = [matching(batch.select(columns), pattern) for batch in head.seen()]
    schema = pa.schema([*FILE_VERSION, ("discovered", TIME), ("end", pa.int64())])
    table = pa.Table.from_batches([b.cast(schema) for b in batches], schema)
    at = _KEY.index("modified")
    return table.set_column(at, "modified", moments(table.column("modified")))


def places_of_states(ranges: pa.Table) -> Numbers:
    """The place in `STATES` of the state of each of these rows of `SPLITS`, as it counts today."""
    order = pc.index_in(ranges.column("state"), pa.array(STATES, pa.string()))
    # What came back is pending or given up on once that was counted, and a row of its own says so.
    counted = ranges.column("committed").is_valid()
    for name, instead in (("unfinished", "read"), ("returned", "done")):
        is_over = pc.and_(counted, pc.equal(order, STATES.index(name)))
        order = pc.if_else(is_over, STATES.index(instead), order)
    return words_in(order.cast(pa.int64()).combine_chunks(), np.int64)


def _facts(ranges: pa.Table) -> pa.Table:
    """Return what each range adds to its file."""
    state, order = ranges.column("state"), places_of_states(ranges)
    # Positions instead of times: the smallest one in a group is the newest range, without a sort.
    at = np.arange(ranges.num_rows, dtype=np.int64)
    pending = pc.equal(state, "pending")
    assigned = ranges.column("reader").is_valid()
    length = pc.subtract(ranges.column("end"), ranges.column("start"))
    return pa.table(
        {
            **{name: ranges.column(name) for name in (*_KEY, "rows", "bytes", "microseconds")},
            "order": pa.array(order),
            "assignment": pc.if_else(assigned, pa.array(at), None),
            "explained": pc.if_else(ranges.column("reason").is_valid(), pa.array(at), None),
            "pending_bytes": pc.if_else(pending, length, 0),
        }
    )


def _grouped(seen: pa.Table, facts: pa.Table) -> pa.Table:
    rows = pa.concat_tables([seen, facts], promote_options="default")
    wanted = [
        ("discovered", "min"),
        ("end", "min"),
        ("order", "max"),
        ("assignment", "min"),
        ("explained", "min"),
        *((name, "sum") for name in ("pending_bytes", "rows", "bytes", "microseconds")),
    ]
    # Threads would mix the order, and save nothing.
    return rows.group_by(_KEY, use_threads=False).aggregate(wanted)


def was_passed_over(seen: pa.Table | pa.RecordBatch, end: str = "end") -> pa.Array:
    """Of rows of `SEEN_FILES` which say that the file was found and is not read."""
    # A version that only an order or a checkpoint names is in no row, and has no end.
    of_nothing = pc.equal(pc.fill_null(seen.column(end), 1), 0)
    of_nothing = pc.and_(of_nothing, pc.greater(seen.column("size"), 0))
    # One that grows may have had no whole record yet.
    return pc.and_(of_nothing, pc.invert(pc.starts_with(seen.column("etag"), GROWS)))


def says_gone(seen: pa.Table | pa.RecordBatch) -> pa.Array:
    """Of rows of `SEEN_FILES` which say that the file was gone, and its rows with it."""
    return pc.equal(seen.column("etag"), GONE_MARK)


def _described(grouped: pa.Table, ranges: pa.Table) -> pa.Table:
    order = pc.fill_null(grouped.column("order_max"), 0)
    # Ranges come with the newest checkpoint first, so the first position is the newest one.
    newest, explained = grouped.column("assignment_min"), grouped.column("explained_min")
    # What came back and was read in the end needs no reason.
    tells = pc.not_equal(order, STATES.index("read"))
    reason = ranges.column("reason").take(pc.if_else(tells, explained, None))
    is_done, is_empty = pc.equal(order, 0), pc.equal(grouped.column("size"), 0)
    is_gone = pc.and_(is_done, says_gone(grouped))
    order = pc.if_else(is_gone, STATES.index("retracted"), order)
    passed_over = pc.and_(is_done, was_passed_over(grouped, "end_min"))
    order = pc.if_else(passed_over, STATES.index("skipped"), order)
    reason = pc.if_else(passed_over, PASSED_OVER, reason)
    columns: dict[str, Any] = {
        **{name: grouped.column(name) for name in _KEY},
        "state": pa.array(STATES).take(order.combine_chunks()),
        "reason": pc.if_else(pc.and_(is_done, is_empty), "an empty file", reason),
        "discovered": grouped.column("discovered_min"),
        "pending_bytes": pc.fill_null(grouped.column("pending_bytes_sum"), 0),
    }
    for name in ("planned", "processed", "committed", "checkpoint", "epoch", "reader"):
        columns[name] = ranges.column(name).take(newest)
    for name in ("rows", "bytes", "microseconds"):
        columns[name] = grouped.column(f"{name}_sum")
    schema = pa.schema(list(FILES)[:-2])
    return pa.table([columns[name] for name in schema.names], schema=schema)

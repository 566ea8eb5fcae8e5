"""The view `splits`: every range that is pending, or that a retained checkpoint has assigned."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ...checkpoint_meta.documents.orders import Order, Orders
from ...checkpoint_meta.documents.reader_assignment import (
    FindCommit,
    continuations_of,
    readers_of,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommit
from ...checkpoint_meta.files.file_columns import (
    FileSplitSerializer,
    Numbers,
    numbers_array,
    ranges_of,
    splits_in,
)
from ...checkpoint_meta.files.file_split import RETRACTS, FileSplit
from ...enumerator.files.ledger.byte_ranges import byte_ranges_of, splits_without
from ...errors import OptionError
from ..query.file_rows import AssignedPart, assigned_parts
from .files_as_of import FILE_OF_SPLIT, FilesAsOf
from .state_view import TIME, StateView, fields

Parts: TypeAlias = Collection[tuple[int, int, int]]
"""Checkpoint, epoch and reader of each."""

SPLITS: Final = pa.schema(
    [
        *FILE_OF_SPLIT,
        *fields(pa.int64(), "start", "end"),
        *fields(pa.string(), "state", "reason"),
        *fields(pa.int64(), "checkpoint", "epoch"),
        ("reader", pa.int32()),
        *fields(TIME, "planned", "processed", "committed"),
        *fields(pa.int64(), "rows", "bytes", "microseconds", "dropped_records"),
    ]
)

_COMMITTED: Final = ("read", "skipped", "unfinished", "returned")
"""States of a range, as far as a commit says them."""


def done_orders(view: StateView) -> Sequence[Order]:
    """The orders that the newest checkpoint contains, in turn."""
    store = Orders(view.store)
    return [store.read(number) for number in range(1, view.orders_done + 1)]


def _forgotten(orders: Sequence[Order]) -> list[tuple[Order, list[FileSplit]]]:
    """Return what was dropped and was not ordered again since."""
    dropped: list[tuple[Order, list[FileSplit]]] = []
    for order in orders:
        # They are about a batch under way. What one drops of it, `CheckpointSnapshot.waived` shows.
        if order.action in {"waive", "reread", "retract"}:
            continue
        splits = list(order.read_splits(FileSplitSerializer()))
        # A later order about the same bytes replaces what an earlier one said, whether it reads or
        # drops them.
        dropped = [(by, splits_without(old, byte_ranges_of(splits))) for by, old in dropped]
        if not order.reads_again:
            dropped.append((order, splits))
    return [(order, splits) for order, splits in dropped if splits]


def splits(view: StateView) -> Iterator[pa.Table]:
    """Return what is pending, what was dropped, then what was assigned, newest checkpoint first.

    Rows of `SPLITS`.
    """
    yield from pending_splits(files_as_of_head(view))
    chain = view.chain()
    find = finder(view, chain)
    yield from forgotten_splits(done_orders(view), chain, find)
    yield from assigned_splits(chain, find)


def finder(view: StateView, chain: Sequence[CheckpointSnapshot]) -> FindCommit:
    """Finds commits; those of the chain are at hand, and each other one is a request."""
    links = {link.ref: link for link in chain}

    def find(checkpoint: CheckpointIdentity, reader: int) -> ReaderCommit | None:
        link = links.get(checkpoint.ref)
        return view.commits.find(checkpoint, reader) if link is None else link.verdict(reader)

    return find


def files_as_of_head(view: StateView, *, details: bool = False) -> FilesAsOf:
    """Read the ledger's files as of the newest checkpoint; `details` as for `FilesAsOf`."""
    if view.source not in ("", "files"):
        raise OptionError(
            "view: this state has no files",
            view.store.location,
            f"the state of the source {view.source!r}",
            "the state of the source 'files'",
            "The views checkpoints, readers, quarantine and schemas exist for any source.",
        )
    return FilesAsOf(view.store, view.head, details=details, history=view.history)


def pending_splits(head: FilesAsOf) -> Iterator[pa.Table]:
    """Return what was found and not assigned yet."""
    for ranges in head.pending():
        yield _table(ranges, {"state": pa.scalar("pending")})


def forgotten_splits(
    orders: Sequence[Order], chain: Sequence[CheckpointSnapshot], find: FindCommit
) -> Iterator[pa.Table]:
    """Return what was dropped by an order, with its reason."""
    for order, splits in _forgotten(orders):
        # What was being read when the order was made, and was read, was not pending any more.
        begun = [
            link
            for link in chain
            if link.checkpoint.header.orders < order.number
            and link.ref.checkpoint >= order.checkpoint
        ]
        left = splits_without(splits, byte_ranges_of(_read_in(begun, find)))
        if left:
            reason = order.reason or f"order {order.number}"
            reasons = {"state": pa.scalar("forgotten"), "reason": pa.scalar(reason)}
            yield _table(ranges_of(left), reasons)


def _read_in(chain: Sequence[CheckpointSnapshot], find: FindCommit) -> Iterator[FileSplit]:
    for part in assigned_parts(chain, find):
        states = assigned_part(part).column("state").to_pylist()
        splits = splits_in(part.ranges)
        yield from (s for s, state in zip(splits, states, strict=True) if state == "read")


def ended_parts(chain: Sequence[CheckpointSnapshot]) -> Parts:
    """The parts of readers of which nothing is left that no other row speaks of.

    Args:
        chain: the newest first.
    """
    ended: set[tuple[int, int, int]] = set()
    for link in chain:
        for reader in readers_of(link.checkpoint):
            part, commit = (*_named(link), reader), link.commits.get(reader)
            is_read = commit is not None and not (commit.unfinished or commit.not_begun.indexes)
            # What is left of a commit that is counted is pending, or was assigned once more.
            if reader in link.counted or (is_read and link.is_complete):
                ended.add(part)
            if part in ended:
                # A later part continues these.
                origins = continuations_of(link.checkpoint, reader)
                ended |= {(origin.checkpoint, origin.epoch, reader) for origin in origins}
    return ended


def _named(link: CheckpointSnapshot) -> tuple[int, int]:
    return link.ref.checkpoint, link.ref.epoch


def assigned_splits(
    chain: Sequence[CheckpointSnapshot], find: FindCommit, ended: Parts = ()
) -> Iterator[pa.Table]:
    """Return what retained checkpoints assigned or continued, and what became of it.

    `find` finds the commit in which a continuation begins; `ended`: see `ended_parts`.
    """
    return (assigned_part(part, ended) for part in assigned_parts(chain, find))


def assigned_part(part: AssignedPart, ended: Parts = ()) -> pa.Table:
    """Rows of `SPLITS`, one for each range; `ended` as in `assigned_splits`."""
    link, reader, commit = part.link, part.reader, part.commit
    header = link.checkpoint.header
    columns: dict[str, Any] = {
        "state": pa.scalar(link.outcome(reader)),
        "checkpoint": pa.scalar(header.checkpoint, pa.int64()),
        "epoch": pa.scalar(header.epoch, pa.int64()),
        "reader": pa.scalar(reader, pa.int32()),
        "planned": pa.scalar(header.created, TIME),
        "committed": pa.scalar(link.completed, TIME),
    }
    if commit is not None:
        is_ended = (*_named(link), reader) in ended
        columns |= _figures(commit, part.numbers, is_ended=is_ended)
    if link.waived:
        columns |= _waived(link, part.ranges, columns)
    return _table(part.ranges, columns)


def _waived(
    link: CheckpointSnapshot, batch: pa.RecordBatch, columns: Mapping[str, Any]
) -> dict[str, pa.Array]:
    given_up: dict[str, str] = {}
    for order in link.waived:
        why = f"given up by order {order.number}" + (f": {order.reason}" if order.reason else "")
        given_up |= {split.split_id: why for split in order.read_splits(FileSplitSerializer())}
    count = batch.num_rows
    state, reason = columns["state"], columns.get("reason", pa.nulls(count, pa.string()))
    # Without a commit one value holds for the whole batch.
    states = [state.as_py()] * count if isinstance(state, pa.Scalar) else state.to_pylist()
    reasons = reason.to_pylist()
    for at, split in enumerate(splits_in(batch)):
        if split.split_id in given_up:
            states[at], reasons[at] = "waived", given_up[split.split_id]
    return {"state": pa.array(states, pa.string()), "reason": pa.array(reasons, pa.string())}


def _figures(commit: ReaderCommit, numbers: Numbers, *, is_ended: bool) -> dict[str, Any]:
    count = len(commit.rows)
    state, dropped = np.zeros(count, np.int64), np.zeros(count, np.int64)
    state[list(commit.skipped)] = _COMMITTED.index("skipped")
    for part in () if is_ended else commit.unfinished:
        state[part.index] = _COMMITTED.index("unfinished")
    state[[split.index for split in commit.returned]] = _COMMITTED.index("returned")
    dropped[list(commit.dropped_records)] = list(commit.dropped_records.values())
    reasons = {**commit.skipped, **{split.index: split.reason for split in commit.returned}}
    figures = {
        "rows": commit.rows,
        "bytes": commit.input_bytes,
        "microseconds": commit.microseconds,
        "dropped_records": dropped,
    }
    columns = {
        "state": pa.array(_COMMITTED, pa.string()).take(numbers_array(state[numbers])),
        "processed": pa.scalar(commit.finished or None, TIME),
        **{name: numbers_array(np.asarray(of, np.int64)[numbers]) for name, of in figures.items()},
    }
    if reasons:
        columns["reason"] = pa.array(map(reasons.get, numbers.tolist()), pa.string())
    return columns


def _table(ranges: pa.RecordBatch, columns: dict[str, Any]) -> pa.Table:
    """Rows of `SPLITS`: the ranges, and what else is known of them."""
    count = ranges.num_rows
    columns_by_name = dict(zip(ranges.schema.names, ranges.columns, strict=True))
    columns_by_name["modified"] = moments(columns_by_name["modified"])
    columns_by_name |= columns
    retracts = pc.equal(columns_by_name["replaces"], RETRACTS)
    if "state" in columns and pc.any(retracts).as_py():
        # Nothing was read of them.
        is_done = pc.and_(retracts, pc.equal(columns["state"], "read"))
        columns_by_name["state"] = pc.if_else(is_done, "retracted", columns["state"])
    arrays = []
    for field in SPLITS:
        value = columns_by_name.get(field.name)
        # What is not known is null, so that all tables of the view have one schema and can be
        # joined.
        if value is None:
            value = pa.nulls(count, field.type)
        elif isinstance(value, pa.Scalar):
            value = pa.repeat(value, count)
        arrays.append(value)
    return pa.table(arrays, schema=SPLITS)


def moments(microseconds: pa.Array) -> pa.Array:
    """Microseconds as times; what is below 0 is not known."""
    valid = pc.if_else(pc.less(microseconds, 0), None, microseconds)
    return valid.cast(TIME)

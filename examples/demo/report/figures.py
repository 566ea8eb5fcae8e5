"""The figures of a report, out of the views of a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.connector.query.owner import Owner, owner_of
from pyspark_sluice.connector.views.catalog import table_of
from pyspark_sluice.connector.views.protocol import checkpoints_in_flight
from pyspark_sluice.connector.views.state_view import with_view

_WAITING: Final = ("pending", "assigned", "unfinished", "returned")
"""States of files that are not read to their end."""


@dataclass(frozen=True)
class Batch:
    """One checkpoint that is retained."""

    checkpoint: int
    planned: datetime
    seconds: float | None
    """From its cut to the last reader's commit; None while it runs."""

    rows: int
    bytes: int
    backlog_files: int
    backlog_bytes: int
    """Found and in no batch yet right after its cut; a file counts whole until its last part is."""

    slowest: float
    """Seconds of work of its slowest reader."""

    mean: float
    """The same, of all its readers."""

    bad_records: int = 0
    """Records that were dropped, or written to badRecordsPath."""


@dataclass(frozen=True)
class Figures:
    """All that is in a report."""

    location: str
    batches: Sequence[Batch]
    """The oldest first."""

    files: Mapping[str, tuple[int, int]]
    """State -> files and bytes."""

    quarantine: Sequence[Mapping[str, Any]]
    in_flight: Sequence[Mapping[str, Any]]
    """See `checkpoints_in_flight`."""

    owner: Owner
    query_id: str = ""
    """Spark's id of the query that has read the newest batch."""

    @property
    def has_finished(self) -> bool:
        """True if every reader of every batch has committed."""
        return all(reader["committed"] for link in self.in_flight for reader in link["readers"])


def figures_of(store: StateStore) -> Figures:
    """Look at a state; a query that runs on it does not notice.

    Raises:
        OptionError: the state is of a source that has no files.
        StateError: there is no state, or what is needed of it is damaged.
    """
    # Three looks, each as of one moment: a running query may cut a checkpoint between two of them.
    files = table_of(store, "files")
    checkpoints = table_of(store, "checkpoints")
    readers = table_of(store, "readers")
    batches = _batches(checkpoints, readers, _Backlog(files))
    quarantine = table_of(store, "quarantine").to_pylist()
    in_flight = with_view(store, lambda view: checkpoints_in_flight(view.chain()))
    return Figures(
        store.location,
        batches,
        _by_state(files),
        quarantine,
        in_flight,
        owner_of(store),
        _query_id(readers),
    )


def _query_id(readers: pa.Table) -> str:
    rows = [
        row for row in readers.select(["checkpoint", "query_id"]).to_pylist() if row["query_id"]
    ]
    # Several queries may have read this state, one after another.
    newest: str = max(rows, key=lambda row: row["checkpoint"])["query_id"] if rows else ""
    return newest


def _by_state(files: pa.Table) -> Mapping[str, tuple[int, int]]:
    grouped = files.group_by("state").aggregate([("size", "sum"), ("size", "count")])
    rows = sorted(grouped.to_pylist(), key=lambda row: -row["size_count"])
    return {row["state"]: (row["size_count"], row["size_sum"] or 0) for row in rows}


class _Backlog:
    def __init__(self, files: pa.Table) -> None:
        # Of what was assigned before the oldest retained checkpoint the time is unknown.
        is_dated = pc.or_(
            files.column("planned").is_valid(), pc.is_in(files.column("state"), pa.array(_WAITING))
        )
        files = files.filter(is_dated)
        self._sizes = _numbers(files.column("size"), 0)
        self._found = _numbers(files.column("discovered"), 0)
        self._left = _numbers(files.column("planned"), np.iinfo(np.int64).max)
        waiting = pc.equal(files.column("state"), "pending").to_numpy()
        # A pending file may have been planned before: a reader has sent it back, or an order reads
        # it again.
        self._left[waiting] = np.iinfo(np.int64).max

    def at(self, moment: int) -> tuple[int, int]:
        """The number and the bytes of the files that waited at `moment`, in microseconds."""
        there = (self._found <= moment) & (self._left > moment)
        return int(there.sum()), int(self._sizes[there].sum())


def _numbers(column: pa.ChunkedArray, instead: int) -> Any:
    # Times as microseconds.
    return np.array(pc.fill_null(column.cast(pa.int64()), instead).to_numpy())


def _batches(checkpoints: pa.Table, readers: pa.Table, backlog: _Backlog) -> list[Batch]:
    by_checkpoint: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in readers.to_pylist():
        by_checkpoint.setdefault((row["checkpoint"], row["epoch"]), []).append(row)
    # What an orphan assigned is assigned again by a checkpoint of the chain, and would count twice.
    chain = [row for row in checkpoints.to_pylist() if row["state"] != "orphan"]
    chain.sort(key=lambda row: row["checkpoint"])
    return [
        _batch(row, by_checkpoint.get((row["checkpoint"], row["epoch"]), []), backlog)
        for row in chain
    ]


def _batch(
    row: Mapping[str, Any], readers: Sequence[Mapping[str, Any]], backlog: _Backlog
) -> Batch:
    ends = [r["processed"] for r in readers if r["processed"] is not None]
    # A reader that was abandoned says no end; the cut that knew the batch to be complete is the
    # nearest.
    end = max(ends) if len(ends) == len(readers) and ends else row["committed"]
    work = [r["microseconds"] or 0 for r in readers if r["state"] == "read"]
    files, size = backlog.at(round(row["planned"].timestamp() * 1_000_000))
    return Batch(
        row["checkpoint"],
        row["planned"],
        # Driver and executor have clocks of their own, and the end may lie before the cut.
        None if end is None else max(0.0, (end - row["planned"]).total_seconds()),
        row["rows"] or 0,
        row["bytes"] or 0,
        files,
        size,
        max(work, default=0) / 1e6,
        # Divided once, so that the mean of equal ones is not larger than they are.
        sum(work) / len(work) / 1e6 if work else 0.0,
        sum(r["dropped_records"] or 0 for r in readers),
    )

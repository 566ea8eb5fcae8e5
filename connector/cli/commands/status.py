"""`sluice status`: backlog, rate, age of the oldest file, owner and quarantine, from the state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final

import pyarrow.compute as pc

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ....checkpoint_meta.documents.heartbeat import figures_of
from ....checkpoint_meta.documents.layout import BASES, INDEX
from ....checkpoint_meta.documents.orders import Orders
from ....checkpoint_meta.documents.query_records import RunSummary, find_seed, last_runs
from ....checkpoint_meta.documents.reader_assignment import readers_of
from ....checkpoint_meta.stores.contract import StateStore
from ....enumerator.files.event_time_batches import event_time_figures
from ...query.owner import owner_of
from ...query.spark_checkpoint import newest_batch
from ...views.amounts import counted, format_bytes, format_duration, run_text
from ...views.files_as_of import FilesAsOf, quarantined_splits
from ...views.protocol import checkpoints_in_flight
from ...views.state_view import StateView, with_view
from ..answer import Answer, Exit
from ..arguments import ViewArguments, parsed_storage_options

_RECENT: Final = 10
"""Checkpoints of which the rate is taken."""


def status_of(
    store: StateStore, storage_options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return what `sluice status --json` prints."""
    status = with_view(store, _status)
    batch, runs = newest_batch(store, storage_options), last_runs(store)
    run = runs[0] if runs else None
    status["batch"] = batch and asdict(batch)
    status["last_run"] = run and run.model_dump(exclude={"format"})
    if run is not None:
        # Short runs end before their second heartbeat.
        status["files_skipped"] = status["files_skipped"] or run.left_out
        status["failing_upkeep"] = status["failing_upkeep"] or run.failing_upkeep
    return {**status, "attention": list(_problems(status))}


def _problems(status: dict[str, Any]) -> Iterator[str]:
    """Yield everything that a person has to look at."""
    if quarantined := status["quarantined"]:
        yield f"{counted(quarantined, 'split')} in quarantine"
    if not is_dead(status):
        return
    batch, run = status["batch"], status["last_run"]
    if batch is not None and not batch["is_finished"]:
        yield f"batch {batch['number']} was begun and is not finished, and no query runs"
    if (
        run is not None
        and run["end"] == "failed"
        and run["newest_epoch"] >= status["owner"]["epoch"]
    ):
        yield "the last run failed"


def _status(view: StateView) -> dict[str, Any]:
    owner = owner_of(view.store)
    # Not the whole chain: `watch` asks every two seconds, and each link is a request on a bucket.
    links = view.chain(_RECENT)
    files = _of_files(view) if view.source in ("", "files") else None
    seed, orders = find_seed(view.store), Orders(view.store).newest()
    figures = figures_of(view.store, owner.epoch) if owner.epoch else {}
    listing = {"listing": figures["listingError"]} if "listingError" in figures else {}
    quarantined = files.pop("quarantined") if files else len(quarantined_splits(view))
    return {
        "state": view.store.location,
        "source": view.source or None,
        "owner": {"epoch": owner.epoch, "host": owner.host, "pid": owner.pid, "runs": owner.runs},
        "seed": seed and seed.model_dump(mode="json"),
        "newest": _newest(links),
        "inFlight": checkpoints_in_flight(links),
        "files_seen": files and files["seen"],
        "pending": files and files["pending"],
        "event_time": _event_time(links),
        "written_schema": _written_schema(links),
        "rate": _rate(links),
        "quarantined": quarantined,
        # Of the last heartbeat, up to a minute old.
        "failing_upkeep": {**figures.get("failingUpkeep", {}), **listing},
        "files_skipped": figures.get("filesSkipped", {}),
        # If orders are lost, `sluice verify` reports it.
        "orders_waiting": orders and orders - view.orders_done,
        "retained": {
            "checkpoints": len(view.refs),
            "bases": len(view.store.list(BASES)),
            "index_objects": len(view.store.list(INDEX)),
        },
    }


def _of_files(view: StateView) -> dict[str, Any]:
    # Without names: a status of ten million files needs their number alone.
    files = FilesAsOf(view.store, view.head)
    splits = size = 0
    oldest: int | None = None
    for batch in files.pending():
        splits += batch.num_rows
        size += pc.sum(pc.subtract(batch.column("end"), batch.column("start"))).as_py() or 0
        times = batch.column("modified")
        # -1 means that the file system has no times.
        first = pc.min(times.filter(pc.greater_equal(times, 0))).as_py()
        oldest = first if oldest is None or (first is not None and first < oldest) else oldest
    return {
        "seen": len(files.keys()),
        "quarantined": len(files.quarantined()),
        "pending": {
            "splits": splits,
            "bytes": size,
            "oldest_modified_seconds": None if oldest is None else time.time() - oldest / 1e6,
        },
    }


def _newest(links: Sequence[CheckpointSnapshot]) -> dict[str, Any] | None:
    if not links:
        return None
    link = links[0]
    header = link.checkpoint.header
    return {
        "checkpoint": header.checkpoint,
        "epoch": header.epoch,
        "planned": header.created / 1e6,
        "splits": header.assigned_splits,
        "readers": len(readers_of(link.checkpoint)),
        "commits": len(link.commits),
    }


def _event_time(links: Sequence[CheckpointSnapshot]) -> dict[str, Any] | None:
    """Return how far a query has come in event time; None if its files are in another order."""
    cursors = links[0].checkpoint.header.cursors.get("eventTime") if links else None
    return None if cursors is None else event_time_figures(cursors)


def _written_schema(links: Sequence[CheckpointSnapshot]) -> Mapping[str, Any] | None:
    """Spark's JSON of the rows in the newest data files; None for a query that writes none."""
    commits = (commit for link in links for commit in link.commits.values())
    return next((c.written_schema for c in commits if c.written_schema is not None), None)


def _rate(links: Sequence[CheckpointSnapshot]) -> dict[str, Any] | None:
    """Rate of the finished batches, from the cut of the first to the end of the last."""
    read = [link for link in links if link.commits]
    if not read:
        return None
    commits = [commit for link in read for commit in link.commits.values()]
    begun = read[-1].checkpoint.header.created
    # Commits of earlier releases do not say when they ended.
    ends = [commit.finished for commit in commits if commit.finished]
    seconds = (max(ends, default=read[0].checkpoint.header.created) - begun) / 1e6
    rows = sum(sum(commit.rows) for commit in commits)
    size = sum(sum(commit.input_bytes) for commit in commits)
    return {
        "checkpoints": len(read),
        "seconds": seconds,
        "rows": rows,
        "bytes": size,
        "dropped_records": sum(sum(commit.dropped_records.values()) for commit in commits),
        "splits": sum(len(commit.rows) for commit in commits),
        "rows_per_second": rows / seconds if seconds > 0 else None,
        "bytes_per_second": size / seconds if seconds > 0 else None,
    }


def is_dead(status: dict[str, Any]) -> bool:
    """True if it is known that no query runs on this state."""
    # Not "unknown": an owner on another host may well be at work.
    return status["owner"]["runs"] in ("gone", "nobody")


def time_left(status: dict[str, Any]) -> float | None:
    """Seconds until the backlog is read at the present rate.

    None where either is unknown, or no query reads it.
    """
    if is_dead(status):
        return None
    rate = (status["rate"] or {}).get("bytes_per_second")
    pending = status["pending"]
    return pending["bytes"] / rate if rate and pending else None


def status_lines(status: dict[str, Any], owner: str) -> dict[str, str]:
    """The same for people."""
    lines = {"state": status["state"], "owner": owner}
    seed = status["seed"]
    if seed is not None:
        origin = seed["origin"]
        place = next(
            (origin[key] for key in ("state", "export", "checkpoint") if key in origin), ""
        )
        when = format_duration(time.time() - seed["written"] / 1e6)
        lines["made by"] = (
            f"sluice {seed['purpose']} of {place}, {when} ago, {seed['user']} on {seed['host']}"
        )
    newest, pending = status["newest"], status["pending"]
    if newest is None:
        lines["checkpoint"] = "none yet"
    else:
        when = format_duration(time.time() - newest["planned"])
        lines["checkpoint"] = (
            f"{newest['checkpoint']} of epoch {newest['epoch']}, planned {when} ago: "
            f"{counted(newest['splits'], 'split')}, committed by "
            f"{newest['commits']} of {counted(newest['readers'], 'reader')}"
        )
    for waiting in status["inFlight"]:
        held = [reader for reader in waiting["readers"] if reader["heldUnder"] is not None]
        if held:
            splits = sum(reader["heldSplits"] for reader in held)
            under = min(reader["heldUnder"] for reader in held)
            amount = f"{counted(splits, 'split')} for {counted(len(held), 'reader')}"
            lines[f"held in {waiting['checkpoint']}"] = f"{amount}, until the commit of {under}"
    if pending is not None:
        lines["files seen"] = f"{status['files_seen']:,}"
        lines["backlog"] = (
            f"{counted(pending['splits'], 'split')}, {format_bytes(pending['bytes'])}"
        )
        if pending["oldest_modified_seconds"] is not None:
            age = format_duration(pending["oldest_modified_seconds"])
            lines["oldest file"] = f"written {age} ago"
    lines |= _event_time_lines(status["event_time"]) | _data_file_lines(status["written_schema"])
    lines |= _rate_lines(status)
    lines["quarantined"] = counted(status["quarantined"], "split")
    lines |= _run_lines(status)
    if skipped := status["files_skipped"]:
        lines["skipped"] = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    for work, error in status["failing_upkeep"].items():
        lines[f"fails: {work}"] = error
    if status["orders_waiting"]:
        lines["orders"] = f"{status['orders_waiting']:,}, carried out at the next start"
    return lines


def _run_lines(status: dict[str, Any]) -> dict[str, str]:
    lines, run = dict[str, str](), status["last_run"]
    if run is not None:
        summary = RunSummary(**run)
        ago = format_duration(time.time() - summary.ended)
        lines["last run"] = f"ended {ago} ago, {run_text(summary)}"
        if summary.error:
            lines["last error"] = summary.error
    if problems := status["attention"]:
        lines["attention"] = "; ".join(problems)
    return lines


def _rate_lines(status: dict[str, Any]) -> dict[str, str]:
    rate, pending, lines = status["rate"], status["pending"], dict[str, str]()
    if rate is None:
        return lines
    batches = counted(rate["checkpoints"], "checkpoint")
    if rate["bytes_per_second"]:
        lines["rate"] = (
            f"{counted(round(rate['rows_per_second']), 'row')} and "
            f"{format_bytes(rate['bytes_per_second'])} a second, over {batches}"
        )
        if pending is not None and pending["bytes"] and not is_dead(status):
            lines["backlog read in"] = format_duration(time_left(status))
    if bad := rate["dropped_records"]:
        share = bad / (bad + rate["rows"])
        lines["bad records"] = f"{bad:,} in the last {batches}, {share:.1%} of the records"
    return lines


def _event_time_lines(figures: dict[str, Any] | None) -> dict[str, str]:
    if figures is None:
        return {}
    lines = {"event time": f"reached {figures['reached']}"}
    if figures["lateFiles"]:
        names = "; ".join(figures["newestLateFiles"])
        lines["late files"] = f"{figures['lateFiles']:,}, the newest: {names}"
    return lines


def _data_file_lines(schema: Mapping[str, Any] | None) -> dict[str, str]:
    if schema is None:
        return {}
    kinds = ((field["name"], field["type"]) for field in schema["fields"])
    named = (f"{name} {k if isinstance(k, str) else k['type']}" for name, k in kinds)
    return {"writes": ", ".join(named)}


def status(arguments: ViewArguments) -> Answer:
    """Show the backlog, the rate, owner and last run.

    Ends with 1 if something needs attention.
    """
    store = arguments.opened()
    figures = status_of(store, parsed_storage_options(arguments.storage_options))
    # A scheduled check goes by the exit code.
    code = Exit.FOUND if figures["attention"] else Exit.FINE
    return Answer(figures, [status_lines(figures, str(owner_of(store)))], code)

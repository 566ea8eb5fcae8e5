"""Counts, bytes and durations for people, and one line about a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from ...checkpoint_meta.documents.query_records import RunSummary


def format_bytes(count: float) -> str:
    """Bytes with a unit, powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def counted(count: int, noun: str) -> str:
    """1 split, 2 splits; 1 batch, 2 batches."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def format_duration(seconds: float | None) -> str:
    """Two units at most."""
    if seconds is None:
        return "-"
    left = timedelta(seconds=max(0, round(seconds)))
    days, rest = left.days, left.seconds
    hours, minutes, rest = rest // 3600, rest // 60 % 60, rest % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


_CHANGED: Final = "onOverwrite"
_WAITING: Final = ("settleTime", "modifiedInFuture", "readyMarker")
"""Reasons for which a file is taken later."""


def run_text(summary: RunSummary) -> str:
    """Return how the run ended, what it read, and everything that it did not read, with reasons."""
    return "; ".join((f"{summary.end}: {_read(summary)}", *_notes(summary)))


def _read(summary: RunSummary) -> str:
    if not summary.batches:
        return "nothing new" if summary.end == "finished" else "no batch"
    seconds = summary.ended - summary.began
    took = f"{seconds:.1f} s" if seconds < 60 else format_duration(seconds)
    return (
        f"{counted(summary.batches, 'batch')}, {counted(summary.row_count, 'row')} in "
        f"{counted(summary.files, 'data file')} ({format_bytes(summary.bytes)}), {took}"
    )


def _notes(summary: RunSummary) -> Iterator[str]:
    yield from _left_out(dict(summary.left_out))
    if summary.skipped_files:
        yield f"{counted(summary.skipped_files, 'file')} skipped, deleted or unreadable"
    if summary.dropped_records:
        yield f"{counted(summary.dropped_records, 'bad record')} dropped"
    if waiting := summary.waiting:
        size = format_bytes(waiting["bytes"])
        yield f"{counted(waiting['splits'], 'split')} ({size}) still to be read"
    if summary.quarantined:
        yield f"{counted(summary.quarantined, 'split')} in quarantine"
    if summary.new_columns:
        yield f"schema: {', '.join(summary.new_columns)}"
    if deaths := summary.dead_workers:
        yield f"{counted(len(deaths), 'worker')} died and was replaced ({', '.join(deaths)})"
    for work, error in summary.failing_upkeep.items():
        yield f"fails: {work}: {error}"


def _left_out(reasons: dict[str, int]) -> Iterator[str]:
    if changed := reasons.pop(_CHANGED, 0):
        yield f"{counted(changed, 'changed file')} not read again (onOverwrite=ignore)"
    later = {reason: count for reason, count in reasons.items() if reason in _WAITING}
    if later:
        yield f"{_by_reason(later)} not read yet"
    if rest := {reason: count for reason, count in reasons.items() if reason not in later}:
        yield f"{_by_reason(rest)} left out"


def _by_reason(counts: Mapping[str, int]) -> str:
    total = counted(sum(counts.values()), "file")
    names = list(counts)
    each = names if len(names) == 1 else [f"{name} {counts[name]:,}" for name in names]
    return f"{total} ({', '.join(each)})"

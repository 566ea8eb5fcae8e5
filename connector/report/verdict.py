"""What a report says first: whether the query runs, keeps up, and left anything out.

Not here: the figures (`figures.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..views.amounts import counted, format_bytes
from .figures import Batch, Figures

_RECENT: Final = 10
"""Batches by which a backlog is judged."""

Level = Literal["good", "watch", "bad"]
_WORSE: Final[dict[Level, int]] = {"good": 0, "watch": 1, "bad": 2}


@dataclass(frozen=True)
class Verdict:
    """The worst of all that was found, and a sentence for each."""

    level: Level
    sentences: tuple[str, ...]


def verdict_of(figures: Figures) -> Verdict:
    """Judge a state by its figures."""
    found = list(_found(figures))
    worst = max((level for level, _ in found), key=_WORSE.__getitem__)
    return Verdict(worst, tuple(sentence for _, sentence in found))


def _found(figures: Figures) -> Iterator[tuple[Level, str]]:
    yield _life(figures)
    if figures.batches:
        yield _backlog(figures.batches)
    if figures.quarantine:
        yield "bad", f"{counted(len(figures.quarantine), 'split')} in quarantine."
    skipped, _ = figures.files.get("skipped", (0, 0))
    if skipped:
        yield "watch", f"{counted(skipped, 'file')} skipped."


def _life(figures: Figures) -> tuple[Level, str]:
    life = figures.owner.runs
    if life == "running":
        return "good", "The query runs."
    if life == "unknown":
        return "watch", "It is not known whether the query runs."
    # A run that has read everything there was has ended as it should.
    if figures.in_flight and not figures.has_finished:
        return "bad", "No query runs, and a batch is not finished."
    return "watch", "No query runs."


def _backlog(batches: Sequence[Batch]) -> tuple[Level, str]:
    recent = batches[-_RECENT:]
    first, last = recent[0].backlog_bytes, recent[-1].backlog_bytes
    if not recent[-1].backlog_files:
        return "good", "There is no backlog."
    backlog = f"The backlog is {counted(recent[-1].backlog_files, 'file')}, {format_bytes(last)}"
    if last > first:
        return "watch", f"{backlog}, and has grown over the last {len(recent)} batches."
    return "good", f"{backlog}, and has not grown over the last {len(recent)} batches."

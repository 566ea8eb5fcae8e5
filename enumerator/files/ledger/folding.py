"""What a chain of checkpoints adds up to: pending = what became pending, minus what was assigned.

All rows of the chain are sorted by file at once; only files of which a part was taken are looked
at one by one.

Not here: reading the chain (`enumerator/restore.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.attachments import Attachments
from ....checkpoint_meta.file_columns import (
    RANGES,
    Numbers,
    numbers_array,
    numbers_in,
    with_borders,
    withdrawn,
)
from ....checkpoint_meta.index.keys import (
    Flags,
    Names,
    SeenKeys,
    names_in,
    versions_in,
)
from ....checkpoint_meta.index.run import Run, read_keys
from ...large_state import StateDocument
from .seen import Piece, SeenFiles, Tail
from .state import FileState


@dataclass(frozen=True, slots=True)
class _Rows:
    """A batch of ranges of one checkpoint, that became pending or were assigned."""

    batch: pa.RecordBatch
    names: Names
    versions: Any
    added: bool
    at: int
    """Of the document in the chain."""
    moment: int
    """Order in the chain; within a checkpoint what was let go of comes first, then what became
    pending, then what was assigned."""


def fold(
    chain: Sequence[StateDocument], attachments: Attachments, *, details: bool = False
) -> FileState:
    """The state after the last of `chain`, which begins with a base or at the very start.

    With `details` newer versions of known files are looked for, too.

    Raises:
        StateError: an object that the base refers to is gone or damaged.
    """
    runs = [run for document in chain for run in _runs(document, attachments, details=details)]
    rows = [part for at, document in enumerate(chain) for part in _rows(document, at)]
    tails = _tails(chain, rows, runs, details=details)
    return FileState(_pending(rows), tuple(runs), tails)


class FoldedParts:
    """Parts of what `fold` makes, for whoever does not need all of it."""

    def __init__(self, chain: Sequence[StateDocument]) -> None:
        self._chain = chain
        self._rows = [part for at, document in enumerate(chain) for part in _rows(document, at)]

    def pending(self) -> Sequence[pa.RecordBatch]:
        """What is pending; no object beside the chain is looked at."""
        return _pending(self._rows)

    def count_seen(self, attachments: Attachments) -> int:
        """How many files are known.

        Raises:
            StateError: an object that the base refers to is gone or damaged.
        """
        runs = [run for each in self._chain for run in _runs(each, attachments, details=False)]
        told = [p.names for p in self._rows if _tells(self._chain[p.at])]
        sealed = SeenKeys.merge([run.keys for run in runs]) if runs else ()
        if not told:
            return len(sealed)
        known = SeenFiles(runs).know(SeenKeys.sort(Names.join(told)).names)
        return len(sealed) + int(np.count_nonzero(~known))


def _runs(document: StateDocument, attachments: Attachments, *, details: bool) -> list[Run]:
    found = iter(document.attachments)
    runs = []
    for keys, files in zip(found, found, strict=True):
        known = read_keys(attachments.read(keys))
        runs.append(Run(known if details else known.bare(), attachments.own(keys, files)))
    return runs


def _rows(document: StateDocument, at: int) -> list[_Rows]:
    made = []
    for step, ranges in _steps(document):
        if ranges.num_rows:
            names, versions = names_in(ranges.column("path")), versions_in(ranges)
            made.append(_Rows(ranges, names, versions, step == 1, at, 3 * at + step))
    return made


def _steps(document: StateDocument) -> Iterator[tuple[int, pa.RecordBatch]]:
    """0: ranges that were let go of; 1: that became pending, or only seen; 2: assigned."""
    for batch in document.state:
        ranges = _ranges(batch)
        gone = numbers_in(ranges, "start") > numbers_in(ranges, "end")
        if not gone.any():
            yield 1, ranges
            continue
        rows = numbers_array(np.flatnonzero(gone))
        yield 0, withdrawn(ranges.take(rows))
        yield 1, ranges.take(numbers_array(np.flatnonzero(~gone)))
    for batch in document.assigned:
        yield 2, _ranges(batch)


def _ranges(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([batch.column(name) for name in RANGES.names], schema=RANGES)


# Seen -----------------------------------------------------------------------------------------


def _tails(
    chain: Sequence[StateDocument], rows: Sequence[_Rows], runs: Sequence[Run], *, details: bool
) -> tuple[Tail, ...]:
    """What the documents know of and the runs do not."""
    seen = SeenFiles(runs, details=details)
    for part in rows:
        document = chain[part.at]
        if _tells(document):
            empty = numbers_in(part.batch, "start") == numbers_in(part.batch, "end")
            _learn(seen, part, ~empty, document, newer=False)
            _learn(seen, part, empty, document, newer=details)
    return seen.tails


def _tells(document: StateDocument) -> bool:
    # What is pending in a base with runs is in its runs, too.
    return not (document.is_base and document.attachments)


def _learn(
    seen: SeenFiles, part: _Rows, which: Flags, document: StateDocument, *, newer: bool
) -> None:
    """Any range tells of a file that was not known; of a newer version only an empty one does.

    Of one that was known a range may speak because it came back, when there is a newer version.
    """
    rows = np.flatnonzero(which)
    if not len(rows):
        return
    names = part.names.take(rows)
    if newer:
        known, version, end = seen.details_of(names)
        ends = numbers_in(part.batch, "end")[rows]
        new = ~known | (version != part.versions[rows]) | (end < ends)
    else:
        known = seen.know(names)
        new = ~known
    if not new.any():
        return
    rows = rows[new]
    batch = part.batch.take(numbers_array(rows))
    ends = numbers_in(batch, "end" if newer else "size")
    names = names.take(new)
    keys = SeenKeys.sort(names, part.versions[rows], ends)
    if len(keys) < len(names):
        # Several ranges of one file, or of several versions.
        at = keys.find(names)
        last = np.zeros(len(keys), np.int64)
        last[at] = np.arange(len(names))
        batch, ends = batch.take(numbers_array(last)), ends[last]
    piece = Piece(batch, ends, document.created, document.checkpoint)
    seen.add(keys, piece, len(keys) - int(np.count_nonzero(known)))


# Pending --------------------------------------------------------------------------------------


def _pending(rows: Sequence[_Rows]) -> list[pa.RecordBatch]:
    if not rows:
        return []
    names = Names.join([part.names for part in rows])
    versions = np.concatenate([part.versions for part in rows])
    low = names.low ^ versions
    sizes = [part.batch.num_rows for part in rows]
    part_of = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    row_of = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    start = np.concatenate([numbers_in(part.batch, "start") for part in rows])
    end = np.concatenate([numbers_in(part.batch, "end") for part in rows])
    added = np.repeat(np.array([part.added for part in rows]), sizes)
    moment = np.repeat(np.array([part.moment for part in rows], np.int32), sizes)
    real = start < end
    order = np.lexsort((moment[real], low[real], names.high[real]))
    order = np.flatnonzero(real)[order]
    if not len(order):
        return []
    high, low = names.high[order], low[order]
    begins = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])))
    ends = np.append(begins[1:], len(order))
    start, end, added = start[order], end[order], added[order]
    ever_added = np.logical_or.reduceat(added, begins)
    one_range = np.minimum.reduceat(start, begins) == np.maximum.reduceat(start, begins)
    one_range &= np.minimum.reduceat(end, begins) == np.maximum.reduceat(end, begins)
    # Of a file with one range all the time what happened last counts.
    whole = order[ends - 1][ever_added & one_range & added[ends - 1]]
    kept = [_Kept(part_of[whole], row_of[whole], None, None)]
    pieces: list[tuple[int, int, int]] = []
    for group in np.flatnonzero(ever_added & ~one_range):
        where = slice(begins[group], ends[group])
        ranges = _parts_left(start[where].tolist(), end[where].tolist(), added[where].tolist())
        pieces += [(int(order[where][0]), a, b) for a, b in ranges]
    if pieces:
        at = np.array([row for row, _, _ in pieces])
        borders = np.array([(a, b) for _, a, b in pieces], np.int64)
        kept.append(_Kept(part_of[at], row_of[at], borders[:, 0], borders[:, 1]))
    return [batch for some in kept for batch in some.batches(rows)]


def _parts_left(start: list[int], end: list[int], added: list[bool]) -> list[tuple[int, int]]:
    pending: list[tuple[int, int]] = []
    for first, last, becomes_pending in zip(start, end, added, strict=True):
        if becomes_pending:
            pending.append((first, last))
            continue
        left = []
        for a, b in pending:
            if last <= a or b <= first:
                left.append((a, b))
            else:
                left += [part for part in ((a, first), (last, b)) if part[0] < part[1]]
        pending = left
    return pending


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows that are pending, by their place; with borders of their own where there are any."""

    part: Any
    row: Any
    start: Numbers | None
    end: Numbers | None

    def batches(self, rows: Sequence[_Rows]) -> list[pa.RecordBatch]:
        made = []
        for part in np.unique(self.part):
            here = self.part == part
            taken = rows[part].batch.take(numbers_array(self.row[here]))
            if self.start is not None and self.end is not None:
                taken = with_borders(taken, self.start[here], self.end[here])
            made.append(taken)
        return made

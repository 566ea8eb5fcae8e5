"""The state of the file source as it goes into a checkpoint and comes out of a chain of them.

A snapshot says what became pending since the one before, what is pending no longer, and which files
became known. The snapshot after a first listing whose files are not to be read names the runs of
the index, too. What is restored is all that is pending, and the index of what was seen.

A chain adds up to what became pending, minus what was assigned. All its rows are sorted by file at
once; only files of which a part was taken are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import override

from ....checkpoint_meta.documents.attachments import Attachment, Attachments
from ....checkpoint_meta.documents.checkpoint_ref import NO_IDENTITY, CheckpointIdentity
from ....checkpoint_meta.documents.serializer import VersionedSerializer
from ....checkpoint_meta.files.file_columns import (
    Flags,
    Numbers,
    all_columns,
    became_pending,
    becomes_pending,
    changes_of,
    content_changes,
    contents_assigned,
    contents_in,
    flags_in,
    has_times,
    is_withdrawn,
    numbers_array,
    numbers_in,
    ranges_in,
    ranges_of,
    splits_in,
    with_bounds,
    with_times,
)
from ....checkpoint_meta.files.file_split import FileSplit
from ....checkpoint_meta.index.fingerprints import (
    Names,
    SeenKeys,
    Words,
    names_in,
    versions_in,
)
from ....checkpoint_meta.index.run import ABSENT, AbsentFiles, Run, read_keys
from ...large_state import StateDocument
from .byte_ranges import piece_of, without
from .seen_files import Portion, SeenFiles, Tail


@dataclass(frozen=True)
class FileState:
    """Ranges in columns, and the other files that were seen."""

    changes: Sequence[pa.RecordBatch] = ()
    """Rows of `CHANGES`; of a state that was restored, those that are pending."""

    runs: tuple[Run, ...] = ()
    tails: tuple[Tail, ...] = ()
    times: Sequence[pa.RecordBatch] = ()
    """In a state that was restored: rows of `TIMED_CHANGES` that say what was remembered."""

    absent: Attachment | None = None
    """The object with the times of absent files; of a snapshot, if it is another one."""

    absent_files: AbsentFiles | None = None
    """Its content, in a state that was restored."""

    checkpoints: Sequence[CheckpointIdentity] = ()
    """In a state that was restored: checkpoints whose files it knows, its own as the last one."""

    def __iter__(self) -> Iterator[FileSplit]:
        """The ranges that are pending, or became so, an object each: for tests and views."""
        for batch in self.changes:
            yield from splits_in(became_pending(batch))


class FileStateSerializer(VersionedSerializer[FileState]):
    """Version 1: rows of `CHANGES`, or of `TIMED_CHANGES`."""

    version = 1

    @override
    def serialize(self, value: FileState) -> pa.RecordBatch:
        batches = self.serialize_all(value)
        return pa.concat_batches(list(batches)) if len(batches) > 1 else batches[0]

    @override
    def serialize_all(self, value: FileState) -> Sequence[pa.RecordBatch]:
        """The changes, and a row for each known file or content that is in no run."""
        seen = [
            changes_of(with_bounds(piece.files, piece.end, piece.end), known=True)
            for tail in value.tails
            for piece in tail.pieces
        ]
        contents = [
            content_changes(tail.keys.contents(known=known), known=known)
            for tail in value.tails
            for known in (False, True)
        ]
        batches = [batch for batch in (*value.changes, *seen, *contents) if batch.num_rows]
        # The batches of one checkpoint have one schema.
        if any(map(has_times, batches)):
            batches = list(map(with_times, batches))
        return batches or [changes_of(ranges_of([]))]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> FileState:
        return FileState([all_columns(batch)])


class _Rows:
    """Ranges, and the fingerprints of their files once something asks for them."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = ranges_in(batch)
        self._part_of: tuple[_Rows, NDArray[np.intp]] | None = None

    def where(self, chosen: Flags) -> _Rows:
        """Some of them; files of both are looked at once."""
        if chosen.all():
            return self
        at = np.flatnonzero(chosen)
        # Mostly none: what takes rows takes long to import.
        rows = _Rows(self.batch.take(numbers_array(at)) if len(at) else self.batch[:0])
        rows._part_of = self, at
        return rows

    @cached_property
    def names(self) -> Names:
        if self._part_of is None:
            return names_in(self.batch.column("path"))
        whole, at = self._part_of
        return whole.names.take(at)

    @cached_property
    def versions(self) -> Words:
        return versions_in(self.batch)


class _Change(NamedTuple):
    """A batch of ranges of one checkpoint that became pending, or are pending no longer."""

    rows: _Rows
    is_added: bool


def fold(
    chain: Sequence[StateDocument], attachments: Attachments, *, details: bool = False
) -> FileState:
    """The state after the last of `chain`, which begins with a base or at the very start.

    With `details` newer versions of known files are looked for, too.

    Raises:
        StateError: an object that the base refers to is gone or damaged.
    """
    runs = [run for document in chain for run in _runs(document, attachments, details=details)]
    seen = SeenFiles(runs, details=details)
    changes: list[_Change] = []
    for document in chain:
        states = [(batch, _Rows(batch)) for batch in document.state]
        for batch, rows in states:
            _learn(seen, rows.where(flags_in(batch, "known")), document)
        _learn_contents(seen, document)
        changes += _changes(document, states)
    pending = [changes_of(ranges) for ranges in _pending(changes)]
    times = [batch for document in chain for batch in document.state if has_times(batch)]
    absent, absent_files = _absent(chain, attachments)
    checkpoints = [document.identity for document in chain if document.identity != NO_IDENTITY]
    return FileState(pending, tuple(runs), seen.tails, times, absent, absent_files, checkpoints)


def pending_after(chain: Sequence[StateDocument]) -> Sequence[pa.RecordBatch]:
    """Return what is pending after `chain`, rows of `RANGES`; reads no object outside the chain."""
    changes: list[_Change] = []
    for document in chain:
        changes += _changes(document, [(batch, _Rows(batch)) for batch in document.state])
    return _pending(changes)


def _absent(
    chain: Sequence[StateDocument], attachments: Attachments
) -> tuple[Attachment | None, AbsentFiles | None]:
    attached = [each for document in chain for each in document.attachments if _is_absent(each)]
    if not attached:
        return None, None
    # Each has all there is to say, so the newest counts.
    files = AbsentFiles.from_bytes(attachments.read(attached[-1]))
    (absent,) = attachments.own(attached[-1])
    return absent, files


def _is_absent(attachment: Attachment) -> bool:
    return attachment.name.endswith(f".{ABSENT}")


def _runs(document: StateDocument, attachments: Attachments, *, details: bool) -> list[Run]:
    attached = iter([each for each in document.attachments if not _is_absent(each)])
    runs = []
    # A run is two attachments in a row.
    for keys, files in zip(attached, attached, strict=True):
        seen = read_keys(attachments.read(keys))
        runs.append(Run(seen if details else seen.bare(), attachments.own(keys, files)))
    return runs


# Seen -----------------------------------------------------------------------------------------


def _learn(seen: SeenFiles, rows: _Rows, document: StateDocument) -> None:
    """These versions are known, each as taken up to its `end`; the last row of a file counts."""
    if not rows.batch.num_rows:
        return
    files, names, versions = rows.batch, rows.names, rows.versions
    ends = numbers_in(files, "end")
    if seen.details:
        is_seen, version, end = seen.details_of(names)
        new = ~is_seen | (version != versions) | (end != ends)
    else:
        is_seen = seen.contains(names)
        # A file that was found may be passed over later.
        new = ~is_seen | ((ends == 0) & (numbers_in(files, "size") > 0))
    last = np.flatnonzero(new)
    last = last[names.take(last).order()]
    if not len(last):
        return
    keys = SeenKeys(names.take(last), versions[last], ends[last])
    # All of them, each once, stay as they are: the rows of a portion are in any order.
    if len(last) < len(ends):
        files, ends = files.take(numbers_array(last)), ends[last]
    piece = Portion(files, ends, document.created, document.checkpoint)
    seen.add(keys, piece, int(np.count_nonzero(~is_seen[last])))


def _learn_contents(seen: SeenFiles, document: StateDocument) -> None:
    # What nobody has read may have been assigned again in the same checkpoint.
    for known in (False, True):
        said = [text for batch in document.state for text in contents_in(batch, known=known)]
        seen.add_contents(said, known=known)
    assigned = [text for batch in document.assigned for text in contents_assigned(batch)]
    seen.add_contents(assigned, known=True)


# Pending --------------------------------------------------------------------------------------


def _changes(
    document: StateDocument, states: Sequence[tuple[pa.RecordBatch, _Rows]]
) -> list[_Change]:
    """Return the changes of a checkpoint in their order: dropped, became pending, assigned."""
    dropped = [rows.where(is_withdrawn(batch)) for batch, rows in states]
    added = [rows.where(becomes_pending(batch)) for batch, rows in states]
    assigned = map(_Rows, document.assigned)
    changes = [
        *(_Change(rows, False) for rows in dropped),
        *(_Change(rows, True) for rows in added),
        *(_Change(rows, False) for rows in assigned),
    ]
    return [change for change in changes if change.rows.batch.num_rows]


def _pending(changes: Sequence[_Change]) -> list[pa.RecordBatch]:
    # What was assigned as soon as it was found never became pending: mostly that is everything.
    changes = list(dropwhile(lambda change: not change.is_added, changes))
    if not changes:
        return []
    # In columns, for a chain may hold ranges of millions of files. Only files with several ranges
    # are looked at one by one.
    rows = [change.rows for change in changes]
    names = Names.join([part.names for part in rows])
    # Two versions of a file are two files here: a range of one says nothing about the other.
    names = Names(names.high, names.low ^ np.concatenate([part.versions for part in rows]))
    sizes = [part.batch.num_rows for part in rows]
    part_of = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    row_of = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    start = np.concatenate([numbers_in(part.batch, "start") for part in rows])
    end = np.concatenate([numbers_in(part.batch, "end") for part in rows])
    added = np.repeat(np.array([change.is_added for change in changes]), sizes)
    # Stable: of one file the changes stay in their order.
    order = np.lexsort((names.low, names.high))
    high, low = names.high[order], names.low[order]
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
        pieces += [(int(order[where][at]), a, b) for at, a, b in ranges]
    if pieces:
        at = np.array([row for row, _, _ in pieces])
        boundaries = np.array([(a, b) for _, a, b in pieces], np.int64)
        kept.append(_Kept(part_of[at], row_of[at], boundaries[:, 0], boundaries[:, 1]))
    return [batch for some in kept for batch in some.batches(rows)]


def _parts_left(start: list[int], end: list[int], added: list[bool]) -> list[tuple[int, int, int]]:
    """(row by which it became pending, start, end) of each range that is left."""
    pending: list[tuple[int, int, int]] = []
    for at, (first, last) in enumerate(zip(start, end, strict=True)):
        if added[at]:
            pending.append((at, first, last))
        else:
            # What was assigned may be any part of it: ranges are cut when they are taken.
            pending = [
                (row, *left) for row, a, b in pending for left in without([(a, b)], [(first, last)])
            ]
    return pending


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows that are pending, by their place; with bounds of their own where there are any."""

    part: Any
    row: Any
    start: Numbers | None
    end: Numbers | None

    def batches(self, rows: Sequence[_Rows]) -> list[pa.RecordBatch]:
        batches_by_part = []
        # As np.unique, which would import masked arrays.
        for part in np.flatnonzero(np.bincount(self.part)).tolist():
            here = self.part == part
            ranges = rows[part].batch.take(numbers_array(self.row[here]))
            if self.start is not None and self.end is not None:
                bounds = zip(splits_in(ranges), self.start[here], self.end[here], strict=True)
                ranges = ranges_of([piece_of(piece, int(a), int(b)) for piece, a, b in bounds])
            batches_by_part.append(ranges)
        return batches_by_part

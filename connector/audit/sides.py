"""The sides of an audit, each in columns by the fingerprint of a path: ten million files fit."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.orders import Order
from ...checkpoint_meta.files.file_columns import (
    FileSplitSerializer,
    Flags,
    Numbers,
    numbers_array,
    words_in,
)
from ...checkpoint_meta.index.fingerprints import (
    Names,
    SeenKeys,
    Words,
    names_by_keys,
    names_in,
    names_of,
    versions_in,
    versions_of,
)
from ...enumerator.files.discovery.api import Discovery, FoundFiles, KnownFiles
from ...enumerator.files.ledger.seen_files import SeenFiles, Tail
from ..query.file_rows import FileRows, assigned_parts, recorded_rows, rows_in
from ..views.files import STATES, given_up, places_of_states, says_gone, was_passed_over
from ..views.files_as_of import FilesAsOf
from ..views.splits import (
    assigned_part,
    done_orders,
    ended_parts,
    finder,
    forgotten_splits,
    pending_splits,
)
from ..views.state_view import StateView

READ: Final = 0
WAITING: Final = 1
SKIPPED: Final = 2
REJECTED: Final = 3
RETRACTED: Final = 4
"""The file is gone, and its rows are."""

_KINDS: Final = {
    **dict.fromkeys(("done", "read"), READ),
    **dict.fromkeys(("skipped", "waived", "forgotten"), SKIPPED),
    **dict.fromkeys(("assigned", "unfinished", "returned", "pending", "abandoned"), WAITING),
    "quarantined": REJECTED,
    "retracted": RETRACTED,
}
"""State of a file in the view `files` -> what the books call it."""


class Places:
    """The files that an audit speaks of, each once, and the directory of each."""

    def __init__(self) -> None:
        self._names: list[Names] = []
        self._codes: list[Numbers] = []
        self._directories: dict[str, int] = {}

    def add(self, paths: Sequence[str]) -> Names:
        """Take some paths; their fingerprints."""
        names = names_of(paths)
        self._take(names, pa.array(paths, pa.string()))
        return names

    def has_any(self, keys: SeenKeys) -> bool:
        """True if one of these was taken."""
        return any((keys.find(names) >= 0).any() for names in self._names)

    def _take(self, names: Names, paths: pa.Array) -> None:
        # What is behind the last slash is a name. A regular expression takes three times as long.
        parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
        folders = pc.list_element(parts, 0).dictionary_encode()
        codes = np.array(
            [
                self._directories.setdefault(d, len(self._directories))
                for d in folders.dictionary.to_pylist()
            ],
            np.int64,
        )
        self._names.append(names)
        self._codes.append(codes[words_in(folders.indices.cast(pa.int64()), np.int64)])

    def all(
        self, known: SeenKeys, paths: Iterable[pa.Array]
    ) -> tuple[SeenKeys, Numbers, Sequence[str]]:
        """The files, the position of each one's directory, and the directories.

        Args:
            known: files of which some may not have been taken yet.
            paths: columns of paths that have all of these.
        """
        keys = self._sorted()
        lacking = SeenKeys(known.names.take(keys.find(known.names) < 0), None, None)
        if len(lacking):
            for column in paths:
                names = names_in(column)
                rows = np.flatnonzero(lacking.find(names) >= 0)
                self._take(names.take(rows), column.take(numbers_array(rows)))
            keys = self._sorted()
        assert keys.end is not None
        return keys, keys.end, list(self._directories)

    def _sorted(self) -> SeenKeys:
        codes = np.concatenate(self._codes or [np.zeros(0, np.int64)])
        # `end` goes along when names are sorted.
        return SeenKeys.sort(Names.join(self._names), None, codes)


@dataclass(frozen=True)
class KnownToState:
    """What the state says of each file that it has seen."""

    keys: SeenKeys
    kind: Numbers
    """READ, WAITING, SKIPPED or REJECTED."""

    good: Numbers
    bad: Numbers
    filtered: Numbers
    """Rows that readers emitted, records that they dropped, and rows that the filter dropped;
    UNKNOWN where only checkpoints say it that are not retained."""

    again: SeenKeys
    """Files that an order lets read beside their earlier rows, but for those given up on before."""

    options: Mapping[str, Any]
    """Options of reading that are not at their default, as the newest reader commit has them."""

    is_changed: bool
    """True if `writeTransform` has written another number of rows than were read."""

    def is_retracted_in(self, places: Places) -> bool:
        """True if a file whose rows were taken back is among `places`."""
        retracted = SeenKeys(self.keys.names.take(self.kind == RETRACTED), None, None)
        return places.has_any(retracted)

    def in_books(self, places: Places) -> KnownFiles:
        """All files but those whose rows were taken back."""
        return InBooks(places, self.keys.names.take(self.kind != RETRACTED))

    @property
    def has_filter(self) -> bool:
        """True if the option `filter` drops rows."""
        return bool(self.options.get("filter"))

    @classmethod
    def of(
        cls, view: StateView, head: FilesAsOf, keys: SeenKeys, chain: Sequence[CheckpointSnapshot]
    ) -> KnownToState:
        """As of the newest checkpoint, whose files `head` has; `keys` are theirs."""
        unread, gone, orders = _passed_over(head), _gone(head), done_orders(view)
        worst = np.zeros(len(keys), np.int64)
        newest, is_told = np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.bool_)

        def note(names: Names, versions: Words, orders: Numbers) -> None:
            """Of each file its newest version counts alone, which comes first."""
            at = keys.find(names)
            is_there = at >= 0
            versions, orders, at = versions[is_there], orders[is_there], at[is_there]
            is_first = ~is_told[at]
            newest[at[is_first]], is_told[at] = versions[is_first], True
            is_newest = newest[at] == versions
            np.maximum.at(worst, at[is_newest], orders[is_newest])

        find, ended = finder(view, chain), ended_parts(chain)
        rows: dict[CheckpointRef, list[FileRows]] = {}
        for table in pending_splits(head):
            note(_names_of(table), _versions_of(table), places_of_states(table))
        for link in chain:
            rows[link.ref] = []
            for part in assigned_parts([link], find):
                order = places_of_states(assigned_part(part, ended))
                if not link.is_complete:
                    # The table may have it, or not yet.
                    order = np.full(len(order), STATES.index("assigned"))
                note(part.names, versions_in(part.ranges), order)
                rows[link.ref] += rows_in(part)
        for table in [*forgotten_splits(orders, chain, find), given_up(head.quarantined())]:
            note(_names_of(table), _versions_of(table), places_of_states(table))
        # Where one was read since, a checkpoint has its state. Of those that are gone checkpoints
        # may not be retained, or are those of the query that a fork continues.
        for names, state in ((unread, "skipped"), (gone, "retracted")):
            at = keys.find(names)
            worst[at[worst[at] == 0]] = STATES.index(state)
        kind = np.array([_KINDS[state] for state in STATES], np.int64)[worst]
        good, bad, filtered = recorded_rows(view.store, chain, keys.names, rows)
        commits = [commit for link in chain for commit in link.commits.values()]
        written = [(c.written_files, c.rows) for c in commits if c.written_files is not None]
        is_changed = any(sum(file.rows for file in files) != sum(rows) for files, rows in written)
        again, options = _again(orders), read_with(chain)
        return cls(keys, kind, good, bad, filtered, again, options, is_changed)


def read_with(chain: Sequence[CheckpointSnapshot]) -> Mapping[str, Any]:
    """The options of reading that the newest reader commit has."""
    shapes = (commit.shape for link in chain for commit in link.commits.values())
    return next((shape["options"] for shape in shapes if "options" in shape), {})


class InBooks(SeenFiles):
    """Files that count as found, there or not, none of them as changed: a listing would bring it.

    `places` takes all files that a listing comes to.
    """

    def __init__(self, places: Places, names: Names) -> None:
        super().__init__(tails=[Tail(SeenKeys(names, None, None), ())])
        self._places = places

    @override
    def are_known(self, paths: Sequence[str]) -> Flags:
        return self.contains(self._places.add(paths))

    @override
    def compare(self, files: FoundFiles) -> tuple[Flags, Flags]:
        is_known = self.are_known(files.paths)
        return is_known, np.zeros(len(is_known), np.bool_)


def _passed_over(head: FilesAsOf) -> Names:
    """Files that are not read in any version, since their contents were (`identity=content`)."""

    def versions(batch: pa.RecordBatch) -> Names:
        names = names_in(batch.column("path"))
        return Names(names.high, names.low ^ versions_in(batch))

    chosen = _chosen(head, was_passed_over, "size", "etag", "end")
    passed, files = SeenKeys.sort(Names.join([*map(versions, chosen)])), _files_in(chosen)
    is_read = np.zeros(len(files), np.bool_)
    for batch in head.seen() if chosen else ():
        at = files.find(names_in(batch.column("path")))
        is_read[at[(at >= 0) & (passed.find(versions(batch)) < 0)]] = True
    return files.names.take(~is_read)


def _gone(head: FilesAsOf) -> Names:
    """Files that are known to be gone, and have not come back."""
    chosen = _chosen(head, says_gone, "etag")
    files = _files_in(chosen)
    is_gone = np.zeros(len(files), np.bool_)
    for batch in head.seen() if chosen else ():
        at = files.find(names_in(batch.column("path")))
        # The last one counts.
        is_gone[at[at >= 0]] = says_gone(batch).to_numpy(zero_copy_only=False)[at >= 0]
    return files.names.take(is_gone)


def _chosen(
    head: FilesAsOf, flags: Callable[[pa.RecordBatch], pa.Array], *columns: str
) -> Sequence[pa.RecordBatch]:
    """The rows that `flags` chooses by these columns."""
    # Mostly there are none, and paths take long.
    if not any(pc.any(flags(batch)).as_py() for batch in head.seen(*columns)):
        return []
    chosen = (batch.filter(flags(batch)) for batch in head.seen())
    return [batch for batch in chosen if batch.num_rows]


def _files_in(batches: Sequence[pa.RecordBatch]) -> SeenKeys:
    return SeenKeys.sort(Names.join([names_in(batch.column("path")) for batch in batches]))


def _names_of(table: pa.Table) -> Names:
    return names_in(table.column("path").combine_chunks())


def _versions_of(table: pa.Table) -> Words:
    etags = table.column("etag")
    marks = etags.to_pylist() if pc.any(pc.not_equal(etags, "")).as_py() else None
    modified = pc.fill_null(table.column("modified").cast(pa.int64()), -1)
    size, modified = (
        words_in(column.combine_chunks(), np.int64) for column in (table.column("size"), modified)
    )
    return versions_of(size, modified, marks)


def _again(orders: Sequence[Order]) -> SeenKeys:
    """Files that an order let read beside their earlier rows, which no later one has removed."""
    paths: set[str] = set()
    without_rows: set[str] = set()
    for order in orders:
        splits, released = list(order.read_splits(FileSplitSerializer())), set(order.released)
        removed = {split.file.path for split in splits if split.replaces}
        beside = {s.file.path for s in splits if not (s.replaces or s.split_id in released)}
        paths -= removed
        if order.action == "retract":
            without_rows |= removed
        elif order.reads_again:
            paths |= beside - without_rows
            without_rows -= beside
    return SeenKeys.sort(names_of(sorted(paths)))


@dataclass(frozen=True)
class Listed:
    """The files that are below the loaded paths now."""

    keys: SeenKeys
    """With their sizes as `end`."""

    left_out: SeenKeys
    """Those that the options leave out."""

    @classmethod
    def of(cls, discovery: Discovery, places: Places, known: KnownFiles) -> Listed:
        """By one complete pass, and where something is left out by one for that.

        `known` are files that need not be listed.
        """
        parts = [
            SeenKeys.sort(places.add(found.paths), None, found.sizes)
            for found in discovery.listing(known)
        ]
        is_any = bool(discovery.skipped.counts)
        skipped = [file.path for file in discovery.left_out(known)] if is_any else []
        return cls(SeenKeys.merge(parts), SeenKeys.sort(places.add(skipped)))


no_files: Final = SeenFiles()
"""For a pass in which all files come."""


@dataclass(frozen=True)
class InTable:
    """The rows that the table has of each file."""

    keys: SeenKeys
    rows: Numbers
    others: int
    """Rows without a file, or of files that nobody has named."""

    def rows_of_others(self, known: SeenKeys) -> int:
        """Rows of files that are not among these, or of no file."""
        return self.others + int(self.rows[known.find(self.keys.names) < 0].sum())

    @classmethod
    def of(cls, counts: Iterable[tuple[pa.Array, pa.Array]]) -> InTable:
        """Of pairs of keys, as text, and rows of each; a key may come in several."""
        names: list[Names] = []
        rows: list[Numbers] = []
        others = 0
        for texts, count in counts:
            numbers = count.to_numpy(zero_copy_only=False).astype(np.int64)
            # A regular expression takes eight times as long.
            is_hex = pc.equal(pc.ascii_trim(texts, string.hexdigits), "")
            is_key = pc.fill_null(pc.and_(is_hex, pc.equal(pc.binary_length(texts), 32)), False)
            mask = is_key.to_numpy(zero_copy_only=False)
            others += int(numbers[~mask].sum())
            names.append(names_by_keys(texts.filter(is_key)))
            rows.append(numbers[mask])
        all_names, all_rows = Names.join(names), np.concatenate(rows or [np.zeros(0, np.int64)])
        keys = SeenKeys.sort(all_names, None, np.arange(len(all_names)))
        assert keys.end is not None
        total, rest = all_rows[keys.end], np.ones(len(all_names), np.bool_)
        # Mostly few are in several: a search for all of them takes longer than to sort them.
        rest[keys.end] = False
        np.add.at(total, keys.find(all_names.take(rest)), all_rows[rest])
        return cls(SeenKeys(keys.names, None, None), total, others)

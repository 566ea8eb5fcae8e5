"""One ledger of all files: what is pending and what has been seen, in columns.

A file is one of: unknown, pending (a range of it is), or all assigned. Found files are sifted on
the listing's thread, which only reads, and entered under the coordinator's lock. Only files of the
next batch are objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.documents.attachments import Attachment, Attachments
from ....checkpoint_meta.files.file_columns import (
    Flags,
    Numbers,
    changes_of,
    content_changes,
    files_of,
    numbers_in,
    ranges_in,
    ranges_of,
    splits_in,
    versions_of_rows,
    with_bounds,
    with_times,
)
from ....checkpoint_meta.files.file_split import (
    REPLACES,
    RETRACTS,
    FileSplit,
    FileVersion,
    SampledFile,
    directory_of,
    retraction_of,
)
from ....checkpoint_meta.index.fingerprints import (
    Names,
    SeenKeys,
    Words,
    differ,
    is_growing,
    names_in,
    names_of,
    versions_in,
    versions_of,
)
from ..discovery.api import FoundFiles, joined
from .byte_ranges import ByteRanges, byte_ranges_of, splits_of, splits_without
from .file_state import FileState
from .index_merge import FrozenLedger, MergePolicy, flush, merge, mergeable
from .known_contents import Digest, KnownContents
from .new_files import (
    OnOverwrite,
    WholeRecords,
    drop_duplicates,
    filter_rows,
    first_unread,
    up_to_whole_records,
    version_rows,
)
from .pending import FileOrder, PendingRanges, RangeOrder
from .seen_files import GONE, Marks, Portion, SeenFiles
from .statistics_times import StatisticsTimes

_SECOND = 1_000_000
"""In microseconds: some requests give an object's time in these, others in seconds."""


@dataclass(frozen=True)
class LedgerPolicy:
    """The rule for new files, and the order in which files are read."""

    order: RangeOrder = FileOrder.MTIME
    on_overwrite: OnOverwrite = OnOverwrite.IGNORE
    retracts: bool = False
    """Files that are gone take their rows along. One that comes back is read again."""

    whole_directories: bool = False
    """Of files that replace rows, or that are gone, one batch has all of a directory."""

    whole_records: WholeRecords | None = None
    """For `APPEND_TAIL`: how far they reach."""

    times: StatisticsTimes | None = None
    """Event times that are read from files, and remembered in checkpoints."""

    digest: Digest | None = None
    """A file of which the content is known is not read."""

    merging: MergePolicy = field(default_factory=MergePolicy)


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The new files of a listing, ready to be entered."""

    ranges: pa.RecordBatch
    """To become pending, in order."""

    keys: SeenKeys
    piece: Portion
    new: int
    """Files that were not known in any version."""

    wanted: bool
    """False where they are not to be read."""

    replaced: Sequence[FileSplit] = ()
    """Those of the new ones that replace another version, to be read whole."""


class Ledger:
    """Under the coordinator's lock, but for `select_new`."""

    def __init__(self, policy: LedgerPolicy, state: FileState | None = None) -> None:
        state = state or FileState()
        self._policy = policy
        ignores = policy.on_overwrite is OnOverwrite.IGNORE
        self._wants_versions = policy.retracts or not ignores
        self._replaces_rows = policy.retracts or policy.on_overwrite is OnOverwrite.REPLACE
        details = self._wants_versions or policy.digest is not None
        self.seen = SeenFiles(state.runs, state.tails, details=details)
        self.pending = PendingRanges(policy.order, whole_directories=policy.whole_directories)
        self.contents: KnownContents | None = None
        if policy.digest is not None:
            self.contents = KnownContents(self.seen, self.pending)
        restored = [ranges_in(changes) for changes in state.changes]
        if policy.times is not None:
            policy.times.restore(state.times, restored)
        for ranges in restored:
            self.pending.add(ranges, fresh=False)
        self._changes: list[pa.RecordBatch] = []
        """What the next snapshot says in addition to what became pending: rows of `CHANGES`."""
        self._ordered: set[FileVersion] = set()
        """Files that orders made pending: what readers send back must not double them."""
        self._found: dict[str, FileVersion] | None = {}
        """Changed files that listings have found, by path, before the first snapshot: an order that
        is carried out at the start does not speak of these versions."""
        self._learned: set[FileVersion] = set()
        """Files that became known by an order, maybe since the last `select_new`."""
        self.has_learned = False
        """An order has named files: they may be known to no checkpoint yet."""
        self._has_unread = False
        """Files are known since the snapshot before of which `_changes` does not tell."""
        self.flushes_all = False
        """True: `improve` leaves no file outside of the runs, however few they are."""
        self.absent = state.absent
        """The object that has the times of absent files; None before there are any."""
        self._is_absent_new = False
        """No snapshot has named it yet."""
        self._written: list[FrozenLedger] = []

    # Found ----------------------------------------------------------------------------------

    def is_new(self, listed: FoundFiles) -> Flags:
        """For each file whether it is not known, or known in another version that is to be read."""
        is_seen, _, _, changed = self._compare(listed, names_of(listed.paths))
        flags: Flags = ~is_seen | changed
        return flags

    def _compare(
        self, listed: FoundFiles, names: Names, marks: Marks | None = None
    ) -> tuple[Flags, Words, Numbers, Flags]:
        """Whether each is known, in which version and up to where; whether it has changed."""
        if not self._wants_versions:
            none = np.zeros(len(names), np.int64)
            is_seen = self.seen.contains(names)
            return is_seen, none.view(np.uint64), none, none.astype(np.bool_)
        is_seen, version, end = self.seen.details_of(names, marks)
        versions = versions_of(listed.sizes, listed.modified, listed.etags)
        changed = is_seen & differ(version, versions)
        in_seconds = listed.modified // _SECOND * _SECOND
        changed &= differ(version, versions_of(listed.sizes, in_seconds, listed.etags))
        if self._policy.on_overwrite is OnOverwrite.IGNORE:
            changed &= version == GONE
        return is_seen, version, end, changed

    def select_new(
        self,
        listing: Sequence[FoundFiles],
        now: int,
        *,
        wanted: bool = True,
        hold: Callable[[FoundFiles, Numbers], None] | None = None,
        rewritten: Collection[str] = (),
        marks: Marks | None = None,
    ) -> NewFiles:
        """Select what is new in `listing`. On any thread, one call at a time with `enter` after it.

        Args:
            listing: files in columns.
            now: microseconds since the epoch.
            wanted: False where they count as seen without being read.
            hold: is given the files and which of them are new, in place of all these.
            rewritten: directories whose new files are in one batch with what they replace.
            marks: note which known files there are.

        Raises:
            SourceUnavailable: a file has a change that is not allowed.
        """
        listed = joined(listing)
        names = names_of(listed.paths)
        is_seen, version, end, changed = self._compare(listed, names, marks)
        at = np.flatnonzero(changed)
        if self._policy.on_overwrite is OnOverwrite.FAIL:
            at = at[~self._has_known_content(version_rows(listed, at))]
        start = first_unread(self._policy.on_overwrite, at, listed, end)
        rows = drop_duplicates(np.flatnonzero(~is_seen | changed), names)
        if hold is not None:
            hold(listed, rows)
            rows = rows[:0]
        files = version_rows(listed, rows)
        start, ends = start[rows], listed.sizes[rows]
        if self._policy.whole_records is not None:
            whole_records = self._policy.whole_records
            files, ends = up_to_whole_records(files, start, version[rows], whole_records)
        read = (start < ends) & wanted
        replaces = changed[rows].astype(np.int64)
        if rewritten:
            paths = [listed.paths[row] for row in rows.tolist()]
            replaces |= np.fromiter((directory_of(path) in rewritten for path in paths), np.int64)
        replaces *= REPLACES * self._replaces_rows
        contents = self._contents_of(files, read)
        ranges = filter_rows(with_bounds(files, start, ends, replaces, contents), read)
        keys = SeenKeys.sort(names.take(rows), versions_in(files), ends)
        if self._policy.times is not None:
            self._policy.times.learn(splits_in(ranges))
        replaced: Sequence[FileSplit] = ()
        if (self._replaces_rows or self._policy.on_overwrite.reads_whole) and changed.any():
            replaced = splits_in(filter_rows(ranges, changed[rows][read]))
        return NewFiles(
            self.pending.sort(ranges),
            keys,
            Portion(files, ends, now),
            int(np.count_nonzero(~is_seen[rows])),
            wanted,
            replaced,
        )

    def _contents_of(self, files: pa.RecordBatch, chosen: Flags) -> list[str]:
        """The content of each of the files that are chosen; empty if contents do not matter."""
        if self._policy.digest is None or not chosen.any():
            return []
        contents = np.full(files.num_rows, "", object)
        contents[chosen] = self._policy.digest(versions_of_rows(filter_rows(files, chosen)))
        return list(contents)

    def _has_known_content(self, files: pa.RecordBatch) -> Flags:
        contents = self._contents_of(files, np.ones(files.num_rows, np.bool_))
        known = np.zeros(files.num_rows, np.bool_)
        at = [row for row, content in enumerate(contents) if content]
        known[at] = self.seen.are_contents_known([contents[row] for row in at])
        return known

    def enter(self, sifted: NewFiles) -> None:
        """Make what `select_new` has found known and pending."""
        if sifted.replaced:
            sifted = self._retracting(sifted)
            # The version that waits is gone from the store, and reading it would only fail.
            self._withdraw_unread(sifted.replaced)
            if self._found is not None:
                self._found |= {split.file.path: split.file for split in sifted.replaced}
        if self._learned:
            sifted = self._without_learned(sifted)
            self._learned.clear()
        if len(sifted.keys):
            self._add(sifted.keys, sifted.piece, sifted.new, is_wanted=sifted.wanted)
        self.pending.add(sifted.ranges)

    def _add(self, keys: SeenKeys, piece: Portion, new: int, *, is_wanted: bool = True) -> None:
        """Files are known from now on; the next snapshot names them, or the runs they are in."""
        self.seen.add(keys, piece, new)
        if is_wanted:
            rows = with_bounds(piece.files, piece.end, piece.end)
            self._changes.append(changes_of(rows, known=True))
        else:
            self._has_unread = True

    def _retracting(self, sifted: NewFiles) -> NewFiles:
        """Let new versions also do what orders to remove the rows of their files would do."""
        waiting = self.pending.of_paths({split.file.path for split in sifted.replaced})
        paths = {split.file.path for split in waiting if split.replaces == RETRACTS}
        if self._replaces_rows or not paths:
            return sifted
        splits = splits_in(sifted.ranges)
        splits = [s._replace(replaces=REPLACES) if s.file.path in paths else s for s in splits]
        return replace(sifted, ranges=ranges_of(splits))

    def _withdraw_unread(self, replaced: Sequence[FileSplit]) -> None:
        """Withdraw what waits in another version than these: it is not there any more.

        If these do not replace its rows, what waits of a file that was begun stays.
        """
        kept, all_of = {split.file for split in replaced}, self._replaces_rows
        pending = self.pending.of_paths({file.path for file in kept})
        waiting = byte_ranges_of(s for s in pending if all_of or not s.skip).items()
        others = {f: ranges for f, ranges in waiting if f not in kept}
        whole = {f: ranges for f, ranges in others.items() if list(ranges) == [(0, f.size)]}
        self._withdraw(others if all_of else whole)

    def file_replaced(self, old: FileVersion, new: FileVersion, now: int) -> None:
        """A reader met `new` where it was to read `old`: pending, unless a listing was faster."""
        # If a listing was faster, the version that it has entered is pending already.
        if self._current([FileSplit(old, 0, old.size)]):
            replaces = REPLACES if self._replaces_rows else 0
            self.requeue([FileSplit(new, 0, new.size, replaces=replaces)], now)

    def _current(self, splits: Sequence[FileSplit]) -> list[FileSplit]:
        """Return the splits of versions that are the newest known ones, if versions matter."""
        if not self._wants_versions:
            return list(splits)
        files = files_of([split.file for split in splits])
        _, newest, _ = self.seen.details_of(names_in(files.column("path")))
        return list(compress(splits, (newest == versions_in(files)).tolist()))

    def put_back(self, splits: Sequence[FileSplit]) -> None:
        """Readers sent these back: pending again, to be assigned as they are.

        Rows that they replace have left the table with the batch that assigned them. What has been
        replaced since is not read any more.
        """
        splits = [split._replace(replaces=0) for split in splits if split.replaces != RETRACTS]
        if self._replaces_rows:
            splits = self._current(splits)
        self.left_unread([split for split in splits if split.is_whole_file])
        # An order may have made the same bytes pending while a reader had them.
        if not self._ordered.isdisjoint(split.file for split in splits):
            splits = self._not_pending(splits)
        self._learn_times(splits)
        self.pending.add(ranges_of(splits), returned=True)

    # Contents -------------------------------------------------------------------------------

    def left_unread(self, splits: Sequence[FileSplit]) -> None:
        """These were assigned, and nothing was read of them: their contents are not known."""
        if contents := [s.file.digest for s in splits if s.file.digest and s.start == 0]:
            self._changes.append(content_changes(contents, known=False))
            if self.contents is None:
                self.seen.add_contents(contents, known=False)
            else:
                self.contents.release(contents)

    def pass_over(self, splits: Sequence[FileSplit], now: int) -> None:
        """These are known, and not read: their contents were, from other files."""
        ranges = ranges_of(splits)
        self._changes.append(changes_of(ranges, withdrawn=True))
        end, names = np.zeros(len(splits), np.int64), names_in(ranges.column("path"))
        keys = SeenKeys.sort(names, versions_in(ranges), end)
        self._add(keys, Portion(ranges, end, now), 0)

    def identify(self, found: Mapping[FileVersion, str], *, are_ordered: bool) -> None:
        """The contents of pending files that were not listed; empty where nobody could read it.

        What is ordered is read, though its content be known: then it counts as a file without one.
        """
        assert self.contents is not None
        self.contents.being_read.difference_update(found)
        self.contents.look_again()
        known = self.contents.known_among(found.values()) if are_ordered else ()
        wanted = {
            file: content for file, content in found.items() if content and content not in known
        }
        waiting = self.pending.of_paths({file.path for file in wanted})
        chosen = [s for s in waiting if s.file in wanted and s.is_whole_file and not s.replaces]
        # The newer row of two about one range counts, and has the content.
        self.pending.withdraw(byte_ranges_of(chosen))
        files = [SampledFile.of(split.file, 0, wanted[split.file]) for split in chosen]
        pairs = zip(chosen, files, strict=True)
        self.pending.add(ranges_of([split._replace(file=file) for split, file in pairs]))

    def _learn_times(self, splits: Sequence[FileSplit]) -> None:
        """Learn those of files that were not sifted, at once; under the lock, but they are few."""
        if self._policy.times is not None:
            self._policy.times.learn([s for s in splits if not self._policy.times.knows(s.file)])

    # Orders ---------------------------------------------------------------------------------

    def requeue(self, splits: Sequence[FileSplit], now: int) -> None:
        """These become pending, as far as they are not: what is pending is a set of bytes."""
        if replacing := [self._as_found(split) for split in splits if split.replaces]:
            self._replace(replacing, now)
        # An order may name files with their contents, which would keep them from being read.
        bare = (
            s._replace(file=SampledFile.of(FileVersion(*s.file), s.file.sample)) for s in splits
        )
        wanted = byte_ranges_of(split for split in bare if not split.replaces)
        self._learn(list(wanted), now)
        self._unskip(wanted)
        # What waits already is read once, however often it is ordered.
        unread = self._not_pending(splits_of(wanted))
        self._learn_times(unread)
        self.pending.add(ranges_of(unread))
        self._ordered.update(wanted)

    def _as_found(self, split: FileSplit) -> FileSplit:
        """A file whose rows are not wanted is read nevertheless in a later version."""
        later = (self._found or {}).get(split.file.path)
        if later is None or split.replaces != RETRACTS:
            return split
        return FileSplit(later, 0, later.size, replaces=REPLACES)

    def _replace(self, splits: Sequence[FileSplit], now: int) -> None:
        """Nothing else of these files is pending from now on."""
        splits = list({split.file.path: split for split in splits}.values())
        waiting = self.pending.of_paths({split.file.path for split in splits})
        self._withdraw(byte_ranges_of(waiting))
        read = [split for split in splits if split.replaces != RETRACTS]
        self._learn([split.file for split in read], now)
        self._learn_times(read)
        self.pending.add(ranges_of(splits))

    def retract(self, paths: Sequence[str], now: int) -> None:
        """These files are gone, and their rows with them."""
        gone = [retraction_of(path) for path in paths]
        self._learn([split.file for split in gone], now)
        self._replace(gone, now)

    def _unskip(self, wanted: ByteRanges) -> None:
        """Read what waits of a split that was begun from that split's start, if it is wanted."""
        begun = [
            split
            for split in self.pending.of_paths({file.path for file in wanted})
            if split.skip and any(a <= split.start < b for a, b in wanted.get(split.file, ()))
        ]
        self._withdraw(byte_ranges_of(begun))
        self.pending.add(ranges_of([split._replace(skip=0, read_bytes=0) for split in begun]))

    def forget(self, splits: Sequence[FileSplit], now: int) -> None:
        """Drop what of these is pending; the files count as seen."""
        unwanted = byte_ranges_of(splits)
        self._learn(list(unwanted), now)
        self._withdraw(unwanted)

    def _withdraw(self, unwanted: ByteRanges) -> None:
        gone = self.pending.withdraw(unwanted)
        if gone:
            self._changes.append(changes_of(ranges_of(gone), withdrawn=True))

    def _not_pending(self, splits: Sequence[FileSplit]) -> list[FileSplit]:
        pending = self.pending.of_paths({split.file.path for split in splits})
        return splits_without(splits, byte_ranges_of(pending))

    def _without_learned(self, sifted: NewFiles) -> NewFiles:
        """An order has said what becomes of them, and that they are known."""
        splits = splits_in(sifted.ranges)
        if self._wants_versions:
            kept = [split for split in splits if split.file not in self._learned]
        else:
            paths = {file.path for file in self._learned}
            kept = [split for split in splits if split.file.path not in paths]
        if len(kept) == len(splits):
            return sifted
        # The order has counted them when it made them known.
        new = sifted.new - (len(splits) - len(kept))
        return replace(sifted, ranges=ranges_of(kept), new=max(0, new))

    def _learn(self, files: Sequence[FileVersion], now: int) -> None:
        """Files that an order speaks of are known, in the version it names if versions matter."""
        self.has_learned |= bool(files)
        names = names_of([file.path for file in files])
        batch = files_of(files)
        sizes, versions = numbers_in(batch, "size"), versions_in(batch)
        if self._wants_versions:
            is_seen, version, _ = self.seen.details_of(names)
            # A file that grows is known by how far it was taken: no order changes that.
            new = ~is_seen | ((version != versions) & ~is_growing(versions))
        else:
            is_seen = self.seen.contains(names)
            new = ~is_seen
        rows = np.flatnonzero(new)
        if len(rows):
            keys = SeenKeys.sort(names.take(rows), versions[rows], sizes[rows])
            piece = Portion(batch.take(pa.array(rows, pa.int64())), sizes[rows], now)
            self._add(keys, piece, int((~is_seen[rows]).sum()))
            self._learned.update(files[row] for row in rows.tolist())

    # Checkpoints ----------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int) -> FileState:
        """Return what became pending, or known, or was withdrawn since the snapshot before.

        Files that are not to be read may be millions: the state names the runs that they are in.
        """
        self.seen.stamp(checkpoint_id)
        self._found = None
        if self.contents is not None:
            self.contents.cut(checkpoint_id)
        changes, self._changes = self._changes, []
        unread, self._has_unread = self._has_unread, False
        runs, tails = self.seen.whole() if unread else ((), ())
        fresh = [self._timed_changes(ranges) for ranges in self.pending.take_fresh()]
        absent, self._is_absent_new = self.absent if self._is_absent_new else None, False
        return FileState([*fresh, *changes], runs, tails, absent=absent)

    def note_absent(self, written: Attachment) -> None:
        """The times of absent files are in this object from now on."""
        self._is_absent_new = self._is_absent_new or written != self.absent
        self.absent = written

    def _timed_changes(self, ranges: pa.RecordBatch) -> pa.RecordBatch:
        changes, times = changes_of(ranges), self._policy.times
        return changes if times is None else with_times(changes, times.columns(ranges))

    def aborted(self, checkpoint_id: int) -> None:
        """The checkpoint of this snapshot, the newest, was taken back."""
        self.seen.unstamp(checkpoint_id)
        if self.contents is not None:
            self.contents.aborted(checkpoint_id)

    def freeze(self) -> FrozenLedger:
        """All as of the snapshot just taken, to be written in the background."""
        pending = self.pending.frozen()
        frozen = FrozenLedger(self.seen, pending, self._timed_changes, self.absent)
        # A base may still be written when the next one is frozen: the objects of both are in use.
        self._written = [*self._written[-1:], frozen]
        return frozen

    @property
    def can_improve(self) -> bool:
        """True if `improve` has something to do."""
        return self._is_flush_due() or bool(mergeable(self.seen, self._policy.merging))

    def _is_flush_due(self) -> bool:
        everything = self.flushes_all or self._policy.merging.thorough
        least = 1 if everything else self._policy.merging.flush_at
        return sum(map(len, self.seen.tails)) >= least

    def improve(self) -> Callable[[Attachments], None] | None:
        """Choose one bounded step towards few runs; the function takes it, on any thread."""
        if self._is_flush_due():
            # Frozen together with the choice: a base that is frozen later contains all of them, and
            # a file that is entered later is in no run with them.
            _, tails = self.seen.freeze()
            return partial(flush, self.seen, tails)
        runs = mergeable(self.seen, self._policy.merging)
        return partial(merge, self.seen, runs) if runs else None

    def attachments(self) -> frozenset[str]:
        """Names of objects that are in use, or will be by a base that is being written."""
        mine = {attachment.name for run in self.seen.runs for attachment in run.attachments}
        if self.absent is not None:
            mine.add(self.absent.name)
        return frozenset(mine.union(*(frozen.names() for frozen in self._written)))

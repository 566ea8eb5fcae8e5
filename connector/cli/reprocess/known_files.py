"""What a state says of its files, in the form that orders are made of: bytes of file versions.

What was assigned by the newest checkpoint and not acknowledged is under way: it is read when the
query starts, by itself. What readers have sent back and no checkpoint has counted comes back then.

A state does not say how its query finds event times, so a range of them looks at whole paths. And
it does not say whether files are still there, and as what: that is asked of their storage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.orders import Order, Orders
from ....checkpoint_meta.documents.reader_assignment import splits_of
from ....checkpoint_meta.documents.reader_commit import ReaderCommit
from ....checkpoint_meta.files.file_columns import FileSplitSerializer, splits_in
from ....checkpoint_meta.files.file_split import FileSplit, FileVersion, growing_mark
from ....checkpoint_meta.storage.contract import at_once
from ....checkpoint_meta.storage.open_storage import open_storage
from ....enumerator.files.cleaning.places import present_version
from ....enumerator.files.discovery.selection.criteria import PlaceBounds
from ....enumerator.files.discovery.selection.event_times import EventTimes
from ....enumerator.files.ledger.byte_ranges import ByteRanges, byte_ranges_of
from ....errors import MissingPathError, OptionError, SourceUnavailable, SplitReadError
from ....reader.files.io.source_file import SourceFile
from ...options.validation import instant, instant_in
from ...views.amounts import counted
from ...views.files_as_of import split_of
from ...views.splits import files_as_of_head
from ...views.state_view import StateView, file_splits, matching, path_filter


class SelectedFiles:
    """As of the newest checkpoint of one look; only paths that are of interest."""

    def __init__(
        self, view: StateView, pattern: str = "", chosen: Callable[[str], bool] | None = None
    ) -> None:
        """`pattern` is a shell pattern over whole paths, empty for all; `chosen` asks for more."""
        self.view = view
        self._pattern = pattern
        self._matches = path_filter(pattern)
        self._chosen = chosen
        self._known = files_as_of_head(view, details=True)

    def _is_wanted(self, path: str) -> bool:
        return self._matches(path) and (self._chosen is None or self._chosen(path))

    def _of_interest(self, splits: Iterable[FileSplit]) -> list[FileSplit]:
        return [split for split in splits if self._is_wanted(split.file.path)]

    @cached_property
    def chain(self) -> Sequence[CheckpointSnapshot]:
        """Retained checkpoints, the newest first."""
        return self.view.chain()

    @cached_property
    def waiting(self) -> Sequence[Order]:
        """Orders that the newest checkpoint does not contain."""
        return Orders(self.view.store).after(self.view.orders_done)

    @cached_property
    def pending(self) -> ByteRanges:
        """Found and not assigned, or about to come back, or ordered to be read again."""
        pending = [split for batch in self._known.pending() for split in splits_in(batch)]
        orders, serializer = filter(lambda o: o.reads_again, self.waiting), FileSplitSerializer()
        again = [split for order in orders for split in order.read_splits(serializer)]
        return byte_ranges_of(self._of_interest([*pending, *self._coming_back(), *again]))

    @cached_property
    def under_way(self) -> ByteRanges:
        """Assigned, and nothing is known of it: it is read when the query starts."""
        assigned = [split for link in self.chain for split in file_splits(link, "assigned")]
        return byte_ranges_of(self._of_interest(assigned))

    @cached_property
    def quarantined(self) -> dict[str, FileSplit]:
        """By id: given up on, or sent back and not counted yet, which may be the last time."""
        ids = [split.split_id for split in self._known.quarantined()]
        ids += [split.split_id for split in self._returned]
        splits = {each: split for each in ids if (split := split_of(each)) is not None}
        return {each: s for each, s in splits.items() if self._is_wanted(s.file.path)}

    @cached_property
    def _returned(self) -> list[FileSplit]:
        return [
            splits[back.index] for commit, splits in self._uncounted() for back in commit.returned
        ]

    def _coming_back(self) -> Iterator[FileSplit]:
        yield from self._returned
        for commit, _ in self._uncounted():
            yield from commit.remainders(FileSplitSerializer()).values()

    def _uncounted(self) -> Iterator[tuple[ReaderCommit, list[FileSplit]]]:
        """Commits that no checkpoint has counted: they are at the next start."""
        for link in self.chain:
            for reader, commit in link.commits.items():
                if reader not in link.counted:
                    yield commit, splits_of(link.checkpoint, reader, FileSplitSerializer())

    def newest_versions(
        self, paths: Collection[str] | None = None
    ) -> dict[str, tuple[FileVersion, int]]:
        """Path -> its newest version, and up to which byte that was taken; only of `paths`."""
        versions: dict[str, tuple[FileVersion, int]] = {}
        for batch in self._known.seen():
            names = ("path", "size", "modified", "etag", "end")
            # Arrow leaves out most names before the rest become Python objects: there may be ten
            # million.
            chosen = self._filtered(batch, paths)
            for *file, end in zip(*(chosen.column(n).to_pylist() for n in names), strict=True):
                if self._chosen is None or self._chosen(file[0]):
                    version = FileVersion._make(file)
                    # One that was passed over is read whole if an order says so.
                    is_whole = not end and not growing_mark(version.etag)
                    versions[version.path] = version, version.size if is_whole else end
        return versions

    def _filtered(self, batch: pa.RecordBatch, paths: Collection[str] | None) -> pa.RecordBatch:
        if paths is not None:
            column = batch.column("path")
            return batch.filter(pc.is_in(column, value_set=pa.array(sorted(paths), pa.string())))
        return matching(batch, self._pattern)

    def assigned_after(self, ref: CheckpointRef) -> list[FileSplit]:
        """Return what checkpoints after `ref` assigned, oldest first, without what is under way."""
        later = {link.ref for link in self.view.history.between(ref, self.view.head)}
        links = [link for link in reversed(self.chain) if link.ref in later]
        assigned = (split for link in links for split in file_splits(link, "read", "abandoned"))
        return self._of_interest(assigned)


def in_event_time(text: str, pattern: str, time_zone: str) -> Callable[[str], bool]:
    """For a path, whether its time is in the range that `text` names: START..END."""
    start, separator, end = text.partition("..")
    # As for a query without the option timeZone.
    zone = time_zone or "UTC"
    try:
        if not separator or not (start or end):
            message = f"{text!r}, not START..END, either of which may be omitted"
            raise ValueError(message)
        times = EventTimes(pattern, (), zone, partial(instant_in, zone))
        bounds = PlaceBounds(instant(start, zone), instant(end, zone), times)
    except ValueError as error:
        raise OptionError(
            "--event-time or --event-time-pattern does not parse",
            "",
            str(error),
            "a range such as 2026-01-02..2026-01-09T12:00, and a pattern such as "
            "{yyyy}/{MM}/{dd}/{HH}",
        ) from error

    def takes(path: str) -> bool:
        try:
            return bounds.takes(path)
        except SourceUnavailable as error:
            raise OptionError(
                f"--event-time: {error.what}",
                error.where,
                error.found,
                error.expected,
                "Pass --event-time-pattern with the place of the time in paths, such as "
                "--event-time-pattern '{yyyy}-{MM}-{dd}', or select files with --matching.",
            ) from error

    return takes


_NAMED = 5
"""Most files that a refusal names."""


def as_present(
    splits: Sequence[FileSplit], storage_options: Mapping[str, Any], *, skip_missing: bool
) -> tuple[list[FileSplit], list[str]]:
    """The splits as they can be read, and the paths of files that are gone.

    A file that was replaced is read whole as it is now.
    """
    wanted = byte_ranges_of(splits)
    present = _present(list(wanted), storage_options)
    readable: list[FileSplit] = []
    missing, partly = [], []
    for file, ranges in wanted.items():
        now = present[file]
        # Discovery does not read an empty file either: it waits for its content.
        if now is None or now.size == 0:
            missing.append(file.path)
        elif _is_as_it_was(file, now):
            readable += [FileSplit(file, start, end) for start, end in ranges]
        elif list(ranges) == [(0, file.size)]:
            readable.append(FileSplit(now, 0, now.size))
        else:
            # Its other parts were read from the old version: old and new bytes would be mixed.
            partly.append(file.path)
    if partly:
        raise OptionError(
            "a part of a file that has changed cannot be read again",
            _some(partly),
            "another version",
            "the version from which the other parts were read",
            "Select the whole file with --matching.",
        )
    if missing and not skip_missing:
        raise MissingPathError(
            "files that should be read again no longer exist",
            _some(missing),
            f"missing: {len(missing):,} of {counted(len(wanted), 'file')}",
            "files that still exist",
            "Put them back (an archive has them), or leave them out with --skip-missing.",
        )
    return readable, missing


def unreadable(splits: Sequence[FileSplit], storage_options: Mapping[str, Any]) -> list[FileSplit]:
    """Return those whose files are gone, or are there in another version."""
    # One request for each file, of which several splits may be assigned.
    present = _present(list({split.file for split in splits}), storage_options)

    def is_there(file: FileVersion) -> bool:
        now = present[file]
        return now is not None and _is_as_it_was(file, now)

    return [split for split in splits if not is_there(split.file)]


def _is_as_it_was(file: FileVersion, now: FileVersion) -> bool:
    if not (growing_mark(file.etag) or file.sample):
        return file.difference(now.status) is None
    try:
        # A growing file has another size by now. Opening it compares the bytes that are marked.
        with SourceFile(file, {}).opened():
            return True
    except SplitReadError:
        return False


def _present(
    files: Sequence[FileVersion], storage_options: Mapping[str, Any]
) -> dict[FileVersion, FileVersion | None]:
    def present(file: FileVersion) -> FileVersion | None:
        storage, _ = open_storage(file.path, storage_options)
        try:
            return present_version(storage, file)
        except OSError as error:
            raise SourceUnavailable(
                "cannot check whether the files still exist",
                file.path,
                f"{type(error).__name__}: {error}",
                "a file system that responds",
                "Repair access; --storage-options are the query's storageOptions.",
            ) from error

    # A request for each file, which mostly waits.
    return dict(zip(files, at_once(present, files), strict=True))


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")

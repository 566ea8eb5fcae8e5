"""Deletes or archives files that have been read to their end, which is when all bytes have been."""

from __future__ import annotations

import errno
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.contract import Storage
from ....checkpoint_meta.storage.open_storage import open_storage
from ....checkpoint_meta.storage.urls import LoadedPath, Location, join
from ....checkpoint_meta.stores.contract import in_parallel
from ....errors import SluiceError
from ..discovery.selection.name_patterns import ReadyMarker
from ..ledger.byte_ranges import ByteRange, ByteRanges, byte_ranges_of, joined, without
from .places import Outcome, archive, delete, is_last_file, present_version

LOG: Final = logging.getLogger("pyspark_sluice.cleaning")

_PORTION = 200
"""Files between two looks at whether this query still owns the state."""

_HOPELESS = 100
"""So many failures and no success end a round: the next one is later."""


# Adding to a count is more than one step, and several workers do it.
_COUNTING = threading.Lock()


@dataclass(frozen=True)
class CleaningPolicy:
    """The treatment of files that were read."""

    mode: Literal["delete", "archive"]
    paths: Sequence[LoadedPath]
    """What was loaded; the archive keeps names below it."""

    archive: str = ""
    marker: ReadyMarker | None = None
    """Goes with the file whose end it shows, or with the last file of its directory."""


class FileCleaner:
    """Keeps what cannot be removed and tries it again; a file that has changed is let be."""

    def __init__(self, policy: CleaningPolicy, storage_options: Mapping[str, Any]) -> None:
        self._policy = policy
        self._storage_options = storage_options
        self._coverage = Coverage()
        self._due: dict[FileVersion, str] = {}
        """Read to its end -> why the last attempt failed, empty before the first."""
        self._planned: dict[FileVersion, int] = {}
        """When the first batch that read a file, to its end or in part, was planned."""
        self._done = dict.fromkeys(("files", "bytes", "changed", "gone"), 0)
        self._last_error = ""
        self._figures: Mapping[str, Any] = {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from an earlier value of `state`. Called before all other methods, if at all."""
        self._coverage.restore(state.get("parts", ()))
        failing = map(FileVersion._make, state.get("failing", ()))
        self._due.update(dict.fromkeys(failing, "before this start"))
        self._planned |= zip(self._files(), state.get("planned", ()), strict=False)
        for key, count in state.get("done", {}).items():
            self._done[key] = self._done.get(key, 0) + count
        self._tell()

    def take_in(self, read: Iterable[tuple[FileSplit, FileSplit | None]], planned: int) -> None:
        """Record what readers have read in one checkpoint: each split and its remainder, if any.

        `planned` is when the checkpoint was cut, microseconds since the epoch.
        """
        for split, remainder in read:
            self._planned.setdefault(split.file, planned)
            # Parts of a file are read in different batches, in any order.
            if self._coverage.add(split, remainder):
                self._due[split.file] = ""

    def spare(self, splits: Iterable[FileSplit]) -> None:
        """Keep these splits, which will be read again, until `take_in` reports them again."""
        unread = byte_ranges_of(splits)
        for file in [file for file in self._due if file in unread]:
            del self._due[file]
            # Read whole so far: from now on in part, without what is to be read again.
            self._coverage.restore([[*file, [(0, file.size)]]])
        self._coverage.remove(unread)

    def clean(self, check_still_ours: Callable[[], None]) -> None:
        """Remove files that were read to their end, or whose removal has failed before."""
        failed = succeeded = 0
        # A copy, because what succeeds is removed on the way.
        due = list(self._due)
        for first in range(0, len(due), _PORTION):
            files = due[first : first + _PORTION]
            # Another query may own the state by now: it reads these files again, or removes them
            # itself.
            check_still_ours()
            for file, error in self._removed(files):
                if error is None:
                    succeeded += 1
                    del self._due[file]
                    self._planned.pop(file, None)
                else:
                    failed += 1
                    self._failed(file, error)
            self._tell()
            if failed >= _HOPELESS and not succeeded:
                # What was not tried counts as failing too, with the reason of the others.
                for file in self._due:
                    self._due[file] = self._due[file] or self._last_error
                break
        self._tell()
        if failed:
            LOG.warning("%d files cannot be cleaned up; the last: %s", failed, self._last_error)

    def _removed(
        self, files: Sequence[FileVersion]
    ) -> Iterable[tuple[FileVersion, BaseException | None]]:
        # Local disks gain nothing from threads. Those of `in_parallel` keep no process alive: a
        # store that refuses deletions must not hold up the end of a run.
        is_local = self._storage_of(files[0].path).requests == 1
        errors = list(map(self._try, files)) if is_local else in_parallel(self._try, files)
        return list(zip(files, errors, strict=True))

    def _try(self, file: FileVersion) -> BaseException | None:
        try:
            self._remove(file)
        except Exception as error:  # noqa: BLE001 - clients have errors of their own; it is kept
            return error
        return None

    def _remove(self, file: FileVersion) -> None:
        storage = self._storage_of(file.path)
        # Looked at before: the marker of a file that is delivered again is another one.
        marker = self._marker_of(storage, file)
        outcome = self._moved(storage, file, self._planned.get(file, 0))
        # Of a file that is gone it may be left by an attempt that died.
        if marker is not None and outcome != "changed":
            directory, _, leaf = storage.name(marker.path).rpartition("/")
            is_per_file = self._policy.marker is not None and self._policy.marker.is_per_file
            if is_per_file or is_last_file(storage, directory, leaf):
                self._moved(storage, marker, sys.maxsize)
        self._count(outcome)
        if outcome == "files":
            self._count("bytes", file.size)
        elif outcome == "changed":
            LOG.warning("%s has changed since it was read: it is not cleaned up", file.path)

    def _moved(self, storage: Storage, file: FileVersion, planned: int) -> Outcome:
        if self._policy.mode == "delete":
            return delete(storage, file, planned)
        return self._archive(storage, file, planned)

    def _marker_of(self, storage: Storage, file: FileVersion) -> FileVersion | None:
        if self._policy.marker is None:
            return None
        directory, _, leaf = storage.name(file.path).rpartition("/")
        url = storage.url(f"{directory}/{self._policy.marker.of(leaf)}")
        return present_version(storage, FileVersion(url, 0, -1))

    def _count(self, what: str, more: int = 1) -> None:
        with _COUNTING:
            self._done[what] += more

    def _failed(self, file: FileVersion, error: BaseException) -> None:
        reason = (
            str(error) if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"
        )
        self._due[file] = self._last_error = f"{file.path}: {reason}"

    def target(self, path: str) -> str:
        """Return where the file goes: its name below the loaded path, below the archive."""
        # By names: the same path can be written with other schemes, or without a host.
        storage = self._storage_of(path)
        name = storage.name(path)
        bases = [storage.name(loaded.base.url).rstrip("/") for loaded in self._policy.paths]
        within = [base for base in bases if base and name.startswith(f"{base}/")]
        # The innermost: what is above it may be several loaded paths.
        base = max(within, key=len, default=name.rpartition("/")[0])
        return join(self._policy.archive, name[len(base) + 1 :])

    def _archive(self, storage: Storage, file: FileVersion, planned: int) -> Outcome:
        target = self.target(file.path)
        # Local storages differ only in what they make durable.
        if not Location.of(target).is_local and self._storage_of(target) is not storage:
            raise OSError(errno.EXDEV, "the archive is in another bucket or file system", target)
        return archive(storage, file, planned, target)

    def _storage_of(self, path: str) -> Storage:
        return open_storage(path, self._storage_options, root=self._policy.archive)[0]

    # What is known --------------------------------------------------------------------------

    @property
    def failing(self) -> int:
        """Number of failed removals that will be tried again."""
        return sum(map(bool, self._due.values()))

    def state(self) -> Mapping[str, Any]:
        """Everything needed to resume, as JSON values."""
        return {
            "parts": self._coverage.state(),
            "failing": [list(file) for file in self._due],
            "planned": [self._planned.get(file, 0) for file in self._files()],
            "done": dict(self._done),
        }

    def _files(self) -> Iterator[FileVersion]:
        """Yield the files in the order of `state`."""
        return chain(self._coverage, self._due)

    def _tell(self) -> None:
        figures: dict[str, Any] = {**self._done, "failing": self.failing}
        if self.failing:
            figures["lastError"] = self._last_error
        self._figures = figures

    def figures(self) -> Mapping[str, Any]:
        """Progress so far, as JSON values. Called on any thread."""
        return self._figures


class Coverage:
    """Files that are read in part; one that was read in one piece never comes to be in it."""

    def __init__(self) -> None:
        self._parts: dict[FileVersion, list[ByteRange]] = {}

    def __iter__(self) -> Iterator[FileVersion]:
        return iter(self._parts)

    def add(self, split: FileSplit, remainder: FileSplit | None) -> bool:
        """The split was read, up to the remainder; True if its file has now been read whole."""
        file = split.file
        end = split.end if remainder is None else min(split.end, remainder.start)
        if end <= split.start:
            return False
        read = joined([*self._parts.get(file, ()), (split.start, end)])
        if read == [(0, file.size)]:
            self._parts.pop(file, None)
            return True
        self._parts[file] = read
        return False

    def remove(self, unread: ByteRanges) -> None:
        """These bytes count as not read."""
        for file in [file for file in self._parts if file in unread]:
            left = without(self._parts.pop(file), unread[file])
            if left:
                self._parts[file] = left

    def state(self) -> Sequence[Any]:
        """Return all of it as JSON values, for the mark that the cleanup publishes."""
        return [[*file, ranges] for file, ranges in self._parts.items()]

    def restore(self, state: Sequence[Any]) -> None:
        """Add what `state` returned for an earlier mark."""
        for *file, ranges in state:
            self._parts[FileVersion._make(file)] = [(start, end) for start, end in ranges]

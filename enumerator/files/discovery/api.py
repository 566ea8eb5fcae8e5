"""What discovery gives to the ledger, and what it asks of it.

Files come in columns, some thousands at a time: there may be ten million of them, and none that is
not in the next batch has to be a Python object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ....checkpoint_meta.documents.listing_record import DirectoryRow
from ....checkpoint_meta.files.file_split import FileVersion
from ....checkpoint_meta.stores.contract import StateStore

CHUNK = 10_000
"""Most files that are handed over at a time."""

_SAMPLE = 1_000
"""Names of skipped files that are kept with a pass."""

_NO_NUMBERS = np.zeros(0, np.int64)

_REST = 4.0
"""After a pass of t seconds discovery rests at least this many times t."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files of a listing, in no order, a column each; it yields at most `CHUNK` at a time."""

    paths: Sequence[str]
    """As in `FileVersion.path`."""

    sizes: NDArray[np.int64]
    """Bytes."""

    modified: NDArray[np.int64]
    """Microseconds since the epoch, -1 where the file system has none."""

    etags: Sequence[str] | None = None
    """The store's own version marks; None where it has none."""

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, first: int, last: int) -> FoundFiles:
        """The files from position `first` to before `last`."""
        rows = slice(first, last)
        etags = None if self.etags is None else self.etags[rows]
        return FoundFiles(self.paths[rows], self.sizes[rows], self.modified[rows], etags)

    def versions(self) -> Iterator[FileVersion]:
        """One object each, for those who need few."""
        etags = self.etags if self.etags is not None else [""] * len(self)
        columns = (self.paths, self.sizes.tolist(), self.modified.tolist(), etags)
        return map(FileVersion._make, zip(*columns, strict=True))


def joined(parts: Sequence[FoundFiles]) -> FoundFiles:
    """All files of some portions, in their order; of any number."""
    etags = [etag for part in parts for etag in (part.etags or [""] * len(part))]
    return FoundFiles(
        [path for part in parts for path in part.paths],
        np.concatenate([part.sizes for part in parts] or [_NO_NUMBERS]),
        np.concatenate([part.modified for part in parts] or [_NO_NUMBERS]),
        # None saves the ledger a pass over all of them in Python.
        etags if any(etags) else None,
    )


class KnownFiles(Protocol):
    """The files that are known already; asked from the listing's thread at any time."""

    def __len__(self) -> int:
        """Return how many there are."""

    def are_known(self, paths: Sequence[str]) -> NDArray[np.bool_]:
        """For each of many paths, whether it is known, in any version."""

    def compare(self, files: FoundFiles) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For each of many files whether it is known, and whether in another version."""


class SkippedFile(NamedTuple):
    """A file that was found and is not taken."""

    path: str
    reason: str
    """The option that leaves it out, or what it waits for."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The files that one pass found and did not take."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Reason -> files; a directory that is not entered counts as one."""

    sample: Sequence[SkippedFile] = ()
    """Some of them; all are in `Discovery.left_out`."""


class SkipCounter:
    """The counts and names of one pass."""

    def __init__(self, *, keeps_all: bool = False, marks_names: bool = False) -> None:
        """`marks_names` for the incremental mode, which goes by them."""
        self.greatest = ""
        """Greatest path of a file that is taken or known: others may be of another kind."""
        self.waiting = ""
        """Least path that is to be looked at again."""
        self._marks_names = marks_names
        self.counts: Counter[str] = Counter()
        """Number of files left out, by reason."""
        self._names: list[SkippedFile] = []
        self._most = None if keeps_all else _SAMPLE

    def add(self, path: str, reason: str) -> None:
        """Count a file or directory that is left out for `reason`."""
        self.counts[reason] += 1
        if self._most is None or len(self._names) < self._most:
            self._names.append(SkippedFile(path, reason))

    def repeat(self, counts: Mapping[str, int], names: Iterable[SkippedFile]) -> None:
        """Add the result of an earlier pass for a directory that did not change."""
        self.counts.update(counts)
        if self._most is None or len(self._names) < self._most:
            # These may be more than the sample, which is cut when it is reported.
            self._names.extend(names)

    def saw(self, paths: Sequence[str], mask: NDArray[np.bool_], taken: Sequence[str]) -> None:
        """Note the names that the pass reached: the ones in `mask`, and `taken`."""
        if self._marks_names:
            kept = [paths[at] for at in np.flatnonzero(mask).tolist()]
            self.greatest = max(self.greatest, *kept, *taken, "")

    def waits(self, path: str) -> None:
        """Note a file that a later pass has to look at again."""
        if self._marks_names:
            self.waiting = min(self.waiting or path, path)

    def taken_names(self) -> list[SkippedFile]:
        """Return the names since the last call, and drop them."""
        names, self._names = self._names, []
        return names

    def skipped(self) -> Skipped:
        """Return counts and sample in the form that discovery reports."""
        return Skipped(dict(sorted(self.counts.items())), tuple(self._names[: self._most]))


class Contents(NamedTuple):
    """The data files right in one directory, as they are now."""

    files: FoundFiles
    """Those that a pass takes, known ones among them."""

    waiting: int
    """Number of others that are not finished, by the rules that wait for that."""

    marked: int | None
    """When the marker of the directory was made, microseconds since the epoch; None without."""


class Discovery(Protocol):
    """Lists what the options point at, again and again. One pass at a time."""

    @property
    def skipped(self) -> Skipped:
        """Files that the last complete pass skipped, by reason."""

    def listing(self, ledger: KnownFiles) -> Iterator[FoundFiles]:
        """One pass: the files that are not known; lazily, so that who takes them may pause.

        If versions were asked for, the known ones come too. A file that is found in two places of
        the tree comes once; one that becomes known during the pass may come nevertheless. An error
        takes nothing back: what was yielded before it is entered into the ledger all the same.

        Raises:
            MissingPathError: the path is not there, which is an error.
            SourceUnavailable: it cannot be listed; the cause is attached.
        """

    def left_out(self, ledger: KnownFiles) -> Iterator[SkippedFile]:
        """A pass of its own over what is there now, for tools: all that is not taken, and why."""

    def are_gone(self, paths: Sequence[str]) -> Sequence[str]:
        """Return those of these files that are not there, after a complete pass without them.

        Raises:
            SourceUnavailable: one was below a loaded path in which the pass came to no file at all.
        """
        return ()

    def look_into(self, directories: Sequence[str], ledger: KnownFiles) -> Sequence[Contents]:
        """What is in these directories, after a complete pass; where `readyMarker` names one file.

        Raises:
            SourceUnavailable: one cannot be listed.
        """
        return ()

    def notify_entered(self) -> None:
        """Everything that `listing` has yielded so far is in the ledger.

        Until then nothing may count as done because it was yielded: no listing, no message. Called
        under the coordinator's lock, while `listing` is not being iterated.
        """
        return

    def rest(self, seconds: float) -> float:
        """Return how many seconds discovery rests at least after a pass of `seconds`."""
        return _REST * seconds

    def position(self) -> Mapping[str, Any]:
        """Return how far discovery has come with what is in the ledger, as JSON; may be empty."""
        return {}

    def resume(self, position: Mapping[str, Any]) -> None:
        """Resume from the position of an earlier run, before the first pass.

        It has to be no newer than what is known: names up to there are not looked for until the
        next full pass. Without it, or with one of other options, the first pass is a full one.
        """
        return

    def recall(self, store: StateStore, checkpoints: Sequence[CheckpointIdentity]) -> None:
        """Trust in the first pass what earlier runs have recorded in `store`, if that is safe.

        `checkpoints` are some whose files are all known now, the last one of which knows no others.
        """
        return

    def remember(self) -> None:
        """The first pass has ended, and all that it knew was in the last one of `checkpoints`."""
        return

    def notify_cut(self, checkpoint_id: int, ledger: KnownFiles) -> None:
        """A checkpoint is cut with all that is known now; nothing of it is durable yet."""
        return

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint is taken back: a later one will hold what it held."""
        return

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable, and Spark has completed it and all before it."""
        return

    def report(self) -> Mapping[str, Any]:
        """More for the progress event, as JSON values."""
        return {}

    def will_end(self) -> None:
        """The run ends with what is there: nothing is left waiting at a server then."""
        return

    def close(self) -> None:
        """Close what is open. Not guaranteed to be called."""
        return


class Tree(ABC):
    """One loaded path, listed again and again."""

    @abstractmethod
    def list_files(
        self, ledger: KnownFiles, skips: SkipCounter, after: str
    ) -> Iterator[FoundFiles]:
        """One pass, in portions that may be empty.

        Args:
            ledger: what need not come.
            skips: counts everything that is found and not taken.
            after: where not empty, names below the base up to this one are not looked for.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    @abstractmethod
    def list_directory(self, directory: str, ledger: KnownFiles, skips: SkipCounter) -> FoundFiles:
        """What a pass takes right in this directory, which it has come to; from any thread.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    @abstractmethod
    def forget(self) -> None:
        """Trust nothing that a pass before has found out."""

    def remembered(self) -> tuple[Sequence[DirectoryRow], int]:
        """The directories that later runs need not read, and how many names were read for them.

        Those that `recall` has named count no names.
        """
        return (), 0

    def recall(self, rows: Sequence[DirectoryRow]) -> None:
        """Trust these directories until the next pass that trusts nothing."""
        return

"""Discovery of directory trees and buckets: passes over all that the options point at."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ....checkpoint_meta.documents.heartbeat import boot_id
from ....checkpoint_meta.documents.listing_record import ListingRecord, newest_listing
from ....checkpoint_meta.files.file_split import FileVersion
from ....checkpoint_meta.storage.contract import FileStatus, at_once
from ....checkpoint_meta.storage.open_storage import open_storage
from ....checkpoint_meta.storage.storage_errors import MissingBucket, patiently
from ....checkpoint_meta.storage.urls import LoadedPath
from ....checkpoint_meta.stores.contract import StateStore
from ....errors import MissingPathError, SourceUnavailable
from .api import (
    Contents,
    Discovery,
    FoundFiles,
    KnownFiles,
    SkipCounter,
    Skipped,
    SkippedFile,
    Tree,
    joined,
)
from .local.local_files import Links, LocalFiles
from .local.local_tree import MOST_COMPARED, LocalTree
from .object_store.remote_files import RemoteFiles
from .object_store.remote_tree import RemoteTree
from .selection.criteria import UNFINISHED, FileRules, FileSelection, Scope
from .selection.name_patterns import NameRule, ReadyMarker


@dataclass(frozen=True, slots=True)
class ListingMode:
    """The share of a tree that a pass looks at."""

    incremental: bool = False
    """Only names behind the greatest one that was found before."""

    full_listing_interval: float = 3600.0
    """Seconds after which a pass looks at everything again, and trusts nothing it remembers."""

    wants_versions: bool = False
    """Known files come, too: they may have changed."""


class PathTree(NamedTuple):
    """A loaded path and its tree."""

    path: LoadedPath
    tree: Tree
    prefix: str
    """What the paths of its files begin with."""


class TreeDiscovery(Discovery):
    """Lists one path or URL or several; nothing is touched before the first pass."""

    skipped = Skipped()

    def __init__(
        self,
        paths: Sequence[LoadedPath],
        storage_options: Mapping[str, Any],
        *,
        fail_on_missing_path: bool,
        selection: FileSelection | None = None,
        mode: ListingMode | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` tells when the next full pass is due."""
        self.paths = paths
        self.storage_options = storage_options
        self._fail_on_missing_path = fail_on_missing_path
        self._selection = selection or FileSelection()
        self.mode = mode or ListingMode()
        self._clock = clock
        self._trees: Sequence[PathTree] | None = None
        self._counts: dict[str, int] = {}
        """Prefix of the files of a loaded path -> how many a pass has come to."""
        self._greatest: dict[str, str] = {}
        self.full_listing: float | None = None
        """When the last full pass began that is in the ledger."""
        self._ended: tuple[dict[str, str], float | None] | None = None
        """The result of the last pass, if it ended: greatest names, and its start if full."""
        self._records: tuple[StateStore, Sequence[CheckpointIdentity]] | None = None
        """See `recall`; None from the second pass on."""

    def is_due(self) -> bool:
        """True if the next pass has to be a full one."""
        return self.full_listing is None or not self._is_recent(self.full_listing)

    def _is_recent(self, full_listing: float) -> bool:
        # A clock that was set back gives a negative time, and with it a full pass.
        return 0 <= self._clock() - full_listing < self.mode.full_listing_interval

    @override
    def listing(self, ledger: KnownFiles) -> Iterator[FoundFiles]:
        began, is_full = self._clock(), self.is_due()
        self._ended = None
        if self._trees is None:
            self._trees = self.make_trees()
            if len(ledger) <= MOST_COMPARED or self.mode.incremental or self.mode.wants_versions:
                self._records = None
            is_full = is_full and not self._recalled()
        else:
            # What became known meanwhile may be in no checkpoint yet.
            self._records = None
            if is_full:
                for loaded in self._trees:
                    loaded.tree.forget()
        whole, advanced = SkipCounter(), dict[str, str]()
        self._counts = {loaded.prefix: 0 for loaded in self._trees}
        for loaded in self._trees:
            skips = SkipCounter(marks_names=self.mode.incremental)
            after = "" if is_full else self._greatest.get(loaded.path.given, "")
            for portion in self._list_files(loaded, ledger, skips, after):
                if len(portion):
                    self._counts[loaded.prefix] += len(portion)
                    yield portion
            # Not into `_greatest` yet: the files of this pass are not in the ledger, and a cut now
            # would let the next start begin behind them.
            advanced[loaded.path.given] = self._reached(loaded, skips)
            whole.repeat(skips.counts, skips.taken_names())
        # Only now: a pass that fails may have found nothing from its beginning.
        self.skipped = whole.skipped()
        self._ended = advanced, began if is_full else None

    @override
    def notify_entered(self) -> None:
        if self._ended is None:
            return
        (greatest, full_listing), self._ended = self._ended, None
        if self.mode.incremental:
            self._greatest = greatest
        if full_listing is not None:
            self.full_listing = full_listing

    @override
    def recall(self, store: StateStore, checkpoints: Sequence[CheckpointIdentity]) -> None:
        self._records = store, checkpoints

    def _recalled(self) -> bool:
        """True if directories of an earlier run's record are trusted."""
        if self._records is None or self._trees is None:
            return False
        store, checkpoints = self._records
        record = newest_listing(store)
        if (
            record is None
            # Of a query that was restored from a backup, or begins again, and knows less.
            or record.identity not in checkpoints
            or record.listed != self.identity()
            or not record.boot == boot_id() != ""
            or not self._is_recent(record.full_listing)
        ):
            return False
        self.full_listing = record.full_listing
        for loaded, rows in zip(self._trees, record.trees, strict=True):
            loaded.tree.recall(rows)
        return True

    @override
    def remember(self) -> None:
        if self._records is None or self._trees is None or self._ended is None:
            return
        store, checkpoints = self._records
        trees = [loaded.tree.remembered() for loaded in self._trees]
        count = sum(len(rows) for rows, _ in trees)
        # Not where it takes longer to write all of them than the next run takes to read the few.
        if not 0 < count <= sum(names for _, names in trees):
            return
        known = checkpoints[-1]
        ListingRecord(
            checkpoint=known.ref.checkpoint,
            epoch=known.ref.epoch,
            lineage=known.lineage,
            checkpoint_checksum=known.checksum,
            listed=self.identity(),
            boot=boot_id(),
            full_listing=self._ended[1] or self.full_listing or 0.0,
            trees=[rows for rows, _ in trees],
        ).publish(store)

    @override
    def are_gone(self, paths: Sequence[str]) -> Sequence[str]:
        below = [path for path in paths if path.startswith(tuple(self._counts))]
        statuses = at_once(self._status, below)
        gone = [path for path, status in zip(below, statuses, strict=True) if status is None]
        for prefix, count in self._counts.items():
            lost = [path for path in gone if path.startswith(prefix)]
            if lost and not count:
                raise SourceUnavailable(
                    "a loaded path has no files any more",
                    prefix,
                    f"no file, where {len(lost):,} known files were, such as {lost[0]}",
                    "at least one file, since rows of files that are gone are removed",
                    "Mount or restore the directory. If its files were deleted on purpose, run "
                    "`sluice retract --matching` with the path, and start the query without "
                    "onDelete until there are files again.",
                )
        return gone

    def _status(self, path: str) -> FileStatus | None:
        storage, _ = open_storage(path, self.storage_options)
        try:
            return patiently(lambda: storage.stat(storage.name(path)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnavailable(
                "cannot find out whether a file is gone",
                path,
                f"{type(error).__name__}: {error}",
                "a storage that responds",
                "Repair access and restart the query: it resumes from the same point.",
            ) from error

    @override
    def look_into(self, directories: Sequence[str], ledger: KnownFiles) -> Sequence[Contents]:
        return at_once(partial(self._contents, ledger=ledger), directories)

    def _contents(self, directory: str, ledger: KnownFiles) -> Contents:
        # The marker first: what is written after it is newer.
        marker = self._status(f"{directory}/{self._selection.ready_marker}")
        marked, skips = None if marker is None else marker.modified, SkipCounter()
        files: list[FoundFiles] = []
        for loaded in self._trees or ():
            if f"{directory}/".startswith(loaded.prefix):
                # A directory of which all files are gone may be gone itself.
                with suppress(FileNotFoundError, NotADirectoryError), _listed(loaded.path.given):
                    files.append(loaded.tree.list_directory(directory, ledger, skips))
        waiting = sum(skips.counts[reason] for reason in UNFINISHED)
        return Contents(joined(files), waiting, marked)

    def _reached(self, loaded: PathTree, skips: SkipCounter) -> str:
        if skips.waiting:
            # What waits has to be come to again: any name that is less than the least of it.
            return skips.waiting.removeprefix(loaded.prefix)[:-1]
        before = self._greatest.get(loaded.path.given, "")
        return max(before, skips.greatest.removeprefix(loaded.prefix))

    @override
    def left_out(self, ledger: KnownFiles) -> Iterator[SkippedFile]:
        skips = SkipCounter(keeps_all=True)
        for loaded in self.make_trees():
            for _ in self._list_files(loaded, ledger, skips, ""):
                yield from skips.taken_names()

    def make_trees(self) -> Sequence[PathTree]:
        """New trees of all paths, which remember nothing yet."""
        versions = self.mode.wants_versions
        return path_trees(
            self.paths, self.storage_options, self._selection, wants_versions=versions
        )

    def _list_files(
        self, loaded: PathTree, ledger: KnownFiles, skips: SkipCounter, after: str
    ) -> Iterator[FoundFiles]:
        try:
            with _listed(loaded.path.given):
                yield from loaded.tree.list_files(ledger, skips, after)
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._fail_on_missing_path:
                raise _missing(loaded.path.given, error) from error

    @override
    def position(self) -> Mapping[str, Any]:
        if not self.mode.incremental or self.full_listing is None:
            return {}
        return {
            "fullListing": int(self.full_listing),
            "greatest": dict(self._greatest),
            "of": self.identity(),
        }

    @override
    def resume(self, position: Mapping[str, Any]) -> None:
        if self.mode.incremental and position.get("of") == self.identity():
            self._greatest = dict(position["greatest"])
            self.full_listing = float(position["fullListing"])

    def identity(self) -> str:
        """Names paths and selection: with others more than what is new has to be found."""
        # These reprs have all their fields, so that any other option gives another name.
        return hashlib.sha256(repr((self.paths, self._selection)).encode()).hexdigest()[:16]


@contextmanager
def _listed(path: str) -> Iterator[None]:
    """Errors of a listing below `path` but for a directory that is not there, for people."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise SourceUnavailable(
            "the path cannot be listed",
            str(getattr(error, "filename", None) or path),
            f"{type(error).__name__}: {error}",
            "a directory that this process can read",
            ("Repair access and restart the query: it resumes from the same point."),
        ) from error


def path_trees(
    paths: Sequence[LoadedPath],
    storage_options: Mapping[str, Any],
    selection: FileSelection,
    *,
    wants_versions: bool,
) -> list[PathTree]:
    """One tree for each path, aware of those before it: no file comes twice."""
    names = NameRule(selection.ignored, selection.glob)
    place = selection.criteria.place
    marker = ReadyMarker(selection.ready_marker) if selection.ready_marker else None
    local = [
        Scope(path.base.url, path.wildcards, names, nested=selection.nested, place=place)
        for path in paths
        if path.base.is_local
    ]
    links = Links(local, selection.written)

    def rules(scope: Scope, others: Sequence[Scope]) -> FileRules:
        return FileRules(scope, _near(scope, others), selection.criteria, marker, wants_versions)

    before: list[Scope] = []
    remote: list[tuple[Any, Scope]] = []
    trees: list[PathTree] = []
    for path in paths:
        if path.base.is_local:
            # `before` has a scope for each local path so far.
            scope = local[len(before)]
            judge = LocalFiles(rules(scope, before), links)
            tree: Tree = LocalTree(scope, links, judge, caches=not wants_versions)
            before.append(scope)
            trees.append(PathTree(path, tree, scope.base.rstrip("/") + "/"))
            continue
        storage, root = open_storage(path.base, storage_options)
        scope = Scope(root.rstrip("/"), path.wildcards, names, nested=selection.nested, place=place)
        # Only paths in one file system can name the same file.
        others = [other for where, other in remote if where is storage]
        remote.append((storage, scope))
        tree = RemoteTree(storage, root, scope, RemoteFiles(storage, rules(scope, others)))
        trees.append(PathTree(path, tree, storage.url(scope.base) + "/"))
    return trees


def _near(scope: Scope, others: Sequence[Scope]) -> list[Scope]:
    """Return those of `others` that may name the same files."""
    bases = [(other, other.base.rstrip("/") + "/") for other in others]
    own = scope.base.rstrip("/") + "/"
    return [other for other, base in bases if base.startswith(own) or own.startswith(base)]


def _missing(path: str, error: OSError) -> MissingPathError:
    if isinstance(error, MissingBucket):
        return MissingPathError(
            "the bucket of the path does not exist",
            path,
            error.strerror or str(error),
            "a bucket of this store",
            "Correct the path, the endpoint or the account in storageOptions, create the bucket, "
            "or set failOnMissingPath=false to wait for it.",
        )
    hint = ""
    if set(path) & set("*?[]{},"):
        hint = r" A * ? [ ] { } or , in a name must be escaped with a \ before it."
    return MissingPathError(
        "the path does not exist",
        path,
        "nothing",
        "a directory or a file",
        "Create it, correct the path, or set failOnMissingPath=false to wait for it." + hint,
    )


class _NothingKnown(KnownFiles):
    @override
    def __len__(self) -> int:
        return 0

    @override
    def are_known(self, paths: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(paths), np.bool_)

    @override
    def compare(self, files: FoundFiles) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        is_known, changed = np.zeros((2, len(files)), np.bool_)
        return is_known, changed


def all_files(discovery: Discovery) -> Iterator[FileVersion]:
    """A pass of `discovery` over everything, one file after the other."""
    return (file for files in discovery.listing(_NothingKnown()) for file in files.versions())

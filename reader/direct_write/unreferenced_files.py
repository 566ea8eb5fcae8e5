"""Deletes files of attempts that lost, data or bad records: named by no reader commit.

A file may go only if its checkpoint is one of this state, by number, epoch and digits of the
checksum, and its reader's commit exists and names other files: from then on no commit can name it.
After a restore from a backup, files of another history have the same number and epoch; their
batches may be in the table. A file that the table names is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.documents.written_file import FileName
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.storage.local_storage import PARTIAL
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateMissingError
from .place import Place


@dataclass
class Swept:
    """The files at a place, by path."""

    superseded: list[str] = field(default_factory=list)
    """Files of attempts that lost; deleted if that was asked for."""

    named: list[str] = field(default_factory=list)
    """Files of attempts that count."""

    undecided: list[str] = field(default_factory=list)
    """Their reader has no commit: it is at work, or its checkpoint is gone or of another history.
    Never deleted."""


def sweep(
    place: Place,
    store: StateStore,
    checkpoints: Collection[CheckpointIdentity] | None = None,
    *,
    in_table: Callable[[], Callable[[str], bool]] = lambda: lambda _: False,
    delete: bool,
) -> Swept:
    """Look at all files of one query, or of some of its checkpoints.

    Args:
        place: what `writeTo` or `badRecordsPath` names.
        store: the query's state.
        checkpoints: of which ones; None for all.
        in_table: opens the table of the files, if a file may have to be deleted; the result says
            whether the table names a file.
        delete: whether files of attempts that lost are deleted.

    Raises:
        OSError: the place cannot be listed, or a file cannot be deleted.
    """
    history = CheckpointHistory(store)
    # By epoch: a chain that was begun later may not have come as far as the one before.
    newest = max(history.checkpoints(), key=lambda ref: (ref.epoch, ref.checkpoint), default=None)
    lineage = history.header(newest).lineage if newest else ""
    commits = ReaderCommits(store)
    names = None if checkpoints is None else {each.name for each in checkpoints}

    @cache
    def named(checkpoint: CheckpointIdentity, reader: int) -> Collection[str] | None:
        commit = commits.find(checkpoint, reader)
        return None if commit is None else set(commit.written)

    @cache
    def is_of_this_state(checkpoint: CheckpointIdentity) -> bool:
        with suppress(StateMissingError):
            return history.load(checkpoint.ref).identity == checkpoint
        return False

    names_file = cache(in_table)
    swept = Swept()
    for path in place.files():
        folder, slash, leaf = path.rpartition("/")
        # A draft that was never published has the file's name within its own, see `LocalDraft`.
        published = folder + slash + leaf.removeprefix(".").removesuffix(PARTIAL)
        name = FileName.parse(published)
        # Other files in the directory are the table's, or those of other queries.
        if name is None or name.checkpoint.lineage != lineage:
            continue
        if names is not None and name.checkpoint.name not in names:
            continue
        named_paths = named(name.checkpoint, name.reader)
        if named_paths is not None and path in named_paths:
            swept.named.append(path)
        elif (
            named_paths is None or not is_of_this_state(name.checkpoint) or names_file()(published)
        ):
            swept.undecided.append(path)
        else:
            swept.superseded.append(path)
            if delete:
                place.delete(path)
    return swept

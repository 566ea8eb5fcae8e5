"""Whether files that are to be read again are still there, and as what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion, growing_mark
from ....checkpoint_meta.storage.contract import at_once
from ....checkpoint_meta.storage.open_storage import open_storage
from ....enumerator.files.cleaning.places import present_version
from ....enumerator.files.ledger.byte_ranges import byte_ranges_of
from ....errors import MissingPathError, OptionError, SourceUnavailable, SplitReadError
from ....reader.files.io.source_file import SourceFile
from ...views.amounts import counted

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

"""What may be wrong with the options of cleaning up.

Not here: the options themselves (`enumerator/files/cleaning/cleaning_options.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.storage.urls import absolute, is_below, local_path, scheme_of, storage_url
from ...enumerator.files.cleaning.cleaning_options import CleaningOptions


def archive_of(options: CleaningOptions) -> str:
    """The archive, absolute; empty without one."""
    return storage_url(absolute(options.source_archive_dir)) if options.source_archive_dir else ""


def cleaning_problems(options: CleaningOptions, loaded: str) -> Iterator[str]:
    """What does not fit together."""
    archive = archive_of(options)
    if options.clean_source != "archive":
        return
    if not archive:
        yield "sourceArchiveDir: found nothing; expected a directory for cleanSource=archive"
        return
    try:
        paths = loaded_paths(loaded)
    except ValueError:
        return  # Said elsewhere.
    for path in paths:
        if _root(path.base) != _root(archive):
            yield (
                f"sourceArchiveDir: found {options.source_archive_dir!r} for files of "
                f"{path.given!r}; expected a directory of the same file system or bucket"
            )
        elif is_below(archive, path.base):
            yield (
                f"sourceArchiveDir: found {options.source_archive_dir!r} within {path.given!r}, "
                "where archived files would be read again; expected a directory outside that path"
            )


def _root(url: str) -> tuple[str, str]:
    if local_path(url) is not None:
        return ("", "")
    rest = storage_url(url).partition("://")[2]
    return (scheme_of(storage_url(url)), rest.partition("/")[0])

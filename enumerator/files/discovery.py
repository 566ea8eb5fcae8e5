"""Lists a directory tree: what files are there that are not known yet.

Not here: when to list, and what becomes of the files (`enumerator.py`); the passes over a tree
(`local_tree.py`, `remote_tree.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sized
from typing import Any, Protocol

from ...checkpoint_meta.splits import FileVersion
from ...checkpoint_meta.urls import local_path, storage_url
from ...errors import MissingPathError, SourceUnavailable
from .local_tree import LocalTree
from .names import NameRule
from .remote_tree import RemoteTree


class KnownPaths(Container[str], Sized, Protocol):
    """The paths that are known already."""


FileLister = Callable[[KnownPaths], list[FileVersion]]
"""Lists every file that is not in the container given: one discovery pass."""


def make_lister(
    url: str,
    storage_options: Mapping[str, Any],
    *,
    fail_on_missing_path: bool,
    names: NameRule | None = None,
) -> FileLister:
    """The lister for a path or URL; nothing is touched yet.

    Empty files are passed over without being remembered: many writers create a file before they
    fill it. `names` says which files are data, by default all that are not hidden.

    The lister raises:
        MissingPathError: the path is not there and `fail_on_missing_path`.
        SourceUnavailable: it cannot be listed; the cause is attached.
    """
    path, rule = local_path(url), names or NameRule()
    tree = (
        LocalTree(path, rule)
        if path is not None
        else RemoteTree(storage_url(url), storage_options, rule)
    )
    seen = False

    def list_unknown(known: KnownPaths) -> list[FileVersion]:
        nonlocal seen
        try:
            expected = tree.may_vanish and (seen or len(known) > 0)
            if not expected and not tree.exists():
                raise FileNotFoundError(url)
            files = [file for file in tree.files(known) if file.size > 0]
        except FileNotFoundError as error:
            if fail_on_missing_path:
                raise _missing(url) from error
            return []
        except OSError as error:
            raise SourceUnavailable(
                "the path cannot be listed",
                str(getattr(error, "filename", None) or url),
                f"{type(error).__name__}: {error}",
                "a directory that this process may read",
                "Repair access and restart the query: it continues where it stood.",
            ) from error
        seen = True
        return files

    return list_unknown


def _missing(url: str) -> MissingPathError:
    return MissingPathError(
        "the path does not exist",
        url,
        "nothing",
        "a directory or a file",
        "Create it, correct the path, or set failOnMissingPath=false to wait for it.",
    )

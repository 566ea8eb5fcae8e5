"""Symbolic links in a local tree: each file is read under one name, however many lead to it.

Not here: walking (`local_tree.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .....errors import SourceUnavailable
from ..selection.scope import Scope

Trail = tuple[str, ...]
"""Where the links led that were followed on the way to a directory."""


class Links:
    """Which links are followed, as seen from all that is listed."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        self._scopes = scopes

    def is_found_by_itself(self, target: str, *, file: bool) -> bool:
        """True if what a link leads to is come to anyway, under its own name."""
        for scope in self._scopes:
            # The loaded path may itself be reached by a link.
            base = os.path.realpath(scope.base)
            if is_within(target, base):
                named = os.path.join(scope.base, os.path.relpath(target, base))
                if scope.covers(os.path.normpath(named), file=file):
                    return True
        return False

    def trail_into(self, path: str, directory: str, base: str, trail: Trail) -> Trail | None:
        """The trail below the link `path` to a directory; None if it is not followed.

        Raises:
            SourceUnavailable: it leads in a circle.
        """
        target = os.path.realpath(path)
        above = (os.path.realpath(base), os.path.realpath(directory), *trail)
        if any(is_within(place, target) for place in above):
            raise SourceUnavailable(
                "symbolic links form a cycle",
                path,
                f"a link to {target}, which contains the link",
                "links to targets outside the directories that contain the links",
                "Remove the link, or give it a hidden name, such as one that begins with a dot.",
            )
        if self.is_found_by_itself(target, file=False):
            return None
        return (*trail, target)


def is_within(path: str, directory: str) -> bool:
    """True if `path` is `directory` or below it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)

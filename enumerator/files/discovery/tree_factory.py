"""Makes the trees of all loaded paths, each aware of those before it: no file comes twice.

Not here: what a tree does (`local/local_tree.py`, `object_store/remote_tree.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ....checkpoint_meta.storage.input_paths import LoadedPath
from .local.local_files import LocalFiles
from .local.local_tree import LocalTree
from .local.symlinks import Links
from .object_store.remote_files import RemoteFiles
from .object_store.remote_tree import RemoteTree, file_system, pages_of
from .selection.criteria import Choice
from .selection.name_patterns import NameRule
from .selection.ready_marker import ReadyMarker
from .selection.scope import Scope
from .tree import Tree


class Planted(NamedTuple):
    """A loaded path and its tree."""

    path: LoadedPath
    tree: Tree
    prefix: str
    """What the paths of its files begin with."""


def plant(
    paths: Sequence[LoadedPath],
    storage_options: Mapping[str, Any],
    choice: Choice,
    *,
    wants_versions: bool,
) -> list[Planted]:
    """One tree for each path."""
    names = NameRule(choice.ignored, choice.glob)
    place = choice.criteria.place
    marker = ReadyMarker(choice.ready_marker) if choice.ready_marker else None
    local = [
        Scope(path.base, path.wildcards, names, nested=choice.nested, place=place)
        for path in paths
        if path.is_local
    ]
    links = Links(local)
    before: list[Scope] = []
    remote: list[tuple[Any, Scope]] = []
    planted: list[Planted] = []
    for path in paths:
        if path.is_local:
            scope = local[len(before)]
            judge = LocalFiles(
                scope, _near(scope, before), links, choice.criteria, marker,
                wants_versions=wants_versions,
            )  # fmt: skip
            tree: Tree = LocalTree(scope, links, judge, trusts=not wants_versions)
            before.append(scope)
            planted.append(Planted(path, tree, scope.base.rstrip("/") + "/"))
            continue
        files, root = file_system(path.base, storage_options)
        scope = Scope(root.rstrip("/"), path.wildcards, names, nested=choice.nested, place=place)
        others = _near(scope, [other for where, other in remote if where is files])
        remote_judge = RemoteFiles(
            files, pages_of(files), scope, others, choice.criteria, marker,
            wants_versions=wants_versions,
        )  # fmt: skip
        remote.append((files, scope))
        tree = RemoteTree(files, root, scope, remote_judge)
        planted.append(Planted(path, tree, str(files.unstrip_protocol(scope.base)) + "/"))
    return planted


def _near(scope: Scope, others: Sequence[Scope]) -> list[Scope]:
    """Those of `others` that may name the same files."""
    bases = [(other, other.base.rstrip("/") + "/") for other in others]
    own = scope.base.rstrip("/") + "/"
    return [other for other, base in bases if base.startswith(own) or own.startswith(base)]

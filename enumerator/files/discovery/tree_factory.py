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
from .selection.criteria import FileSelection
from .selection.name_patterns import NameRule, ReadyMarker
from .selection.scope import Scope
from .tree import Tree


class PathTree(NamedTuple):
    """A loaded path and its tree."""

    path: LoadedPath
    tree: Tree
    prefix: str
    """What the paths of its files begin with."""


def path_trees(
    paths: Sequence[LoadedPath],
    storage_options: Mapping[str, Any],
    selection: FileSelection,
    *,
    wants_versions: bool,
) -> list[PathTree]:
    """One tree for each path."""
    names = NameRule(selection.ignored, selection.glob)
    place = selection.criteria.place
    marker = ReadyMarker(selection.ready_marker) if selection.ready_marker else None
    local = [
        Scope(path.base, path.wildcards, names, nested=selection.nested, place=place)
        for path in paths
        if path.is_local
    ]
    links = Links(local)
    before: list[Scope] = []
    remote: list[tuple[Any, Scope]] = []
    trees: list[PathTree] = []
    for path in paths:
        if path.is_local:
            # `before` has a scope for each local path so far.
            scope = local[len(before)]
            judge = LocalFiles(
                scope, _near(scope, before), links, selection.criteria, marker,
                wants_versions=wants_versions,
            )  # fmt: skip
            tree: Tree = LocalTree(scope, links, judge, caches=not wants_versions)
            before.append(scope)
            trees.append(PathTree(path, tree, scope.base.rstrip("/") + "/"))
            continue
        files, root = file_system(path.base, storage_options)
        scope = Scope(root.rstrip("/"), path.wildcards, names, nested=selection.nested, place=place)
        others = _near(scope, [other for where, other in remote if where is files])
        remote_judge = RemoteFiles(
            files, pages_of(files), scope, others, selection.criteria, marker,
            wants_versions=wants_versions,
        )  # fmt: skip
        remote.append((files, scope))
        tree = RemoteTree(files, root, scope, remote_judge)
        trees.append(PathTree(path, tree, str(files.unstrip_protocol(scope.base)) + "/"))
    return trees


def _near(scope: Scope, others: Sequence[Scope]) -> list[Scope]:
    """Those of `others` that may name the same files."""
    bases = [(other, other.base.rstrip("/") + "/") for other in others]
    own = scope.base.rstrip("/") + "/"
    return [other for other, base in bases if base.startswith(own) or own.startswith(base)]

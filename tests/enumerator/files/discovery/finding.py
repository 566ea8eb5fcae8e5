"""What the tests of discovery share: trees made quickly, passes, and how much a pass asks for."""

import os

import numpy as np

from pyspark_sluice.checkpoint_meta.storage.urls import loaded_paths
from pyspark_sluice.enumerator.files.discovery.selection.criteria import Criteria, FileSelection
from pyspark_sluice.enumerator.files.discovery.tree_discovery import ListingMode, TreeDiscovery

_CRITERIA = set(Criteria.__dataclass_fields__)
_MODE = set(ListingMode.__dataclass_fields__)


def land(root, name, content="x", *, age=None):
    """A file, `age` seconds old if that is given."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    if age is not None:
        then = path.stat().st_mtime - age
        os.utime(path, (then, then))
    return str(path)


def make_discovery(paths, storage_options=None, *, fail_on_missing_path=True, clock=None, **more):
    """A discovery whose choice, criteria and mode are given by the names of their fields."""
    criteria = Criteria(**{name: more.pop(name) for name in _CRITERIA & set(more)})
    mode = ListingMode(**{name: more.pop(name) for name in _MODE & set(more)})
    timed = {} if clock is None else {"clock": clock}
    return TreeDiscovery(
        loaded_paths(str(paths)),
        storage_options or {},
        fail_on_missing_path=fail_on_missing_path,
        selection=FileSelection(criteria=criteria, **more),
        mode=mode,
        **timed,
    )


class KnownPaths:
    """A container of paths, as discovery asks it."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def are_known(self, paths):
        return np.fromiter((path in self.paths for path in paths), bool, len(paths))

    def compare(self, files):
        return self.are_known(files.paths), np.zeros(len(files), bool)


def lister_of(discovery):
    """A pass as a list of files, for paths that are known already."""

    def list_unknown(known):
        found = discovery.listing(KnownPaths(known))
        return [file for files in found for file in files.versions()]

    return list_unknown


class Ledger(KnownPaths):
    """What is known, as the enumerator's ledger has it: every file that a pass brings."""

    def __init__(self, *paths):
        super().__init__(set(paths))

    def take(self, discovery):
        """One pass; the new paths in order."""
        found = [path for files in discovery.listing(self) for path in files.paths]
        assert len(found) == len(set(found)), "a file came twice"
        self.paths.update(found)
        discovery.notify_entered()
        return sorted(found)


def enter_new(discovery, ledger):
    """One pass into a ledger of the enumerator; how many new files there are."""
    portions = [ledger.select_new([files], 0) for files in discovery.listing(ledger.seen)]
    for sifted in portions:
        ledger.enter(sifted)
    return sum(sifted.new for sifted in portions)


def names(paths, root):
    """`paths` as they are below `root`."""
    return sorted(str(path).removeprefix(f"{root}/") for path in paths)
